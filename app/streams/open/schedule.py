"""When which streams are under maintenance."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from app import patterns

MOST_KNOWN: Final = 100_000
"""Streams whose periods are remembered."""


class Period(NamedTuple):
    """A stretch of time, in epoch seconds: begin lies in it, end does not."""

    begin: float
    end: float


class Schedule:
    """The periods of each stream; each is given as a pattern of streams, its begin and its end."""

    def __init__(self, periods: Iterable[tuple[str, float, float]] = ()) -> None:
        self._periods = [(pattern, Period(begin, end)) for pattern, begin, end in periods]
        self._of: dict[str, Sequence[Period]] = {}

    def of(self, stream: str) -> Sequence[Period]:
        """Give the periods of a stream."""
        if not self._periods:
            return ()
        if stream not in self._of:
            if len(self._of) >= MOST_KNOWN:
                self._of.clear()
            self._of[stream] = [period for pattern, period in self._periods if patterns.fits(pattern, stream)]
        return self._of[stream]


EMPTY: Final = Schedule()
ReadSchedule = Callable[[], Awaitable[Schedule]]
"""Gives the schedule as it is, or was a few seconds ago."""


async def nothing_planned() -> Schedule:
    """Give a schedule without a period."""
    return EMPTY


def in_periods(
    periods: Sequence[Period], times: npt.NDArray[np.float64] | None, n: int, now: float
) -> npt.NDArray[np.bool_] | None:
    """Tell which of n samples lie in periods, by their times, or by now where a time is not known; None if none."""
    if not periods:
        return None
    when = np.full(n, now) if times is None else np.where(np.isnan(times), now, times)
    found = np.zeros(n, np.bool_)
    for begin, end in periods:
        found |= (begin <= when) & (when < end)
    return found if found.any() else None
