"""Takes a detector through a lot of work in slices, letting other requests in between: the cut changes no result."""

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from core import Detector, Records
from core.detector import Feedback

SLICE_ROWS = 256
SLICE_LABELS = 32


async def observe_slices(detector: Detector, X: npt.NDArray[np.float64]) -> list[Records]:
    """Observe samples (n, m)."""
    records = []
    for start in range(0, len(X), SLICE_ROWS):
        await asyncio.sleep(0)
        records.append(detector.observe(X[start : start + SLICE_ROWS]).records)
    return records


async def feedback_slices(detector: Detector, records: Records, labels: Sequence[bool | None]) -> Feedback:
    """Give the detector labels for different samples, one a record."""
    parts = []
    for start in range(0, len(records), SLICE_LABELS):
        await asyncio.sleep(0)
        part = slice(start, start + SLICE_LABELS)
        parts.append(detector.feedback(records[part], labels[part]))
    return Feedback(
        [outcome for part in parts for outcome in part.outcome],
        np.concatenate([part.retracted for part in parts]),
        parts[0].threshold_before,
        parts[-1].threshold_after,
        Records.concatenate([part.records for part in parts]),
    )


async def score_slices(detector: Detector, X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Score samples (n, m) without learning."""
    parts = [detector.score(X[:SLICE_ROWS])]
    for start in range(SLICE_ROWS, len(X), SLICE_ROWS):
        await asyncio.sleep(0)
        parts.append(detector.score(X[start : start + SLICE_ROWS]))
    return np.concatenate(parts)
