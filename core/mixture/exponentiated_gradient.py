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
"""Where f_i / p is clipped: unclipped it reaches 1 / alpha_i, and R with it. Chosen by hand; section 10 of
docs/method.md has the loss with and without it."""
LEAST_MEAN_LOSS: Final = 1e-3
"""The least A, which the losses turn negative once densities pass 1. Chosen by hand."""


class ExponentiatedGradient(FlatMixture):
    """The paper's rule, eq. (11), with the rate of Theorem 1, eq. (12).

    Deviations: weights are normalised, which the paper leaves out. T, A and R are running estimates, since nobody
    knows them beforehand: the samples so far, their mean loss, the largest ratio so far. Ratios f_i / p are clipped
    where the paper bounds f, since a bound on f would carry units.
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
        step = self.rate() * clipped.sum(0)
        self.weights = self.weights * np.exp(step - step.max())

    def rate(self) -> float:
        """The theta of eq. (12) from the estimates so far."""
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
