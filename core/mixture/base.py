"""The weights of the nodes in the mixture, and what every rule that moves them does."""

from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.mixture.log_sum import LEAST_WEIGHT, log_sum_exp
from core.mixture.shares import Shares
from core.tree.subspaces import Pair, SubspaceTree

MEMORY: Final = 1000.0
"""Samples that the children's shares of what reaches their parent remember. Chosen by hand."""
LARGEST_LOSS: Final = 1e217
"""No stream is so long that a count or summed loss reaches it."""


class Mixture(ABC):
    """Weights alpha (N,), positive and summing to one, of the N nodes of a tree.

    They move by the densities that the samples of a round had before they were learned.
    """

    name: str
    """The rule's name in a config."""

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        self.tree, self._memory = tree, memory
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
        """Log densities (n,) of the mixture, eq. (10), from the nodes' log densities (n, N)."""
        return log_sum_exp(log_density + self.log_weights)

    def shares(self, log_density: FloatArray) -> Shares:
        """How samples divide among the nodes by the present weights, from their log densities (n, N)."""
        terms = (log_density + self.log_weights).T
        top = terms.max(0)
        own = np.exp(terms - top)
        total = own.sum(0)
        own /= total
        return Shares(own, top + np.log(total))

    @abstractmethod
    def learn(self, shares: Shares) -> None:
        """Move the weights by a round of samples, n >= 1."""

    @abstractmethod
    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        """Share out a node's weight among itself and its new children.

        The node keeps the share kept, 0 to 1; the left child gets left_share, 0 to 1, of the rest.
        """

    @abstractmethod
    def merge(self, pair: Pair) -> None:
        """Give the weight of two leaves back to their parent."""

    @abstractmethod
    def lift(self, pair: Pair, child: int) -> None:
        """Let one child take its parent's place, with the weight of both and of the other child, a leaf."""

    @property
    @abstractmethod
    def running(self) -> FloatArray:
        """The numbers that a snapshot must keep beside the weights."""

    def check(self, running: FloatArray, n_nodes: int) -> None:
        """Raise InvalidSnapshot if no mixture of so many nodes could have written these numbers."""
        if running.shape != self._running_shape(n_nodes) or not self._fits(running):
            raise InvalidSnapshot("its mixture's running estimates do not fit")

    def restore(self, running: FloatArray, weights: FloatArray) -> None:
        """Continue from numbers that check has passed, and from weights (N,)."""
        self._take(running)
        self.weights = weights

    @abstractmethod
    def _running_shape(self, n_nodes: int) -> tuple[int]: ...

    @abstractmethod
    def _fits(self, running: FloatArray) -> bool:
        """Whether these numbers are in range."""

    @abstractmethod
    def _take(self, running: FloatArray) -> None:
        """Continue from these numbers."""
