"""The scores that a threshold remembers: the recent ones, and those that were labelled."""

from array import array
from bisect import bisect_left, bisect_right, insort
from itertools import pairwise
from sys import float_info
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.errors import InvalidSnapshot

WINDOW: Final = 1000
CAPACITY: Final = 512
HALF_LIFE_LABELS: Final = 300
EARLY: Final = 100
FENCE: Final = 6.0


class RecentScores:
    """The last WINDOW scores, also in order."""

    def __init__(self) -> None:
        self.ring: list[float] = []
        self.oldest = 0
        self.ordered: array[float] = array("d")

    def add(self, score: float) -> None:
        """Take a score in and, once full, the oldest out."""
        if len(self.ring) < WINDOW:
            self.ring.append(score)
        else:
            del self.ordered[bisect_left(self.ordered, self.ring[self.oldest])]
            self.ring[self.oldest] = score
            self.oldest = (self.oldest + 1) % WINDOW
        insort(self.ordered, score)

    def copy(self) -> "RecentScores":
        """The same scores, apart from these."""
        twin = RecentScores()
        twin.ring, twin.oldest, twin.ordered = self.ring.copy(), self.oldest, self.ordered[:]
        return twin

    def levels(self, scores: FloatArray) -> FloatArray:
        """Take scores (n,) in one by one: the median that each found, (n,)."""
        levels = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            levels[i] = self.median
            self.add(score)
        return levels

    def ranks(self, scores: FloatArray) -> FloatArray:
        """Take scores (n,) in one by one: the share of the others that each found below itself, (n,)."""
        ranks = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            ranks[i] = bisect_left(self.ordered, score) / max(len(self.ordered), 1)
            self.add(score)
        return ranks

    @property
    def median(self) -> float:
        """The median; 0 if there are no scores."""
        return self._interpolated(0.5) if self.ordered else 0.0

    def quantile(self, tail: float) -> float:
        """The score that the share tail of them exceeds, interpolated; the largest double if there are none.

        Few scores know no far tail: their largest may be the very anomaly behind which the next one would hide. While
        there are fewer than EARLY it is held to FENCE quartile ranges above the upper quartile.
        """
        n = len(self.ordered)
        if n == 0:
            return float_info.max
        value = self._interpolated(tail)
        return min(value, self._fence()) if n < EARLY else value

    def _fence(self) -> float:
        lower, upper = self._interpolated(0.75), self._interpolated(0.25)
        return upper + FENCE * max(upper - lower, 1.0)

    def _interpolated(self, tail: float) -> float:
        n = len(self.ordered)
        position = min(max((1 - tail) * (n + 1) - 1, 0.0), n - 1.0)
        below = int(position)
        above, share = min(below + 1, n - 1), position - below
        return self.ordered[below] * (1 - share) + self.ordered[above] * share

    def load(self, ring: FloatArray, oldest: int) -> None:
        """Take over scores in the order of the ring."""
        self.ring, self.oldest, self.ordered = ring.tolist(), oldest, array("d", np.sort(ring).tolist())


def check_ring(ring: FloatArray, oldest: int) -> None:
    """InvalidSnapshot if RecentScores cannot have this ring, which begins there."""
    if len(ring) > WINDOW or not 0 <= oldest < max(len(ring), 1) or (oldest and len(ring) < WINDOW):
        raise InvalidSnapshot("its recent scores are more than it can hold, or not in order")


class LabelledScores:
    """The last CAPACITY labelled scores, by seq in order of labelling, and by score; clock tells their age in labels.

    Of equal scores the one labelled first stands first.
    """

    def __init__(self) -> None:
        self.n_labels = 0
        self._kept: dict[int, tuple[float, int, int]] = {}
        self._score, self._label, self._clock = array("d"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def seqs(self) -> list[int]:
        """Samples in order of labelling."""
        return list(self._kept)

    def put(self, seq: int, score: float, label: int) -> None:
        """Set the label of a sample; 0 takes it away."""
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
        """Scores in rising order, and what the cost rises by when the threshold passes each: +C_1 or -C_-1, aged."""
        age = 0.5 ** ((self.n_labels - 1 - np.array(self._clock)) / HALF_LIFE_LABELS)
        return np.array(self._score), np.where(np.array(self._label) > 0, cost_anomalous, -cost_normal) * age

    def anomaly_rate(self, prior_rate: float, prior_count: float, false_share: float) -> float:
        """Known anomalies over all samples, labelled or not, from the first to the last that is labelled here.

        No more than the true rate, whichever samples were chosen for labels, once false_share of the labels is taken
        off. prior_count samples at prior_rate are added.
        """
        span = max(self._kept) - min(self._kept) + 1
        anomalous = max(self._label.count(1) - false_share * len(self._kept), 0.0)
        return (anomalous + prior_rate * prior_count) / (span + prior_count)

    def table(self) -> tuple[IntArray, FloatArray]:
        """Rows of seq, label and clock, (3, n), and scores (n,), in order of labelling."""
        rows = [(seq, label, clock) for seq, (_, label, clock) in self._kept.items()]
        return np.array(rows, np.int64).reshape(-1, 3).T.copy(), np.array([s for s, _, _ in self._kept.values()], float)

    @staticmethod
    def check(labels: NDArray[np.int64], score: FloatArray, n_labels: int) -> None:
        """InvalidSnapshot if a table cannot be one."""
        seq, label, clock = labels
        if len(score) > CAPACITY or len(set(seq.tolist())) < len(seq):
            raise InvalidSnapshot("its labels are more than it can hold")
        clocks = [-1, *clock.tolist(), n_labels, 2**53]
        in_order = all(earlier < later for earlier, later in pairwise(clocks))
        if not (in_order and (np.abs(label) == 1).all()):
            raise InvalidSnapshot("its labels are not in order")

    def load(self, labels: NDArray[np.int64], score: FloatArray, n_labels: int) -> None:
        """Take over a table."""
        seq, label, clock = labels
        self.__init__()  # type: ignore[misc]
        self.n_labels = n_labels
        for row in zip(seq.tolist(), score.tolist(), label.tolist(), clock.tolist(), strict=True):
            self._insert(*row)
