"""The values of a replay with the band in which they were expected, to be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.replay.feed import Outcome
from app.replay.report import Report
from app.streams.batches.timestamps import EARLIEST, LATEST
from itan_client import ApiError, Band, Client

LEVELS = (0.05, 0.5, 0.95)
POINTS = 2000
MOST_SIGNALS = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Signal:
    """One feature over seq, or over time in epoch seconds: its values, and what is expected of it now."""

    feature: str
    by_time: bool
    x: Floats
    values: Floats
    band_x: Floats
    low: Floats
    middle: Floats
    high: Floats


def signals_of(client: Client, report: Report, outcome: Outcome) -> list[Signal]:
    """Give the first features that are no context, if the stream has any context and is ready."""
    if not outcome.batches or not (report.context or report.calendar):
        return []
    times = outcome.times if report.timestamps else None
    names = report.features or [str(place) for place in range(outcome.values.shape[1])]
    shown = [name for name in names if name not in report.context][:MOST_SIGNALS]
    try:
        return [_signal(client, report, outcome, times, name, names.index(name)) for name in shown]
    except ApiError as error:
        if error.code != "not_ready":
            raise
        return []


def _signal(client: Client, report: Report, outcome: Outcome, times: Floats | None, name: str, place: int) -> Signal:
    """With features that are context, the band stands at samples; else at moments of the calendar."""
    values = outcome.values[:, place]
    if report.context or times is None:
        band = client.band(report.stream, name, EARLIEST, LATEST, LEVELS, POINTS)
        return _drawn(band, name, np.array(outcome.seq, dtype=np.float64), values, band.seq or [])
    band = client.band(report.stream, name, float(times.min()), float(times.max()), LEVELS, POINTS)
    return _drawn(band, name, times, values, None)


def _drawn(band: Band, name: str, x: Floats, values: Floats, seqs: Sequence[int] | None) -> Signal:
    low, middle, high = np.array(band.values, dtype=np.float64)
    band_x = np.array(band.time if seqs is None else seqs, dtype=np.float64)
    order = np.argsort(band_x, kind="stable")
    return Signal(name, seqs is None, x, values, band_x[order], low[order], middle[order], high[order])
