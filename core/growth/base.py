"""What every way of growing a tree does: decide when which node is cut by which hyperplane."""

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
    """Watches what the nodes of a tree count, and cuts them when it is time."""

    most_sides: int = 0
    """The most sides that a record must keep of one sample."""

    def sides(self, X: FloatArray) -> BoolArray:
        """What a record must keep of samples (n, m) beside their place in the tree: (n, N), or (n, 0) for nothing."""
        return np.zeros((len(X), 0), bool)

    @abstractmethod
    def keys(self, X: FloatArray, held: BoolArray) -> IntArray:
        """A key (n,) for each sample (n, m) of a round, in the nodes held (n, N): equal keys are counted together."""

    @abstractmethod
    def count(self, learned: LearnedBatch, held: BoolArray, groups: Groups, moments: Moments) -> None:
        """Count a round: its samples, the nodes held (n, N) that hold them, and the moments of its groups by key."""

    @abstractmethod
    def change(self, sample: LearnedSample, sign: int, weight: float) -> None:
        """Take one sample out of (sign -1) or back into (sign +1) what was counted, with its present weight."""

    @abstractmethod
    def grow(self, before: int, after: int) -> None:
        """Cut the nodes that are due, now that the number of learned samples went from before to after."""

    def weigh(self, shares: Shares) -> None:
        """See how the samples of a round divide among the nodes, before the weights move by them."""
        return

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far by a factor, 0 to 1."""
        return

    def begin_warm(self, n_learned: int) -> None:
        """Take what was counted as so many samples, and keep none of them."""
        return

    def newest(self, n: int) -> FloatArray:
        """The newest samples, n at most, as they were learned, (n, m), of those that are kept."""
        return np.zeros((0, 0))

    def follow(self) -> None:
        """Expect of the nodes what fits their features' spread, which has changed."""
        return

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""

    @abstractmethod
    def check(self, arrays: Arrays, times_cut: IntArray, n_learned: int) -> None:
        """Raise InvalidSnapshot if a state does not fit a tree of nodes cut times_cut (N,) times, and n_learned."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
