"""A made-up pump station: regimes, a slow drift, and faults of two kinds."""

from collections.abc import Iterator
from itertools import count
from typing import Final

import numpy as np
import numpy.typing as npt

from app.demo.reading import Reading

FEATURES: Final = ("flow", "pressure", "power", "temperature")
SPREAD: Final = np.array([4.0, 0.15, 2.0, 0.8])
REGIMES: Final = np.array(
    [
        [40.0, 3.2, 22.0, 31.0],  # night
        [95.0, 5.0, 61.0, 44.0],  # day
        [70.0, 2.1, 75.0, 52.0],  # flushing
    ]
)
LINKED: Final = 0.85
"""How closely flow and power go together within a regime."""
STAY: Final = 0.93
DRIFT: Final = np.array([0.0, 0.0, 3.0, 5.0])
DRIFT_SAMPLES: Final = 4_000
FAULT_RATE: Final = 0.02


def readings(seed: int) -> Iterator[Reading]:
    """Give endless readings."""
    lot = np.random.default_rng(seed)
    regime = 0
    for n in count():
        if lot.random() > STAY:
            regime = int(lot.integers(len(REGIMES)))
        is_fault = bool(lot.random() < FAULT_RATE)
        x = normal(lot, regime, n)
        if is_fault:
            x = leak(lot, x) if lot.random() < 0.5 else mismatch(lot, x, regime, n)
        yield Reading(dict(zip(FEATURES, np.round(x, 3).tolist(), strict=True)), is_fault)


def normal(lot: np.random.Generator, regime: int, n: int) -> npt.NDArray[np.float64]:
    """Give a sample of a regime whose level drifts with the seasons."""
    noise = lot.normal(size=len(FEATURES))
    noise[2] = LINKED * noise[0] + np.sqrt(1 - LINKED**2) * noise[2]
    season = np.sin(2 * np.pi * n / DRIFT_SAMPLES)
    x: npt.NDArray[np.float64] = REGIMES[regime] + SPREAD * noise + season * DRIFT
    return x


def leak(lot: np.random.Generator, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Let the pressure fall far below any normal value."""
    return x * [1.0, lot.uniform(0.1, 0.4), 1.0, 1.0]


def mismatch(lot: np.random.Generator, x: npt.NDArray[np.float64], regime: int, n: int) -> npt.NDArray[np.float64]:
    """Take power and temperature from another regime: each value is normal, but they never occur together."""
    other = normal(lot, (regime + 1) % len(REGIMES), n)
    return np.concatenate([x[:2], other[2:]])
