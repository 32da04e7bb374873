"""The made-up stream and its feeder; and the command, as a process of its own."""

import re
import signal
import subprocess
import sys
from itertools import islice
from typing import Any

import httpx2
import numpy as np
import pytest

from app.client import Feedback, Observed
from app.demo.feeding import LABEL_DELAY, Feeder, feed_live, feed_past
from app.demo.pump import FEATURES, readings
from core import Detector, DetectorConfig, Feature

ITAN = [sys.executable, "-m", "app.cli"]


class Recorder:
    """Stands in for the client: every seventh sample is flagged."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.n_seen = 0

    def observe(self, stream: str, samples: Any, timestamps: Any) -> Observed:
        seq = list(range(self.n_seen + 1, self.n_seen + len(samples) + 1))
        self.n_seen += len(samples)
        self.events.append(("samples", list(timestamps)))
        n = len(samples)
        return Observed([1.0] * n, [2.0] * n, [number % 7 == 0 for number in seq], [True] * n, seq=seq)

    def feedback(self, stream: str, labels: Any) -> Feedback | None:
        self.events.append(("labels", [label["seq"] for label in labels]))
        assert all(label["seq"] <= self.n_seen - LABEL_DELAY for label in labels)
        return None


def test_the_detector_finds_most_faults_and_little_else() -> None:
    told = list(islice(readings(seed=0), 3000))
    detector = Detector(DetectorConfig(features=tuple(Feature(name) for name in FEATURES)))
    flagged = detector.observe([list(reading.values.values()) for reading in told]).is_anomaly[1500:]
    faults = np.array([reading.is_fault for reading in told])[1500:]
    assert (flagged & faults).sum() >= 0.7 * faults.sum() >= 7
    assert (flagged & faults).sum() >= 0.7 * flagged.sum()
    assert detector.n_nodes > 5


def test_the_same_seed_gives_the_same_stream() -> None:
    first, again, other = (list(islice(readings(seed), 50)) for seed in (1, 1, 2))
    assert first == again != other


def test_labels_come_late_and_for_some() -> None:
    recorder = Recorder()
    feed_past(Feeder(recorder, "s", readings(0), 0), 500, 10.0, now=1000.0)
    times = [time for kind, sent in recorder.events if kind == "samples" for time in sent]
    assert times == pytest.approx(np.arange(950.0, 1000.0, 0.1))
    labelled = [seq for kind, sent in recorder.events if kind == "labels" for seq in sent]
    flagged = [seq for seq in labelled if seq % 7 == 0]
    assert labelled == sorted(set(labelled))
    assert 0.3 * 62 < len(flagged) < 0.9 * 62
    assert 0 < len(labelled) - len(flagged) < 50


def test_live_readings_keep_to_the_rate_and_end_when_asked() -> None:
    recorder, time = Recorder(), [0.0]

    def wait(seconds: float) -> bool:
        time[0] += seconds
        return time[0] > 5.0

    feed_live(Feeder(recorder, "s", readings(0), 0), None, 4.0, lambda: time[0], wait)
    times = [sent[0] for kind, sent in recorder.events if kind == "samples"]
    assert times == pytest.approx(np.arange(0.25, 5.01, 0.25))


def test_the_command_serves_what_it_feeds_and_ends_with_ctrl_c() -> None:
    with subprocess.Popen([*ITAN, "demo", "--rate", "50"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            found = re.match(r"itan demo: open (http://[^/]+)/#/streams/pump in a browser", said)
            assert found, said
            with httpx2.Client(base_url=found[1], trust_env=False, timeout=30) as http:
                assert http.get("/").headers["content-type"].startswith("text/html")
                before = http.get("/streams/pump").json()
                assert before["ready"]
                assert before["costs"]["labels"] > 0
                while http.get("/streams/pump").json()["n_seen"] < before["n_seen"] + 20:
                    pass
            process.send_signal(signal.SIGINT)
            assert re.fullmatch(r"itan demo: \d+ samples, \d+ of them flagged\n", process.stdout.read())
            assert process.wait(30) == 0
        finally:
            process.kill()
