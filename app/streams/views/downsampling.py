"""Reduces a long run of samples to fewer points that still show its shape."""

import numpy as np
import numpy.typing as npt

from app.streams.views.columns import Columns

POINTS_PER_BUCKET = 4


class Downsampler:
    """Takes the samples first to last in parts, and keeps at most `points` of them.

    There is a bucket for every POINTS_PER_BUCKET points. Each bucket keeps its lowest and its highest score. Flagged
    and labelled samples are kept too, and those at which an incident opened or ended; if they are more than half of
    the points, each bucket keeps two of them.
    """

    def __init__(self, first: int, last: int, points: int) -> None:
        n, n_buckets = last - first + 1, points // POINTS_PER_BUCKET
        self._first, self._points = first, points
        self._width = 1 if n <= points else -(-n // n_buckets)
        self._parts: list[Columns] = []
        self._waiting = 0
        self.is_downsampled = False
        self.marked_downsampled = False

    def add(self, rows: Columns) -> None:
        """Take the next samples."""
        self._parts.append(rows)
        self._waiting += len(rows)
        if self._waiting > 2 * self._points:
            self._reduce()

    def rows(self) -> Columns | None:
        """Give the samples that are kept; None if there were none."""
        if self._parts:
            self._reduce()
        return self._parts[0] if self._parts else None

    def _reduce(self) -> None:
        rows = Columns.joined(self._parts)
        kept = rows if self._width == 1 else rows[self._chosen(rows)]
        self.is_downsampled |= len(kept) < len(rows)
        self._parts, self._waiting = [kept], len(kept)

    def _chosen(self, rows: Columns) -> npt.NDArray[np.bool_]:
        bucket = (rows.seq - self._first) // self._width
        chosen = np.zeros(len(rows), np.bool_)
        chosen[extremes(bucket, rows.score)] = True
        marked = np.flatnonzero(rows.is_anomaly | (rows.label != 0) | (rows.event != 0))
        if len(marked) > self._points // 2:
            self.marked_downsampled = True
            marked = marked[extremes(bucket[marked], rows.score[marked])]
        chosen[marked] = True
        return chosen


def extremes(bucket: npt.NDArray[np.int64], score: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Give the rows with the lowest and the highest score of each bucket; a missing score counts as the lowest."""
    order = np.lexsort((np.where(np.isnan(score), -np.inf, score), bucket))
    ends = np.flatnonzero(np.diff(bucket[order], prepend=-1, append=-1))
    return np.union1d(order[ends[:-1]], order[ends[1:] - 1])
