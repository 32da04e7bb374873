"""The samples to review next: flagged ones and close calls without a label."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.streams.views.columns import Columns
from app.streams.views.downsampling import Downsampler
from app.streams.views.history import Log

WINDOW = 5_000
BORDER = 0.5
"""A close call is below its threshold by at most this many interquartile ranges of the scores."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Samples to review, nearest to their threshold first; border is how far below it a close call may be, in nats."""

    rows: Columns | None
    border: float | None


async def review(log: Log, limit: int) -> Queue:
    """Give the newest `limit` unlabelled flagged samples and close calls among the newest WINDOW samples."""
    first = max(log.oldest_seq, log.head.seq - WINDOW + 1)
    everything = Downsampler(first, log.head.seq, WINDOW)
    await log.rows(first, log.head.seq, everything)
    rows = everything.rows()
    scores = np.zeros(0) if rows is None else rows.score[~np.isnan(rows.score)]
    if rows is None or not len(scores):
        return Queue(None, None)
    border = BORDER * float(np.subtract(*np.quantile(scores, [0.75, 0.25])))
    newest = rows[candidates(rows, border)[-limit:]]
    return Queue(newest[np.argsort(abs(newest.score - newest.threshold), kind="stable")], border)


def candidates(rows: Columns, border: float) -> npt.NDArray[np.intp]:
    """Find the samples without a label that were flagged, or nearly were."""
    near = rows.score >= rows.threshold - border
    return np.flatnonzero((rows.is_anomaly | near) & (rows.label == 0))
