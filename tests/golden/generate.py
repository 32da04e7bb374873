"""Keeps streams of the present version: `uv run python -m tests.golden.generate`, once before a version changes.

What is there of a version is never written again: it says what that version did.
"""

import asyncio
from typing import Any

import numpy as np

from app.storage.memory import MemoryStore
from core import Detector
from core.engine.state import VERSION
from tests.app.harness import NOW, Service, blobs
from tests.golden.golden import Answers, Golden, path_of, write

CONFIGS: dict[str, dict[str, Any]] = {
    "default": {"n_features": 3},
    "diagonal": {"n_features": 4, "family": "gaussian_diagonal", "threshold": "hindsight"},
    "paper": {"n_features": 2, "profile": "paper"},
    "warming": {"n_features": 2, "warmup": 200},
    "context": {
        "features": [{"name": "latency"}, {"name": "errors"}, {"name": "load", "role": "context"}],
        "calendar": {"periods": [60.0, "day"]},
    },
}
BATCHES = (40, 1, 25, 1, 1, 30)
SAVED_AFTER = 3


async def live(config: dict[str, Any]) -> Golden:
    """Run a stream through batches with ids, times and missing values, and labels of all kinds; then crash."""
    store = MemoryStore()
    X, start = samples(config.get("n_features", 3)), 0
    async with Service(store) as service:
        await service.accepted("PUT", "/streams/s", json=config)
        for number, size in enumerate(BATCHES):
            await observe(service, X, start, size)
            start += size
            await service.feedback(*labels(start))
            if number + 1 == SAVED_AFTER:
                await service.registry.save(service.registry.sessions["s"])
        following = [[float(x) for x in row] for row in X[start:]]
        snapshot, _ = await store.load("s") or (None, None)
        assert snapshot is not None
        entries = await store.entries("s", snapshot.position, 1000)
        kept = await store.find_labels("s", range(1, start + 1))
        detector = await engine(service)
        await service.crash()
    out = detector.observe(X[start:], times(start, len(X)))
    return Golden(
        tuple(snapshot.position),
        snapshot.body,
        [(tuple(entry.position), entry.body, entry.first_seq, list(entry.ids)) for entry in entries],
        kept,
        following,
        Answers(out.score.tolist(), out.threshold.tolist(), out.is_anomaly.tolist()),
    )


def samples(m: int) -> np.ndarray:
    """Make samples, some of them with a value missing."""
    X = blobs(sum(BATCHES) + 10, m, seed=m) / 30.0
    X[7::13, 0] = np.nan
    return X


async def observe(service: Service, X: np.ndarray, start: int, size: int) -> None:
    """Post a batch."""
    places = range(start, start + size)
    rows = [[None if np.isnan(x) else float(x) for x in X[i]] for i in places]
    await service.observe(rows, ids=[f"i{i}" for i in places], timestamps=times(start, start + size))


def times(start: int, end: int) -> list[float]:
    """Give the times of these samples, none ahead of the clock of a test."""
    return [float(NOW - 1000 + i) for i in range(start, end)]


def labels(seen: int) -> list[dict[str, Any]]:
    """Make labels for some of the samples seen: new ones, repeated ones, revised ones, and one that is withdrawn."""
    given = [{"seq": seq, "anomaly": seq % 3 == 0} for seq in range(2, seen + 1, 6)]
    return [*given, {"seq": seen, "anomaly": seen % 2 == 0}, {"seq": 1, "anomaly": None if seen > 60 else True}]


async def engine(service: Service) -> Detector:
    """Give a copy of the stream's engine."""
    async with service.registry.reading("s") as session:
        return Detector.from_bytes((await session.state()).detector.to_bytes())


def main() -> None:
    """Write what is not there yet."""
    for name, config in CONFIGS.items():
        path = path_of(str(VERSION), name)
        if not path.exists():
            write(path, asyncio.run(live(config)))
            print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
