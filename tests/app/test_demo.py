"""The made-up stream and its feeder; and the command, as a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx2
import numpy as np
import pytest

from app.client import Feedback, Observed
from app.commands.demo import HISTORY
from app.demo.feeding import LABEL_DELAY, Feeder, feed_live, feed_past
from app.demo.pump import FEATURES, Reading, readings
from core import Detector, DetectorConfig, Feature, Records
from tests.processes import wait_until

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
        return Observed([1.0] * n, [2.0] * n, [number % 7 == 0 for number in seq], [True] * n, [0.0] * n, seq=seq)

    def feedback(self, stream: str, labels: Any) -> Feedback | None:
        self.events.append(("labels", [label["seq"] for label in labels]))
        assert all(label["seq"] <= self.n_seen - LABEL_DELAY for label in labels)
        return None


class InProcess:
    """Stands in for the client and the service: a detector learns what it is sent."""

    def __init__(self) -> None:
        self.detector = Detector(DetectorConfig(features=tuple(Feature(name) for name in FEATURES)))
        self.records: list[Records] = []
        self.flagged: list[bool] = []

    def observe(self, stream: str, samples: Any, timestamps: Any) -> Observed:
        told = self.detector.observe([list(values.values()) for values in samples])
        self.records += [told.records[[i]] for i in range(len(samples))]
        self.flagged += told.is_anomaly.tolist()
        n = len(samples)
        return Observed([], [], told.is_anomaly.tolist(), [True] * n, [0.0] * n, seq=told.records.seq.tolist())

    def feedback(self, stream: str, labels: Any) -> None:
        known = [self.records[label["seq"] - 1] for label in labels]
        told = self.detector.feedback(Records.concatenate(known), [label["anomaly"] for label in labels])
        for place in range(len(told.records)):
            self.records[told.records.seq[place] - 1] = told.records[[place]]


def test_the_demo_begins_with_flags_in_view_and_finds_most_faults_and_little_else() -> None:
    truth: list[bool] = []

    def noted() -> Iterator[Reading]:
        for reading in readings(seed=0):
            truth.append(reading.is_fault)
            yield reading

    shown = InProcess()
    feed_past(Feeder(shown, "s", noted(), 0), 3_000, 8.0, now=1000.0)
    assert any(shown.flagged[HISTORY - 400 : HISTORY])
    flagged, faults = np.array(shown.flagged)[HISTORY:], np.array(truth)[HISTORY:3_000]
    assert (flagged & faults).sum() >= 0.7 * faults.sum() >= 7
    assert (flagged & faults).sum() >= 0.7 * flagged.sum()
    assert shown.detector.n_nodes > 5


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
                wait_until(lambda: http.get("/streams/pump").json()["n_seen"] >= before["n_seen"] + 20)
            process.send_signal(signal.SIGINT)
            assert re.fullmatch(r"itan demo: \d+ samples, \d+ of them flagged\n", process.stdout.read())
            assert process.wait(30) == 0
        finally:
            process.kill()
