"""Checks of the times that come with samples."""

import numpy as np
import numpy.typing as npt

from app.streams.batches.samples import Rows
from app.streams.errors import InvalidTimestamps
from app.streams.faults import Fault
from core import DetectorConfig

EARLIEST = 631_152_000.0  # 1990-01-01T00:00:00Z
LATEST = 4_102_444_800.0  # 2100-01-01T00:00:00Z
SETTING = "ITAN_TIMESTAMP_ALLOWANCE_SECONDS"
UNITS = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}

NEEDED = "one a sample, since the stream has a calendar: epoch seconds, RFC 3339, or null if the time is not known"
KNOWN = "a time: null is only for a stream with a calendar and without half_life_seconds"

Times = npt.NDArray[np.float64]
"""Epoch seconds; NaN where a time is not known, which only a calendar allows."""


def given_times(times: Times | None, rows: Rows, config: DetectorConfig) -> Times | None:
    """Give the times that came with samples, whose places in the request are `rows`.

    Raises InvalidTimestamps if there are none and a calendar needs them, and for unknown ones if it does not.
    """
    if times is None:
        if config.calendar is not None:
            error = InvalidTimestamps("timestamps", None, NEEDED)
            error.rows = rows.tolist()
            raise error
        return None
    if config.calendar is None or config.half_life_seconds is not None:
        unknown = rows[np.isnan(times)]
        if len(unknown):
            faults = (Fault(f"timestamps[{row}]", None, KNOWN) for row in unknown)
            raise InvalidTimestamps.of(faults, unknown.tolist())
    return times


def checked_times(
    times: Times, rows: Rows, newest: float | None, now: float, allowance: float, *, in_order: bool
) -> Times:
    """Give times as the model takes them: a time ahead of the clock counts as now, an unknown one stays unknown.

    Raises InvalidTimestamps for times before 1990, for times further ahead of `now` than the allowance and, if they
    must be in order, for times further behind the newest earlier one. `rows` are their places in the request.
    """
    capped = np.minimum(times, now)
    is_odd = (times < EARLIEST) | (times > now + allowance)
    is_late = (
        ~is_odd & (capped < newest_before(capped, is_odd, newest) - allowance) if in_order else np.zeros_like(is_odd)
    )
    wrong = np.flatnonzero(is_odd | is_late)
    if len(wrong):
        latest = now + allowance
        ahead = f"epoch seconds from 1990 to {allowance:g} seconds ({SETTING}) ahead of the service's clock"
        behind = f"at most {allowance:g} seconds ({SETTING}) before the newest one accepted"
        faults = (
            Fault(
                f"timestamps[{rows[i]}]",
                float(times[i]),
                ahead + advice(float(times[i]), latest) if is_odd[i] else behind,
            )
            for i in wrong
        )
        raise InvalidTimestamps.of(faults, rows[wrong].tolist())
    return capped


def newest_before(capped: Times, is_odd: npt.NDArray[np.bool_], newest: float | None) -> Times:
    """Give the newest time accepted before each; none of them is ahead of the clock."""
    start = -np.inf if newest is None else newest
    taken = np.where(is_odd, -np.inf, capped)
    return np.maximum.accumulate(np.concatenate(([start], taken)))[:-1]


def advice(time: float, latest: float) -> str:
    """Say what to divide by if a time looks like another unit."""
    for unit, factor in UNITS.items():
        if EARLIEST <= time / factor <= latest:
            return f": these look like {unit}, divide them by {factor:.0f}"
    return ""
