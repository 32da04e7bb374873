"""Soft-Bayes: weights that mix with the ratios f_i / p."""

import numpy as np

from core.arrays import FloatArray
from core.mixture.base import LARGEST_LOSS, MEMORY
from core.mixture.flat import FlatMixture
from core.mixture.learning_rates import soft_bayes_rate
from core.tree.subspaces import SubspaceTree


class SoftBayes(FlatMixture):
    """Soft-Bayes, eq. (14), of Orseau, Lattimore and Legg.

    Its regret does not depend on how large the ratios are. A weight may still fade to nothing while its node is of no
    use. A round of k samples takes one step of rate 1 - (1 - eta)^k by the mean ratio. The paper has another rule.
    """

    name = "soft_bayes"

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        super().__init__(tree, memory)
        self._count = 0.0

    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        k = len(log_p)
        rate = 1 - (1 - soft_bayes_rate(self._count)) ** k
        self._count += k
        self.weights = self.weights * ((1 - rate) + rate * ratio.mean(0))

    @property
    def running(self) -> FloatArray:
        return np.array([self._count])

    def _running_shape(self, n_nodes: int) -> tuple[int]:
        return (1,)

    def _fits(self, running: FloatArray) -> bool:
        return bool(0 <= running[0] < LARGEST_LOSS)

    def _take(self, running: FloatArray) -> None:
        self._count = float(running[0])
