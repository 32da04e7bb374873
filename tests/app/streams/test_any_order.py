"""Whatever happens to a worker in whatever order, its streams are those of a plain detector that nothing happens to."""

import asyncio
import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from app.metrics import Metrics
from app.settings import Settings
from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from app.streams.batches.batch import Batch
from app.streams.batches.rows import ArraySamples
from app.streams.changes.feedback import LabelRequest, label
from app.streams.changes.lifecycle import create
from app.streams.changes.observe import observe
from app.streams.changes.reconfigure import reconfigure
from app.streams.open.registry import Registry
from app.streams.open.shutdown import shut_down
from app.streams.open.tasks import Tasks
from app.streams.open.worker import Worker
from core import Calendar, Detector, DetectorConfig, Feature, Records
from tests.app.harness import NOW, FakeClock, blobs

CONFIG = DetectorConfig(n_features=2, warmup=4, round_growth=0.2)
CALENDAR = DetectorConfig(
    features=(Feature("a"), Feature("b", role="context")),
    warmup=4,
    round_growth=0.2,
    calendar=Calendar(("day", 3600.0)),
)
LEASE_SECONDS = 5
STREAMS = st.sampled_from("ab")
LABELS = st.dictionaries(st.integers(1, 40), st.sampled_from([True, False, None]), min_size=1, max_size=8)
CHANGES = st.sampled_from(
    [
        {"expected_anomaly_rate": 0.2, "cost_false_negative": 3.0},
        {"threshold": "fixed", "threshold_value": 3.0},
        {"threshold": "weighted", "labels_trusted": True, "incident_close_samples": 2},
        {"half_life_samples": 5.0},
        {"half_life_samples": 50.0, "round_growth": 0.5},
        {"learn_from": "decided_normal"},
    ]
)
X = blobs(1000)
TIMES = np.where(np.arange(len(X)) % 9, NOW - 600.0 * np.arange(len(X)), np.nan)
BOUNDED = settings(max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass
class Model:
    """One stream in plain memory: the detector, and what it said of each id."""

    detector: Detector
    first: dict[str, tuple[float, ...]] = field(default_factory=dict)
    records: dict[int, Records] = field(default_factory=dict)

    def observe(self, ids: list[str]) -> list[tuple[float, ...]]:
        """Answer ids that are known as the first time, and learn the others."""
        new = [name for name in ids if name not in self.first]
        if new:
            out = self.detector.observe(X[places(new)], times_of(self.detector.config, new))
            self.first.update(zip(new, rows_of(out), strict=True))
            self.records.update((int(seq), out.records[i]) for i, seq in enumerate(out.seq))
        return [self.first[name] for name in ids]

    def label(self, labels: dict[int, bool | None]) -> list[str]:
        """Apply labels, one a sample."""
        known = [seq for seq in labels if seq in self.records]
        outcome = dict.fromkeys(labels, "unknown")
        if known:
            given = Records.concatenate([self.records[seq] for seq in known])
            result = self.detector.feedback(given, [labels[seq] for seq in known])
            outcome.update(zip(known, result.outcome, strict=True))
            self.records.update((seq, result.records[i]) for i, seq in enumerate(known))
        return list(outcome.values())


def places(ids: list[str]) -> list[int]:
    """Give the samples that have these ids."""
    return [int(name) for name in ids]


def times_of(config: DetectorConfig, ids: list[str]) -> Any:
    """Give the times of samples, if their stream has a calendar."""
    return None if config.calendar is None else TIMES[places(ids)]


def rows_of(answer: Any) -> list[tuple[float, ...]]:
    """Give the columns of an answer as one row a sample."""
    columns = (answer.seq, answer.score, answer.threshold, answer.is_anomaly, answer.ready)
    return list(zip(*(column.astype(float).tolist() for column in columns), strict=True))


class Life(RuleBasedStateMachine):
    """A worker on a store in memory, beside the model."""

    config = CONFIG

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.metrics, self.clock = Metrics("0"), FakeClock()
        self.models = {stream: Model(Detector(self.config)) for stream in "ab"}
        self.fresh = iter(range(len(X)))
        self.memory = MemoryStore(self.clock.monotonic)
        self.workers = 0

    def make_store(self) -> Any:
        """Give the store as it was left."""
        return self.memory

    @initialize()
    def begin(self) -> None:
        self.runner.run(self.start())
        for stream in self.models:
            assert self.run(stream, create, self.config.to_dict())

    async def start(self, worker: str = "0") -> None:
        self.store = self.make_store()
        await self.store.open()
        settings = Settings(worker=worker, lease_seconds=LEASE_SECONDS)
        self.registry = Registry(Worker.of(self.store, settings, self.clock, self.metrics))

    def run(self, stream: str, change: Any, *given: Any) -> Any:
        """Change a stream as a route does."""

        async def changed() -> Any:
            async with self.registry.changing(stream) as session:
                return await change(session, *given)

        return self.runner.run(changed())

    @rule(stream=STREAMS, new=st.integers(1, 6), old=st.integers(0, 3), seed=st.integers(0, 99))
    def observe(self, stream: str, new: int, old: int, seed: int) -> None:
        """Send new samples, some that were sent before among them."""
        dice, known = random.Random(seed), list(self.models[stream].first)
        ids = dice.sample(known, min(old, len(known))) + [str(next(self.fresh)) for _ in range(new)]
        dice.shuffle(ids)
        self.send(stream, ids)

    @precondition(lambda self: all(model.first for model in self.models.values()))
    @rule(stream=STREAMS, n=st.integers(1, 8))
    def duplicate(self, stream: str, n: int) -> None:
        """Send samples again, as a client does that got no answer."""
        self.send(stream, list(self.models[stream].first)[-n:])

    def send(self, stream: str, ids: list[str]) -> None:
        """Observe, and compare the answer with the model's."""
        batch = Batch(ArraySamples(X[places(ids)].tolist()), tuple(ids), times_of(self.config, ids))
        answer = self.run(stream, observe, batch)
        np.testing.assert_array_equal(rows_of(answer), self.models[stream].observe(ids))

    @rule(stream=STREAMS, labels=LABELS)
    def label(self, stream: str, labels: dict[int, bool | None]) -> None:
        """Send labels, also for samples that are not there."""
        labelled = self.run(stream, label, [LabelRequest(anomaly, seq) for seq, anomaly in labels.items()])
        assert labelled.outcome == self.models[stream].label(labels)
        np.testing.assert_equal(labelled.threshold_after, self.models[stream].detector.threshold)

    @rule(stream=STREAMS, changes=CHANGES)
    def reconfigure(self, stream: str, changes: dict[str, Any]) -> None:
        """Change what is possible at any time."""
        self.run(stream, reconfigure, changes)
        self.models[stream].detector.reconfigure(changes)

    @rule(stream=STREAMS, close=st.booleans())
    def snapshot_or_evict(self, stream: str, close: bool) -> None:
        """Store what has changed, and perhaps close the stream."""
        session = self.registry.sessions.get(stream)
        if session is not None:
            assert self.runner.run(self.registry.save(session, closing="room" if close else ""))
            assert (stream in self.registry.sessions) != close

    @rule()
    def crash(self) -> None:
        """End without a word, and begin again when the leases of the dead have ended."""
        self.registry.sessions.clear()
        self.runner.run(self.store.close())
        self.clock.advance(LEASE_SECONDS + 1)
        self.runner.run(self.start(str(self.workers)))

    @rule()
    def move(self) -> None:
        """End in good order; another worker takes over."""
        self.workers += 1
        self.runner.run(self.stop())
        self.runner.run(self.start(str(self.workers)))

    async def stop(self) -> None:
        await shut_down(Tasks(), self.registry, 60.0)
        await self.registry.worker.leases.stop()
        await self.store.close()

    def teardown(self) -> None:
        """Find the engines equal to the last bit, and no replay that came out otherwise."""
        with self.runner:
            for stream, model in self.models.items():
                assert self.run(stream, engine) == model.detector.to_bytes()
            self.runner.run(self.stop())
        assert 'itan_replay_mismatches_total{reason="other"} 0.0' in self.metrics.text().decode()


async def engine(session: Any) -> bytes:
    """Give a stream's engine."""
    return (await session.state()).detector.to_bytes()


class LifeOnSqlite(Life):
    """The same on a file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def make_store(self) -> Any:
        return SqliteStore(Path(self.folder.name) / "itan.db")

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class LifeWithCalendar(Life):
    """The same with context, and with times that are not all known."""

    config = CALENDAR


TestInMemory, TestOnSqlite, TestWithCalendar = Life.TestCase, LifeOnSqlite.TestCase, LifeWithCalendar.TestCase
TestInMemory.settings = TestOnSqlite.settings = TestWithCalendar.settings = BOUNDED
