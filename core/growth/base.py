"""How a tree grows: when which node is cut by which hyperplane."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.families.statistics import Moments
from core.mixture.learned import Groups, LearnedBatch, LearnedSample
from core.mixture.shares import Shares
from core.snapshot import Arrays


class Growth(ABC):
    """Watches what a tree's nodes count, and cuts them in time."""

    most_sides: int = 0
    """The most sides that a record must keep of one sample, w."""

    def sides(self, X: FloatArray) -> BoolArray:
        """What a record must keep of samples (n, m) beside their place in the tree: (n, w)."""
        return np.zeros((len(X), 0), bool)

    @abstractmethod
    def keys(self, X: FloatArray, held: BoolArray) -> IntArray:
        """A number (n,) for each of a round's samples in the nodes held (n, N): equal ones are counted alike."""

    @abstractmethod
    def count(self, learned: LearnedBatch, held: BoolArray, groups: Groups, moments: Moments) -> None:
        """Take note of a round, as samples (n, m) in the nodes held (n, N), and as the moments of its groups."""

    @abstractmethod
    def change(self, sample: LearnedSample, sign: int, weight: float) -> None:
        """Take one sample out of (sign -1) or into (sign +1) what was noted."""

    @abstractmethod
    def grow(self, before: int, after: int) -> None:
        """Cut what is due, now that the number of learned samples has gone from before to after."""

    def weigh(self, shares: Shares) -> None:
        """See whose the samples of a round are, before the weights move by them."""
        return

    def fade(self, factor: float) -> None:
        """Let what was noted so far count that much less."""
        return

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""

    @abstractmethod
    def check(self, arrays: Arrays, times_cut: IntArray, n_learned: int) -> None:
        """InvalidSnapshot if a state does not fit a tree whose nodes are cut so often (N,), and so many samples."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
