"""The most recent scores: their median, quantiles and ranks."""

from array import array
from bisect import bisect_left, insort
from sys import float_info
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.errors import InvalidSnapshot

WINDOW: Final = 1000
"""Scores that are remembered. Chosen by hand."""
EARLY: Final = 100
FENCE: Final = 6.0
"""With fewer than EARLY scores a quantile is held to FENCE quartile ranges above the upper quartile. Chosen by hand."""


class RecentScores:
    """The last WINDOW scores: a ring in order of arrival, oldest being the place of the first, and a sorted copy."""

    def __init__(self) -> None:
        self.ring: list[float] = []
        self.oldest = 0
        self.ordered: array[float] = array("d")

    def add(self, score: float) -> None:
        """Add a score; when full, drop the oldest."""
        if len(self.ring) < WINDOW:
            self.ring.append(score)
        else:
            del self.ordered[bisect_left(self.ordered, self.ring[self.oldest])]
            self.ring[self.oldest] = score
            self.oldest = (self.oldest + 1) % WINDOW
        insort(self.ordered, score)

    def copy(self) -> "RecentScores":
        """An independent copy."""
        twin = RecentScores()
        twin.ring, twin.oldest, twin.ordered = self.ring.copy(), self.oldest, self.ordered[:]
        return twin

    def levels(self, scores: FloatArray) -> FloatArray:
        """Add scores (n,) one by one; the median (n,) before each, 0 before the first."""
        levels = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            levels[i] = self.median
            self.add(score)
        return levels

    def ranks(self, scores: FloatArray) -> FloatArray:
        """Add scores (n,) one by one; for each the share (n,) of the scores before it that are lower, 0 to 1."""
        ranks = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            ranks[i] = bisect_left(self.ordered, score) / max(len(self.ordered), 1)
            self.add(score)
        return ranks

    @property
    def median(self) -> float:
        """The median, 0 without scores."""
        return self._interpolated(0.5) if self.ordered else 0.0

    def quantile(self, tail: float) -> float:
        """The score that a share of them, tail in 0 to 1, exceeds, interpolated; the largest double without scores.

        The largest of few scores may be an anomaly, behind which the next one would hide. So with fewer than EARLY
        scores the result is at most FENCE quartile ranges above the upper quartile.
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
        """Continue from the ring of a state that check_ring has passed."""
        self.ring, self.oldest, self.ordered = ring.tolist(), oldest, array("d", np.sort(ring).tolist())


def check_ring(ring: FloatArray, oldest: int) -> None:
    """Raise InvalidSnapshot if RecentScores cannot have this ring (n,), whose oldest score stands at this place."""
    if len(ring) > WINDOW or not 0 <= oldest < max(len(ring), 1) or (oldest and len(ring) < WINDOW):
        raise InvalidSnapshot("its recent scores are more than it can hold, or not in order")
