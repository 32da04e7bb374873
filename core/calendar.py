"""Where in its day, week or other period a moment lies, as points of circles: columns that are known and not scored."""

from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from core.arrays import FloatArray
from core.config import Calendar
from core.config.values import HARMONICS, SECONDS

RADIUS: Final = 2.0
"""Of the circles, in deviations of the scaled space, so wide that the tree cuts along them. Chosen by hand."""
STEP: Final = 900.0
"""Seconds: since 1972 every zone's offset from UTC has changed at whole quarters of an hour only."""
FIRST_MONDAY: Final = 4 * SECONDS["day"]
"""1970-01-05, where a week begins."""
_YEARS: Final = -62_135_510_400.0, 253_402_214_400.0
"""The clocks of zones are known from the first day of year 1 to the last one of year 9999, a day less at each end."""


def calendar_columns(calendar: Calendar, time: FloatArray) -> FloatArray:
    """Sines and cosines (n, columns) of where moments (n,), in seconds since 1970, lie in each period; NaN for NaN.

    Named periods follow the local clock, the others UTC.

    >>> calendar_columns(Calendar(("day",), "Europe/Berlin"), np.array([1751335200.0])).round(3)  # 04:00 there
    array([[ 1.732,  1.   ,  1.732, -1.   ]])
    """
    local = time + _offset(calendar.timezone, time) - FIRST_MONDAY
    columns = []
    for period, seconds in zip(calendar.periods, calendar.seconds, strict=True):
        share = np.mod(local if isinstance(period, str) else time, seconds) / seconds
        for harmonic in range(1, HARMONICS + 1):
            columns += [np.sin(2 * np.pi * harmonic * share), np.cos(2 * np.pi * harmonic * share)]
    return RADIUS * np.stack(columns, 1)


def _offset(timezone: str, time: FloatArray) -> FloatArray:
    """Seconds (n,) that the local clock is ahead of UTC at these moments (n,); 0 for NaN."""
    quarters = np.floor(np.clip(np.nan_to_num(time), *_YEARS) / STEP)
    known, place = np.unique(quarters, return_inverse=True)
    return np.array([_offset_in(timezone, quarter) for quarter in known.tolist()])[place]


@lru_cache(maxsize=4096)
def _offset_in(timezone: str, quarter: float) -> float:
    offset = datetime.fromtimestamp(quarter * STEP, UTC).astimezone(_zone(timezone)).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


@lru_cache(maxsize=64)
def _zone(timezone: str) -> ZoneInfo:
    """A zone of the package tzdata, whatever the machine has: the same stream has the same clock everywhere."""
    with files("tzdata").joinpath("zoneinfo", *timezone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=timezone)
