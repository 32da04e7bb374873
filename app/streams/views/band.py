"""Between which values a feature is expected: at moments of a calendar, or at the recorded contexts of samples."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.storage import Position
from app.streams.batches.samples import Matrix
from app.streams.batches.timestamps import Times
from app.streams.slices import slices
from app.streams.views.columns import Columns
from app.streams.views.history import MAX_SCANNED, LogView, samples_in
from core import Detector, DetectorConfig

FIRST_READ = 1024
"""Samples that are read at first, back from the newest one; then four times as many."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a band is to be drawn: moments, and what is known of the context there.

    stamp is NaN where the calendar is not known. seq (n,) and contexts (n, c) are those of samples, where the stream
    has features that are context.
    """

    time: Times
    stamp: Times
    seq: npt.NDArray[np.int64] | None = None
    contexts: Matrix | None = None


@dataclass(frozen=True, slots=True)
class Band:
    """Quantiles (n, q) of a feature at n places."""

    as_of_seq: int
    places: Places
    quantiles: Matrix


class Bands:
    """Computes bands one at a time, so that many requests together never hold the loop for long."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def band(self, detector: Detector, feature: int, levels: Sequence[float], places: Places) -> Band:
        """Give the band of the present model at these places. Raises NotReady before there is a density."""
        async with self._turn:
            as_of_seq, n = detector.next_seq - 1, len(places.time)
            # a copy: the stream goes on meanwhile
            expected = detector.band(feature)
            if not n:
                return Band(as_of_seq, places, np.empty((0, len(levels))))
            if places.contexts is None and detector.config.calendar is None:
                return Band(as_of_seq, places, expected.quantiles(levels).repeat(n, axis=0))
            contexts, times = places.contexts, places.stamp
            parts = [
                expected.quantiles(levels, None if contexts is None else contexts[part], times[part])
                async for part in slices(n)
            ]
        return Band(as_of_seq, places, np.concatenate(parts))


def evenly(first: float, last: float, points: int) -> Places:
    """Give moments that are as far from each other, from the first to the last."""
    time = np.linspace(first, last, points)
    return Places(time, time)


async def recorded(
    view: LogView, config: DetectorConfig, first: float, last: float, points: int, until: int | None
) -> Places:
    """Give the samples of a time up to the sample `until`, with their contexts: at most `points`, in order of time."""
    context = [feature for feature in config.context if feature < config.n_features]
    end = view.head.seq if until is None else min(until, view.head.seq)
    rows = await samples_between(view, context, first, last, end)
    if rows is None:
        return Places(np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty((0, len(context))))
    rows = rows[np.argsort(rows.time, kind="stable")]
    if len(rows) > points:
        rows = rows[np.linspace(0, len(rows) - 1, points).round().astype(np.intp)]
    return Places(rows.time, rows.stamp, rows.seq, rows.x)


async def samples_between(view: LogView, context: Sequence[int], first: float, last: float, end: int) -> Columns | None:
    """Give the samples of a time, with these columns, among MAX_SCANNED up to the sample `end`; None if there are none.

    The log is read back from there until a part of it holds a sample before that time: in a log that is not in the
    order of time, samples before that part are left out.
    """
    size, found = FIRST_READ, list[Columns]()
    oldest, earliest = max(view.oldest_seq, end - MAX_SCANNED + 1), math.inf
    while end >= oldest and earliest >= first:
        start, part = max(oldest, end - size + 1), list[Columns]()
        async for rows in samples_of(view, start, end):
            earliest = min(earliest, float(rows.time.min()))
            inside = rows[(first <= rows.time) & (rows.time <= last)]
            part.append(replace(inside, x=inside.x[:, context]))
        found, end, size = part + found, start - 1, 4 * size
    return Columns.joined(found) if found else None


async def samples_of(view: LogView, first: int, last: int) -> AsyncIterator[Columns]:
    """Give the samples first to last, page by page."""
    async for entries in view.log.pages(Position.before(first)):
        rows = samples_in(entries, first, last)
        if rows is not None and len(rows):
            yield rows
        if entries[-1].position.seq >= last:
            return
