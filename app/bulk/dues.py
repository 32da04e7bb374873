"""When each label is told: after which sample of its stream."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.bulk.job import Job
from app.bulk.rows import Floats, Rows


@dataclass(slots=True)
class Waiting:
    """A label that is not told yet: position counts the rows of the stream from 1, seq is 0 until it is known."""

    position: int
    anomaly: bool
    known: float
    seq: int = 0


class Dues:
    """The labels of one stream that wait until they are due.

    What it gives depends on the rows alone, not on how they are cut.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._n, self._newest = 0, -np.inf
        self._waiting: list[Waiting] = []

    def segments(self, rows: Rows) -> Iterator[tuple[Sequence[Waiting], slice, Sequence[Waiting]]]:
        """Cut the next rows where labels are due: labels to tell first, then rows, and the labels of these rows."""
        start, newest = self._n, self._running_newest(rows)
        own = self._labels_of(rows, start)
        told: dict[int, list[Waiting]] = {}
        left = []
        self._newest = float(newest[-1])
        for one in [*self._waiting, *own]:
            # most labels wait for long: it takes much less time to see that they do than to say for how long
            if one.known > self._newest or (stop := self._stop(one, start, newest)) >= start + len(rows):
                left.append(one)
            else:
                told.setdefault(stop - start, []).append(one)
        self._n, self._waiting = start + len(rows), left
        places = np.array([one.position - start - 1 for one in own], np.intp)
        cuts = sorted({0, *told})
        for first, end in zip(cuts, [*cuts[1:], len(rows)], strict=True):
            here = slice(*np.searchsorted(places, (first, end)))
            yield in_order(told.get(first, ())), slice(first, end), own[here]

    def rest(self) -> list[Waiting]:
        """Give the labels that are due after the last row, and those that are told in the end."""
        return in_order(
            self._waiting if self._job.final_labels else [one for one in self._waiting if self._is_due(one)]
        )

    def _is_due(self, one: Waiting) -> bool:
        if np.isnan(one.known):
            return one.position + (self._job.delay_samples or 0) <= self._n
        return one.known <= self._newest

    def _running_newest(self, rows: Rows) -> Floats:
        if rows.times is None:
            return np.full(len(rows), -np.inf)
        times = np.where(np.isnan(rows.times), -np.inf, rows.times)
        newest: Floats = np.maximum(np.maximum.accumulate(times), self._newest)
        return newest

    def _labels_of(self, rows: Rows, start: int) -> list[Waiting]:
        places = np.flatnonzero(rows.label)
        return [Waiting(start + i + 1, bool(rows.label[i] > 0), self._known(rows, i)) for i in places.tolist()]

    def _known(self, rows: Rows, i: int) -> float:
        known, delay = float(rows.known[i]), self._job.delay_seconds
        if np.isnan(known) and delay is not None and rows.times is not None:
            return float(rows.times[i]) + delay
        return known

    def _stop(self, one: Waiting, start: int, newest: Floats) -> int:
        """Say after how many rows a label is told; at least the number of rows so far if that is not known yet."""
        every = self._job.label_every
        if np.isnan(one.known):
            due = one.position + (self._job.delay_samples or 0)
        else:
            due = max(one.position, start + int(np.searchsorted(newest, one.known, side="right")))
        return max(due + -due % every, start)


def in_order(labels: Sequence[Waiting]) -> list[Waiting]:
    """Put labels that are told together in the order in which they became known."""
    return sorted(labels, key=lambda one: (np.nan_to_num(one.known), one.position))
