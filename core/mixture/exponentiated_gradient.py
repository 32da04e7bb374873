"""The paper's rule: exponentiated gradient with the rate of Theorem 1."""

from math import log, sqrt
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.mixture.base import LARGEST_LOSS, MEMORY
from core.mixture.flat import FlatMixture
from core.mixture.learning_rates import theorem_1_rate
from core.tree.subspaces import SubspaceTree

RATIO_CAP: Final = 5.0
"""Where EG clips f_i / p. The paper bounds f, which carries units; the ratio itself reaches 1 / alpha_i, and unclipped
it throws all weight on one node (log-loss 5 to 30 on the paper's own experiments)."""
LEAST_MEAN_LOSS: Final = 1e-3


class ExponentiatedGradient(FlatMixture):
    """alpha_i <- alpha_i exp(theta f_i / p), normalised (ITAN eq. EG; the paper leaves the normalisation out).

    theta is Theorem 1's, 2 sqrt(ln N) / (R sqrt(2 A T) + R^2 sqrt(ln N)), from running estimates: T the samples so far,
    A their mean loss -log p (at least LEAST_MEAN_LOSS: it is negative once densities pass 1), R the largest ratio so
    far.
    """

    name = "eg"

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        super().__init__(tree, memory)
        self._count, self._loss, self._largest = 0.0, 0.0, 1.0

    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        clipped = np.minimum(ratio, RATIO_CAP)
        self._count += len(log_p)
        self._loss -= float(log_p.sum())
        self._largest = max(self._largest, float(clipped.max()))
        step = self._rate() * clipped.sum(0)
        self.weights = self.weights * np.exp(step - step.max())

    def _rate(self) -> float:
        complexity = sqrt(log(len(self.weights)))
        mean_loss = max(self._loss / self._count, LEAST_MEAN_LOSS)
        return theorem_1_rate(complexity, self._largest, mean_loss, self._count)

    @property
    def running(self) -> FloatArray:
        return np.array([self._count, self._loss, self._largest])

    def _running_shape(self, n_nodes: int) -> tuple[int]:
        return (3,)

    def _fits(self, running: FloatArray) -> bool:
        count, loss, largest = running.tolist()
        return bool(0 <= count < LARGEST_LOSS and abs(loss) < LARGEST_LOSS and 1.0 <= largest <= RATIO_CAP)

    def _take(self, running: FloatArray) -> None:
        self._count, self._loss, self._largest = running.tolist()
