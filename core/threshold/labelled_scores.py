"""The scores that were labelled, by sample and by score."""

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.errors import InvalidSnapshot

CAPACITY: Final = 512
"""Labelled scores that are remembered. Chosen by hand."""
HALF_LIFE_LABELS: Final = 300
"""A label counts half as much after so many others. Chosen by hand."""


class LabelledScores:
    """The last CAPACITY labelled scores, one a sample, in order of labelling and also sorted by score.

    The clock of a label counts the labels before it, which gives its age. Among equal scores the one labelled first
    comes first.
    """

    def __init__(self) -> None:
        self.n_labels = 0
        self._kept: dict[int, tuple[float, int, int]] = {}
        self._score, self._label, self._clock = array("d"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def seqs(self) -> list[int]:
        """The labelled samples, in order of labelling."""
        return list(self._kept)

    def put(self, seq: int, score: float, label: int) -> None:
        """Label a sample anomalous (+1) or normal (-1), in place of an earlier label; 0 removes its label."""
        if seq in self._kept:
            self._drop(seq)
        if label == 0:
            return
        if len(self._kept) == CAPACITY:
            self._drop(next(iter(self._kept)))
        self._insert(seq, score, label, self.n_labels)
        self.n_labels += 1

    def _insert(self, seq: int, score: float, label: int, clock: int) -> None:
        self._kept[seq] = score, label, clock
        at = bisect_right(self._score, score)
        self._score.insert(at, score)
        self._label.insert(at, label)
        self._clock.insert(at, clock)

    def _drop(self, seq: int) -> None:
        score, _, clock = self._kept.pop(seq)
        first, end = bisect_left(self._score, score), bisect_right(self._score, score)
        at = bisect_left(self._clock, clock, first, end)
        del self._score[at], self._label[at], self._clock[at]

    def steps(self, cost_anomalous: float, cost_normal: float) -> tuple[FloatArray, FloatArray]:
        """The scores (n,) in rising order, and what each adds to the cost of eq. (26) when it passes, (n,)."""
        age = 0.5 ** ((self.n_labels - 1 - np.array(self._clock)) / HALF_LIFE_LABELS)
        return np.array(self._score), np.where(np.array(self._label) > 0, cost_anomalous, -cost_normal) * age

    @property
    def oldest(self) -> int:
        """The first sample that is labelled here."""
        return min(self._kept)

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        self._kept = {seq + shift: row for seq, row in self._kept.items()}

    def table(self) -> tuple[IntArray, FloatArray]:
        """Rows of seq, label and clock, (3, n), and scores (n,), in order of labelling, for a snapshot."""
        rows = [(seq, label, clock) for seq, (_, label, clock) in self._kept.items()]
        return np.array(rows, np.int64).reshape(-1, 3).T.copy(), np.array([s for s, _, _ in self._kept.values()], float)

    @staticmethod
    def check(labels: NDArray[np.int64], score: FloatArray, n_labels: int) -> None:
        """Raise InvalidSnapshot if no labels could have produced this table."""
        seq, label, clock = labels
        if len(score) > CAPACITY or len(set(seq.tolist())) < len(seq):
            raise InvalidSnapshot("its labels are more than it can hold")
        clocks = [-1, *clock.tolist(), n_labels, 2**53]
        in_order = all(earlier < later for earlier, later in pairwise(clocks))
        if not (in_order and (np.abs(label) == 1).all()):
            raise InvalidSnapshot("its labels are not in order")

    def load(self, labels: NDArray[np.int64], score: FloatArray, n_labels: int) -> None:
        """Continue from a table that check has passed."""
        seq, label, clock = labels
        self.__init__()  # type: ignore[misc]
        self.n_labels = n_labels
        for row in zip(seq.tolist(), score.tolist(), label.tolist(), clock.tolist(), strict=True):
            self._insert(*row)
