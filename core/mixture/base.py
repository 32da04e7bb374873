"""What every rule that moves the weights alpha of the mixture p(x) = sum_i alpha_i f_i(x) does (ITAN eq. mixture)."""

from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.mixture.log_sum import LEAST_WEIGHT, log_sum_exp
from core.mixture.shares import Shares
from core.tree.subspaces import Pair, SubspaceTree

MEMORY: Final = 1000.0
"""Samples that the children's shares remember."""
LARGEST_LOSS: Final = 1e217


class Mixture(ABC):
    """Weights (N,) on the simplex; move them by the densities that the samples had before they were learned."""

    name: str

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        self._tree, self._memory = tree, memory
        self.weights = np.ones(1)

    @property
    def weights(self) -> FloatArray:
        """alpha, (N,), summing to one."""
        return self._weights

    @weights.setter
    def weights(self, values: FloatArray) -> None:
        self._weights = values
        self.log_weights = np.log(np.maximum(values, LEAST_WEIGHT))

    def log_p(self, log_density: FloatArray) -> FloatArray:
        """log_mixture by the present weights."""
        return log_sum_exp(log_density + self.log_weights)

    def shares(self, log_density: FloatArray) -> Shares:
        """Whose each sample is by the present weights, from the log densities (n, N)."""
        terms = (log_density + self.log_weights).T
        top = terms.max(0)
        own = np.exp(terms - top)
        total = own.sum(0)
        own /= total
        return Shares(own, top + np.log(total))

    @abstractmethod
    def learn(self, shares: Shares) -> None:
        """Move the weights by a round of samples."""

    @abstractmethod
    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        """A node keeps a share of its weight; its new children get left_share and the rest of what it gives."""

    @abstractmethod
    def merge(self, pair: Pair) -> None:
        """Give the weight of two leaves back to the node they came from."""

    @abstractmethod
    def lift(self, pair: Pair, child: int) -> None:
        """One child takes its parent's place, and the weight of both and of the other child, a leaf."""

    @property
    @abstractmethod
    def running(self) -> FloatArray:
        """What a snapshot must keep beside the weights."""

    def check(self, running: FloatArray, n_nodes: int) -> None:
        """InvalidSnapshot if running is not what a mixture of so many nodes writes."""
        if running.shape != self._running_shape(n_nodes) or not self._fits(running):
            raise InvalidSnapshot("its mixture's running estimates do not fit")

    def restore(self, running: FloatArray, weights: FloatArray) -> None:
        """Take over a state."""
        self._take(running)
        self.weights = weights

    @abstractmethod
    def _running_shape(self, n_nodes: int) -> tuple[int]: ...

    @abstractmethod
    def _fits(self, running: FloatArray) -> bool:
        """Whether this can have been kept beside weights."""

    @abstractmethod
    def _take(self, running: FloatArray) -> None:
        """Take over what is kept beside the weights."""
