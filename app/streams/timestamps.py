"""Plausibility of the times that come with samples."""

import numpy as np
import numpy.typing as npt

from app.streams.errors import InvalidTimestamps

EARLIEST = 631_152_000.0  # 1990-01-01T00:00:00Z
AHEAD_SECONDS = 86_400.0

Times = npt.NDArray[np.float64]


def check_timestamps(
    times: Times, rows: npt.NDArray[np.intp], newest: float | None, now: float, allowance: float
) -> None:
    """Raise InvalidTimestamps for the first time that is out of range or too far behind the newest one.

    `rows` are the places of these times in the request. The range tells seconds from milli- and nanoseconds.
    """
    refuse(
        times, rows, (times < EARLIEST) | (times > now + AHEAD_SECONDS), "epoch seconds from 1990 to one day from now"
    )
    start = -np.inf if newest is None else newest
    newest_before = np.maximum.accumulate(np.concatenate(([start], times)))[:-1]
    behind = f"at most {allowance:g} seconds (ITAN_TIMESTAMP_ALLOWANCE_SECONDS) before the newest one accepted"
    refuse(times, rows, times < newest_before - allowance, behind)


def refuse(times: Times, rows: npt.NDArray[np.intp], wrong: npt.NDArray[np.bool_], limit: str) -> None:
    """Raise InvalidTimestamps for the first time that is wrong."""
    if wrong.any():
        i = int(wrong.argmax())
        raise InvalidTimestamps(f"timestamps[{rows[i]}]", float(times[i]), limit)
