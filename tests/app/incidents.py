"""A stream in which incidents happen: ordinary samples, and samples far from them."""

from typing import Any

import numpy as np

from tests.app.harness import Service

FAR = [8.0, 8.0]


def ordinary(n: int, seed: int = 0) -> list[list[float]]:
    """Make samples of one cluster."""
    return np.random.default_rng(seed).normal(size=(n, 2)).tolist()


def outage(n: int, seed: int = 0) -> list[list[float]]:
    """Make samples of a thing that broke and moves on: far off, each a little different."""
    return (np.array(FAR) + 0.3 * np.random.default_rng(seed).normal(size=(n, 2))).tolist()


async def begin(service: Service, n: int = 1_000, seed: int = 0, **config: Any) -> None:
    """Create a stream of two features, and let it see ordinary samples."""
    await service.accepted("PUT", "/streams/s", json={"n_features": 2, **config})
    await service.observe(ordinary(n, seed))


async def broken(service: Service, n: int = 12, seed: int = 0) -> dict[str, Any]:
    """Let n samples of an outage come."""
    return await service.observe(outage(n, seed))


async def open_incident(service: Service) -> int | None:
    """Give the incident that is open now."""
    return (await service.accepted("GET", "/streams/s"))["incident"]
