"""A made-up shop: requests and their latency follow the day and the week, and faults are values of another time."""

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import numpy as np

from app.demo.reading import Reading

CONFIG: Final[dict[str, Any]] = {
    "features": [{"name": "requests"}, {"name": "latency_ms"}],
    "calendar": {"periods": ["day", "week"], "timezone": "UTC"},
}
STEP_SECONDS: Final = 900.0
BEGIN: Final = 1_104_710_400.0
"""2005-01-03, a Monday: at 8 samples a second the present is a day away."""
PEAK: Final = 120.0
NIGHT: Final = 15.0
WEEKEND: Final = 0.45
NOISE: Final = 0.06
IDLE_MS: Final = 18.0
LOADED_MS: Final = 0.25
FAULT_RATE: Final = 0.01
FAULT_SHIFT: Final = 12 * 3600.0


def times() -> Iterator[float]:
    """Give the times of the readings, in epoch seconds."""
    return (BEGIN + STEP_SECONDS * n for n in count())


def readings(seed: int) -> Iterator[Reading]:
    """Give endless readings; a fault is what would be usual half a day away."""
    lot = np.random.default_rng(seed)
    for time in times():
        is_fault = bool(lot.random() < FAULT_RATE)
        requests = usual(time + FAULT_SHIFT * is_fault) * np.exp(NOISE * lot.normal())
        latency = (IDLE_MS + LOADED_MS * requests) * np.exp(NOISE * lot.normal())
        values = {"requests": round(float(requests), 1), "latency_ms": round(float(latency), 2)}
        yield Reading(values, is_fault)


def usual(time: float) -> float:
    """Give the usual requests a second: few at night, fewer at the weekend."""
    day, hour = divmod((time - BEGIN) / 3600, 24)
    shape = np.exp(-(((hour - 13.5) / 4.5) ** 4))
    return float(NIGHT + (PEAK - NIGHT) * shape * (WEEKEND if day % 7 >= 5 else 1.0))
