"""The made-up stream and its feeder; and the command, as a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import httpx2
import numpy as np
import pytest

from app.commands.demo import HISTORY, SHOP_HISTORY
from app.demo import shop
from app.demo.feeding import LABEL_DELAY, Feeder, feed_live, feed_past
from app.demo.pump import FEATURES, readings
from app.demo.reading import Reading
from core import Detector, DetectorConfig, Feature, Records
from itan_client import Feedback, Observed
from tests.processes import wait_until

ITAN = [sys.executable, "-m", "app.cli"]


class Recorder:
    """Stands in for the client: every seventh sample is flagged."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.n_seen = 0

    def observe(self, stream: str, samples: Any, ids: Any, timestamps: Any) -> Observed:
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

    def __init__(self, config: DetectorConfig) -> None:
        self.detector = Detector(config)
        self.records: list[Records] = []
        self.flagged: list[bool] = []

    def observe(self, stream: str, samples: Any, ids: Any, timestamps: Any) -> Observed:
        told = self.detector.observe([list(values.values()) for values in samples], timestamps)
        self.records += [told.records[[i]] for i in range(len(samples))]
        self.flagged += told.is_anomaly.tolist()
        n = len(samples)
        return Observed([], [], told.is_anomaly.tolist(), [True] * n, [0.0] * n, seq=told.records.seq.tolist())

    def feedback(self, stream: str, labels: Any) -> None:
        known = [self.records[label["seq"] - 1] for label in labels]
        told = self.detector.feedback(Records.concatenate(known), [label["anomaly"] for label in labels])
        for place in range(len(told.records)):
            self.records[told.records.seq[place] - 1] = told.records[[place]]


def noted(readings: Iterator[Reading], truth: list[bool]) -> Iterator[Reading]:
    """Give readings, and note which of them are faults."""
    for reading in readings:
        truth.append(reading.is_fault)
        yield reading


def test_the_shop_is_learned_with_its_calendar_and_its_faults_are_found() -> None:
    truth: list[bool] = []
    shown = InProcess(DetectorConfig.from_dict(shop.CONFIG))
    n = SHOP_HISTORY + 1_344
    feed_past(Feeder(shown, "s", noted(shop.readings(0), truth), 0), list(islice(shop.times(), n)))
    assert any(shown.flagged[SHOP_HISTORY - 400 : SHOP_HISTORY])
    flagged, faults = np.array(shown.flagged)[SHOP_HISTORY:], np.array(truth)[SHOP_HISTORY:n]
    assert (flagged & faults).sum() >= 0.6 * faults.sum() >= 5
    assert (flagged & faults).sum() >= 0.6 * flagged.sum()


def test_the_shop_begins_on_a_monday_long_before_now() -> None:
    first, second = islice(shop.times(), 2)
    assert datetime.fromtimestamp(first, UTC).strftime("%a %H:%M") == "Mon 00:00"
    assert second - first == 900
    assert shop.usual(first + 13 * 3600) > 3 * shop.usual(first + 3600)
    assert shop.usual(first + 13 * 3600) > 1.5 * shop.usual(first + 6 * 86_400 + 13 * 3600)


def test_the_demo_begins_with_flags_in_view_and_finds_most_faults_and_little_else() -> None:
    truth: list[bool] = []
    shown = InProcess(DetectorConfig(features=tuple(Feature(name) for name in FEATURES)))
    feed_past(Feeder(shown, "s", noted(readings(0), truth), 0), [i / 8.0 for i in range(3_000)])
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
    stamps = np.arange(950.0, 1000.0, 0.1).tolist()
    feed_past(Feeder(recorder, "s", readings(0), 0), stamps)
    assert [time for kind, sent in recorder.events if kind == "samples" for time in sent] == stamps
    labelled = [seq for kind, sent in recorder.events if kind == "labels" for seq in sent]
    flagged = [seq for seq in labelled if seq % 7 == 0]
    assert labelled == sorted(set(labelled))
    assert 0.3 * 62 < len(flagged) < 0.9 * 62
    assert 0 < len(labelled) - len(flagged) < 50


def test_live_readings_keep_to_the_rate_and_end_when_asked() -> None:
    recorder, shop_recorder, time = Recorder(), Recorder(), [0.0]

    def wait(seconds: float) -> bool:
        time[0] += seconds
        return time[0] > 5.0

    feeder, fast = Feeder(recorder, "s", readings(0), 0), Feeder(shop_recorder, "t", shop.readings(0), 0)
    feed_live({feeder: lambda: time[0], fast: shop.times().__next__}, None, 4.0, lambda: time[0], wait)
    shop_times = [sent[0] for kind, sent in shop_recorder.events if kind == "samples"]
    assert shop_times == list(islice(shop.times(), 20))
    times = [sent[0] for kind, sent in recorder.events if kind == "samples"]
    assert times == pytest.approx(np.arange(0.25, 5.01, 0.25))


def test_the_command_serves_what_it_feeds_and_ends_with_ctrl_c() -> None:
    with subprocess.Popen([*ITAN, "demo", "--rate", "50"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            found = re.match(r"itan demo: open (http://[^/]+)/#/streams/pump or \1/#/streams/shop in a browser", said)
            assert found, said
            with httpx2.Client(base_url=found[1], trust_env=False, timeout=30) as http:
                assert http.get("/").headers["content-type"].startswith("text/html")
                before = http.get("/streams/pump").json()
                assert before["ready"]
                assert before["costs"]["labels"] > 0
                shopping = http.get("/streams/shop").json()
                assert shopping["config"]["calendar"]["periods"] == ["day", "week"]
                wait_until(lambda: http.get("/streams/shop").json()["n_seen"] >= shopping["n_seen"] + 20)
                wait_until(lambda: http.get("/streams/pump").json()["n_seen"] >= before["n_seen"] + 20)
            process.send_signal(signal.SIGINT)
            assert re.fullmatch(r"itan demo: \d+ samples, \d+ of them flagged\n", process.stdout.read())
            assert process.wait(30) == 0
        finally:
            process.kill()
