"""The scores of ordinary samples, and their tail: how rarely one of them is as high as a given score.

One model for all that is decided: the threshold before labels, the prior of the labelled one, and the severity.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from math import exp, log, log10
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.sample_scores import SampleScores, check_seqs

CAPACITY: Final = 2000
KEPT_AT_FIRST: Final = 20
"""Besides the newer half of the scores so many are kept, until CAPACITY is reached: a young model's first go soon."""
ENOUGH: Final = 20
"""With fewer scores there is no threshold."""
TAIL: Final = 0.1
"""The share of the scores that belong to the tail."""
TOLERANCE: Final = 0.3
"""Nats by which scores may differ and count as equal, for they creep as the model is estimated again: the least scale
of a tail, and what a score may lack to have reached another. Chosen by hand."""
LARGEST_SCALE: Final = 1e300
REFIT_EVERY: Final = 64
FIT_SHARE: Final = 16


class OrdinaryScores:
    """The last scores of ordinary samples, and the tail fitted to them.

    A label that says that one of these samples is anomalous sets its score aside: it keeps its place, and counts again
    when the label goes. While fewer than ENOUGH would be left, all of them count.

    Above the score that the share TAIL exceeds, chances fall exponentially, by the largest of the scales that three
    pairs of quantiles show, eq. (31). Where scores came more or less often than that says, their number counts too,
    eq. (32).

    >>> scores = OrdinaryScores()
    >>> for score in range(100):
    ...     _ = scores.add(1 + score, float(score))
    >>> round(scores.threshold(0.002), 1), round(scores.severity(200.0), 1)
    (159.3, 3.6)
    """

    def __init__(self) -> None:
        self.n = 0
        self._ring = SampleScores()
        self._ordered: array[float] = array("d")
        self._all_count = True
        self.start, self.scale = 0.0, TOLERANCE

    @classmethod
    def of(cls, scores: SampleScores) -> "OrdinaryScores":
        """All of these scores, and no more than CAPACITY, as if more had gone before them."""
        new = cls()
        new.n = max(len(scores), 2 * (len(scores) - KEPT_AT_FIRST))
        new._take(scores)
        new._fit()
        return new

    def _take(self, scores: SampleScores) -> None:
        self._ring, self._all_count = scores, scores.n_counted < ENOUGH
        counted = scores.scores() if self._all_count else scores.counted()
        self._ordered = array("d", np.sort(counted, kind="stable").tobytes())

    def newest(self, n: int) -> FloatArray:
        """The newest n of the scores that are not set aside, or all of these."""
        return self._ring.counted()[-n:]

    @property
    def enough(self) -> bool:
        """Whether there are scores enough to decide by."""
        return len(self._ring) >= ENOUGH

    def add(self, seq: int, score: float) -> bool:
        """Take a sample's score in, and let the oldest go that is too many; whether the tail was fitted again."""
        self.n += 1
        self._ring.add(seq, score)
        insort(self._ordered, score)
        while len(self._ring) > kept_of(self.n):
            oldest, counted = self._ring.drop()
            if counted or self._all_count:
                self._remove(oldest)
        if not self._recount() and not _is_due(self.n):
            return False
        self._fit()
        return True

    def _remove(self, score: float) -> None:
        del self._ordered[bisect_left(self._ordered, score)]

    def label(self, seq: int, *, anomalous: bool) -> None:
        """Set the score of a sample aside if it is anomalous, or let it count again, and fit the tail again."""
        if (score := self._ring.label(seq, anomalous=anomalous)) is None:
            return
        if not self._recount() and not self._all_count:
            if anomalous:
                self._remove(score)
            else:
                insort(self._ordered, score)
        self._fit()

    def _recount(self) -> bool:
        """Begin or cease to count the scores that are set aside, if it is time."""
        if self._all_count == (self._ring.n_counted < ENOUGH):
            return False
        self._take(self._ring)
        return True

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        self._ring.renumber(shift)

    def _fit(self) -> None:
        """Scales of an exponential tail by pairs of quantiles, the largest of them: some anomalies hardly move it."""
        half, quarter, start, far = (self.quantile(tail) for tail in (0.5, 0.25, TAIL, TAIL / 4))
        scales = (start - half) / log(0.5 / TAIL), (start - quarter) / log(0.25 / TAIL), (far - start) / log(4.0)
        self.start, self.scale = start, min(max(*scales, TOLERANCE), LARGEST_SCALE)

    def quantile(self, tail: float) -> float:
        """The score that this share of them exceeds, interpolated; 0 if there are none."""
        n = len(self._ordered)
        if n == 0:
            return 0.0
        position = min(max((1 - tail) * (n + 1) - 1, 0.0), n - 1.0)
        below = int(position)
        above, share = min(below + 1, n - 1), position - below
        return self._ordered[below] * (1 - share) + self._ordered[above] * share

    def exceeded_by(self, chance: float) -> float:
        """The score that an ordinary one exceeds with this chance by the tail alone, eq. (31)."""
        if chance >= TAIL:
            return min(self.quantile(chance), self.start)
        return finite(self.start + self.scale * log(TAIL / chance))

    def threshold(self, chance: float) -> float:
        """The least score beyond which chances are below this one; the largest double while there are too few."""
        if not self.enough:
            return float_info.max
        if chance >= TAIL:
            return self.exceeded_by(chance)
        n, reached = len(self._ordered), 0
        value = self._lowest(chance, 0)
        while reached < n and self._ordered[n - 1 - reached] + TOLERANCE > value:
            reached += 1
            value = min(self._lowest(chance, reached), self._ordered[n - reached] + TOLERANCE)
        return value

    def _lowest(self, chance: float, reached: int) -> float:
        """The score of this chance by eq. (32) if it was reached so often."""
        share = chance / (1 + reached)
        left = 1 - len(self._ordered) * share
        return self.exceeded_by(min(share / left, TAIL)) if left > 0 else self.start

    def severity(self, score: float) -> float:
        """-log10 of the chance that an ordinary score is as high, 0 and up."""
        n = len(self._ordered)
        if n == 0:
            return 0.0
        if score <= self.start:
            return -log10(max((n - bisect_right(self._ordered, score) + 0.5) / (n + 1), TAIL))
        beyond = finite((score - self.start) / self.scale)
        expected, reached = n * TAIL * exp(-beyond), n - bisect_left(self._ordered, score - TOLERANCE)
        return max(beyond / log(10.0) + log10((1 + expected) / (1 + reached)), 0.0) - log10(TAIL)

    def chances(self, scores: FloatArray) -> FloatArray:
        """With what chance an ordinary score is as high as each of these (n,)."""
        ordered = np.array(self._ordered)
        n = len(ordered)
        rank = (n - ordered.searchsorted(scores, "right") + 0.5) / (n + 1)
        with np.errstate(over="ignore", under="ignore"):
            tail = TAIL * np.exp(-np.maximum(scores - self.start, 0.0) / self.scale)
        tail *= (1 + n - ordered.searchsorted(scores - TOLERANCE, "left")) / (1 + n * tail)
        chance: FloatArray = np.where(scores > self.start, np.minimum(tail, TAIL), np.maximum(rank, TAIL))
        return chance

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {
            "ordinary_scores": self._ring.scores(),
            "ordinary_seqs": self._ring.seqs(),
            "ordinary_count": np.array([self.n]),
            "ordinary_tail": np.array([self.start, self.scale]),
        }

    @staticmethod
    def check(arrays: Arrays, next_seq: int) -> None:
        """InvalidSnapshot if these cannot be its arrays."""
        ring = take(arrays, "ordinary_scores", np.float64, (-1,))
        n = int(take(arrays, "ordinary_count", np.int64, (1,))[0])
        _, scale = take(arrays, "ordinary_tail", np.float64, (2,)).tolist()
        if not (0 <= n < 2**53 and len(ring) == kept_of(n) and TOLERANCE <= scale <= LARGEST_SCALE):
            raise InvalidSnapshot("its ordinary scores are not as many as it has seen, or have no tail")
        check_seqs(arrays, "ordinary_seqs", len(ring), next_seq)

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.n = int(arrays["ordinary_count"][0])
        self._take(SampleScores.of(arrays["ordinary_scores"], arrays["ordinary_seqs"]))
        self.start, self.scale = arrays["ordinary_tail"].tolist()


def kept_of(n: int) -> int:
    """How many of n scores are kept.

    >>> [kept_of(n) for n in (0, 40, 41, 100, 10_000)]
    [0, 40, 40, 70, 2000]
    """
    return min(n, KEPT_AT_FIRST + n // 2, CAPACITY)


def _is_due(n: int) -> bool:
    """Whether the tail is fitted after so many scores: each time at first, in the end every REFIT_EVERY."""
    step = 1 << max(min(n // FIT_SHARE, REFIT_EVERY).bit_length() - 1, 0)
    return n % step == 0


def finite(value: float) -> float:
    """Hold a value between the largest doubles of either sign, where scores saturate."""
    return min(max(value, -float_info.max), float_info.max)
