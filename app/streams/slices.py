"""Cuts long work into slices, so that other requests have their turn in between; the cuts change no result."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from copy import deepcopy
from time import perf_counter, thread_time
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from core import Detector, Feedback, InvalidState, Observation, Records

Column = TypeVar("Column", npt.NDArray[np.float64], npt.NDArray[np.bool_])

FIRST_ROWS = 16
MAX_ROWS = 256
SLICE_SECONDS = 0.02

NoteWork = Callable[[float], None]
"""Takes note of CPU seconds that the engine has worked."""


def unnoted(_: float) -> None:
    """Take no note."""


async def slices(
    n: int, first: int = FIRST_ROWS, most: int = MAX_ROWS, note_work: NoteWork = unnoted
) -> AsyncIterator[slice]:
    """Cut n items into slices that take about SLICE_SECONDS each; other tasks run between two slices.

    A sample costs between 2 us and 20 ms, depending on the number of features and the age of the stream.
    """
    start, size = 0, first
    while start < n:
        if start:
            await asyncio.sleep(0)
        began, work_began = perf_counter(), thread_time()
        yield slice(start, start + size)
        note_work(thread_time() - work_began)
        start += size
        size = max(1, size // 2) if perf_counter() - began > SLICE_SECONDS else min(2 * size, most)


async def observe_slices(
    detector: Detector,
    X: npt.NDArray[np.float64],
    times: npt.NDArray[np.float64] | None,
    *,
    held_out: npt.NDArray[np.bool_] | None = None,
    explain: bool = False,
    note_work: NoteWork = unnoted,
) -> list[Observation]:
    """Observe samples (n, m) with times (n,), if they have any, some of them held out; other tasks run first."""
    await asyncio.sleep(0)
    return [
        detector.observe(X[part], some(times, part), held_out=some(held_out, part), explain=explain)
        async for part in slices(len(X), note_work=note_work)
    ]


def some(column: Column | None, rows: slice) -> Column | None:
    """Give some rows of a column (n,), if there is one."""
    return None if column is None else column[rows]


async def feedback_slices(
    detector: Detector, records: Records, labels: Sequence[bool | None], note_work: NoteWork = unnoted
) -> Feedback:
    """Give the detector labels for different samples, one a record."""
    incident = detector.incident
    parts = [detector.feedback(records[part], labels[part]) async for part in slices(len(records), note_work=note_work)]
    return Feedback(
        [outcome for part in parts for outcome in part.outcome],
        np.concatenate([part.retracted for part in parts]),
        parts[0].threshold_before,
        parts[-1].threshold_after,
        [incident] if incident and not detector.incident else [],  # a later slice may take back what one has done
        Records.joined([part.records for part in parts], detector.config.n_features),
    )


def isolated(detector: Detector, n: int, first: int) -> Detector:
    """Give a detector that other tasks do not change while n items are read: a copy if they take several slices."""
    return detector if n <= first else copy_of(detector)


def copy_of(detector: Detector) -> Detector:
    """Copy a detector, also one whose state could not be read back."""
    try:
        return Detector.from_bytes(detector.to_bytes())
    except InvalidState:
        return deepcopy(detector)


async def join_slices(records: list[Records]) -> Records:
    """Concatenate many short records; there is at least one."""
    m = records[0].x.shape[1]
    return Records.joined([Records.joined(records[part], m) async for part in slices(len(records))], m)
