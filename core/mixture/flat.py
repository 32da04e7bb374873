"""Rules under which every node competes with all others, whatever the tree."""

from abc import abstractmethod

import numpy as np

from core.arrays import FloatArray, grown
from core.mixture.base import Mixture
from core.mixture.log_sum import LEAST_WEIGHT
from core.mixture.shares import Shares
from core.tree.subspaces import Pair


class FlatMixture(Mixture):
    """Every node competes with all others, whatever the tree."""

    def learn(self, shares: Shares) -> None:
        self._move((shares.own / np.maximum(self.weights, LEAST_WEIGHT)[:, None]).T, shares.log_p)
        positive = np.maximum(self.weights, LEAST_WEIGHT)
        self.weights = positive / positive.sum()

    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        given = (1 - kept) * self.weights[pair.node]
        weights = grown(self.weights, self.tree.n_nodes)
        weights[pair.children] = left_share * given, (1 - left_share) * given
        weights[pair.node] *= kept
        self.weights = weights

    def merge(self, pair: Pair) -> None:
        weights = self.weights.copy()
        weights[pair.node] += weights[pair.children].sum()
        weights[pair.children] = 0
        self.weights = weights

    def lift(self, pair: Pair, child: int) -> None:
        self.merge(pair)

    @abstractmethod
    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        """Move the weights by a round of k samples: the ratios f_i / p (k, N), and log p (k,)."""
