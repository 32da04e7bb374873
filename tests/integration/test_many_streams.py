"""Many more streams than memory holds: each answers as if it had never been closed.

The long run: `ITAN_TEST_STREAMS=10000 ITAN_TEST_BUDGET_MB=256 ITAN_TEST_REQUESTS=40000 pytest -s <this file>`.
"""

import gc
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pytest

from app.storage.sqlite import SqliteStore
from app.streams.open.clock import Clock
from core import Detector, DetectorConfig
from tests.app.harness import Service

STREAMS = int(os.environ.get("ITAN_TEST_STREAMS", "500"))
BUDGET_MB = float(os.environ.get("ITAN_TEST_BUDGET_MB", "4"))
REQUESTS = int(os.environ.get("ITAN_TEST_REQUESTS", STREAMS * 3 // 2))
CONFIG = {"n_features": 12, "warmup": 4}
"""Wide, and soon ready: large engines for little work."""
MOST_SAMPLES = 6
LABELLED = 0.2
SEED = 11
FLAT_MB = 40
"""What a process may grow by beside its streams: caches, pages of the allocator, of SQLite."""


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service with little memory, and a clock that runs."""
    async with Service(SqliteStore(tmp_path / "itan.db"), Clock(), memory_budget_mb=BUDGET_MB) as running:
        yield running


class Streams:
    """What was sent to each stream, as seeds, and what it answered."""

    def __init__(self) -> None:
        self.dice = random.Random(SEED)
        self.seen: Counter[int] = Counter()
        self.answers: dict[int, list[tuple[np.ndarray, bool | None]]] = {}
        self.seconds: list[float] = []

    async def request(self, service: Service) -> None:
        """Send samples to a stream at random, or a label."""
        number = self.dice.randrange(STREAMS)
        seen = self.seen[number]
        label = self.dice.random() < 0.5 if seen and self.dice.random() < LABELLED else None
        started = perf_counter()
        if not seen:
            await service.accepted("PUT", f"/streams/s{number}", json=CONFIG)
        if label is None:
            X = samples(number, seen, self.dice.randint(1, MOST_SAMPLES))
            answer = await service.observe(X, f"s{number}")
            said = np.array([answer["score"], answer["threshold"]], dtype=float)
            self.seen[number] += len(X)
        else:
            answer = await service.feedback({"seq": seen, "anomaly": label}, stream=f"s{number}")
            said = np.array([answer["threshold_after"]], dtype=float)
        self.seconds.append(perf_counter() - started)
        self.answers.setdefault(number, []).append((said, label))

    def compare(self, number: int) -> None:
        """Let a detector that was never closed answer the same."""
        detector, seen, records = Detector(DetectorConfig(**CONFIG)), 0, None
        for said, label in self.answers[number]:
            if label is None:
                out = detector.observe(samples(number, seen, said.shape[1]))
                seen, records = seen + said.shape[1], {int(r): out.records[i] for i, r in enumerate(out.seq)}
                expected = np.array([out.score, out.threshold])
            else:
                assert records is not None
                result = detector.feedback(records[seen], [label])
                records[seen] = result.records
                expected = np.array([result.threshold_after])
            np.testing.assert_array_equal(said, expected)


def samples(number: int, seen: int, n: int) -> np.ndarray:
    """Make the next samples of a stream."""
    return np.random.default_rng((number, seen)).normal(size=(n, CONFIG["n_features"]))


def resident_mb() -> float:
    """Give the memory of this process."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def figures(service: Service, streams: Streams, resident: list[float]) -> dict[str, Any]:
    """Say how it went."""
    opened, seconds = await service.metric("itan_streams_opened_total"), np.array(streams.seconds)
    return {
        "streams": len(streams.answers),
        "open": await service.metric("itan_open_streams"),
        "held_mb": round(await service.metric("itan_open_stream_bytes") / 2**20, 1),
        "resident_mb": [round(mb) for mb in resident],
        "opened": opened,
        "opens_per_cpu_second": round(opened / process_time()),
        "cpu_ms_per_request": round(1e3 * process_time() / len(seconds), 1),
        "ms_p50_p99": [round(1e3 * float(q), 1) for q in np.quantile(seconds, [0.5, 0.99])],
    }


@pytest.mark.timeout(3600)
async def test_every_answer_is_that_of_a_stream_that_was_never_closed(service: Service) -> None:
    streams, resident = Streams(), [resident_mb()]
    for number in range(REQUESTS):
        await streams.request(service)
        assert service.registry.held_bytes < 1.1 * BUDGET_MB * 2**20 + 100_000
        if (number + 1) % (REQUESTS // 8) == 0:
            resident.append(resident_mb())
    print(await figures(service, streams, resident))
    assert await service.metric("itan_streams_opened_total") > STREAMS / 10
    assert await service.metric("itan_snapshot_failures_total") == 0
    assert max(resident) < resident[0] + 1.5 * BUDGET_MB + FLAT_MB
    assert resident[-1] < resident[4] + 0.2 * BUDGET_MB + FLAT_MB / 2
    for number in streams.answers:
        streams.compare(number)
