"""The most recent scores: their median and ranks."""

from array import array
from bisect import bisect_left, insort
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.errors import InvalidSnapshot

WINDOW: Final = 1000
"""Scores that are remembered. Chosen by hand."""


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
        n = len(self.ordered)
        return self.ordered[(n - 1) // 2] / 2 + self.ordered[n // 2] / 2 if n else 0.0

    def load(self, ring: FloatArray, oldest: int) -> None:
        """Continue from the ring of a state that check_ring has passed."""
        self.ring, self.oldest, self.ordered = ring.tolist(), oldest, array("d", np.sort(ring).tolist())


def check_ring(ring: FloatArray, oldest: int) -> None:
    """Raise InvalidSnapshot if RecentScores cannot have this ring (n,), whose oldest score stands at this place."""
    if len(ring) > WINDOW or not 0 <= oldest < max(len(ring), 1) or (oldest and len(ring) < WINDOW):
        raise InvalidSnapshot("its recent scores are more than it can hold, or not in order")
