"""The weights alpha of the nodes in the mixture p(x) = sum_i alpha_i f_i(x) (ITAN eq. mixture), and how they move."""

from abc import ABC, abstractmethod
from math import log, sqrt
from typing import Final

import numpy as np

from core.arrays import FloatArray

LEAST_WEIGHT: Final = 1e-300
RATIO_CAP: Final = 5.0
"""Where EG clips f_i / p. The paper bounds f, which carries units; the ratio itself reaches 1 / alpha_i, and unclipped
it throws all weight on one node (log-loss 5 to 30 on the paper's own experiments)."""
LEAST_MEAN_LOSS: Final = 1e-3
SOFT_BAYES_RATE: Final = 0.02


def log_mixture(log_density: FloatArray, weights: FloatArray) -> FloatArray:
    """log sum_i alpha_i f_i, (n,), from the nodes' log densities (n, N).

    >>> log_mixture(np.array([[-1e5, -1e5]]), np.array([0.5, 0.5]))
    array([-100000.])
    """
    return _log_sum_exp(log_density + np.log(np.maximum(weights, LEAST_WEIGHT)))


def _log_sum_exp(terms: FloatArray) -> FloatArray:
    top = terms.max(1)
    terms = np.exp(terms - top[:, None])
    total: FloatArray = top + np.log(terms.sum(1))
    return total


class Mixture(ABC):
    """Weights (N,) on the simplex; move them by the densities that the samples had before they were learned."""

    name: str

    def __init__(self) -> None:
        self.weights = np.ones(1)

    @property
    def weights(self) -> FloatArray:
        """alpha, (N,), summing to one."""
        return self._weights

    @weights.setter
    def weights(self, values: FloatArray) -> None:
        self._weights = values
        self._log_weights = np.log(np.maximum(values, LEAST_WEIGHT))

    def log_p(self, log_density: FloatArray) -> FloatArray:
        """log_mixture by the present weights."""
        return _log_sum_exp(log_density + self._log_weights)

    def learn(self, log_density: FloatArray) -> None:
        """Move the weights by a round of samples: log densities (k, N) of the frozen nodes."""
        log_p = self.log_p(log_density)
        self._move(np.exp(np.minimum(log_density - log_p[:, None], 690.0)), log_p)
        positive = np.maximum(self.weights, LEAST_WEIGHT)
        self.weights = positive / positive.sum()

    def split(self, node: int, kept: float, left_share: float) -> None:
        """The node keeps a share; two new nodes, appended, get left_share and the rest of what it gives."""
        given = (1 - kept) * self.weights[node]
        weights = np.append(self.weights, [left_share * given, (1 - left_share) * given])
        weights[node] *= kept
        self.weights = weights

    @abstractmethod
    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        """One step by the ratios f_i / p (k, N) of a round whose log p is log_p (k,)."""

    @property
    @abstractmethod
    def running(self) -> FloatArray:
        """The running estimates that a snapshot must keep."""

    @running.setter
    @abstractmethod
    def running(self, values: FloatArray) -> None: ...


class ExponentiatedGradient(Mixture):
    """alpha_i <- alpha_i exp(theta f_i / p), normalised (ITAN eq. EG; the paper leaves the normalisation out).

    theta is Theorem 1's, 2 sqrt(ln N) / (R sqrt(2 A T) + R^2 sqrt(ln N)), from running estimates: T the samples so far,
    A their mean loss -log p (at least LEAST_MEAN_LOSS: it is negative once densities pass 1), R the largest ratio so
    far.
    """

    name = "eg"

    def __init__(self) -> None:
        super().__init__()
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

    @running.setter
    def running(self, values: FloatArray) -> None:
        self._count, self._loss, largest = (float(v) for v in values)
        self._largest = max(largest, 1.0)


def theorem_1_rate(complexity: float, largest_ratio: float, mean_loss: float, rounds: float) -> float:
    """Theorem 1's theta for complexity sqrt(ln N), R, A and T."""
    return 2 * complexity / (largest_ratio * sqrt(2 * mean_loss * rounds) + largest_ratio**2 * complexity)


class SoftBayes(Mixture):
    """alpha_i <- alpha_i ((1 - eta) + eta f_i / p) with eta = max(SOFT_BAYES_RATE, 1 / (t + 1)).

    Orseau, Lattimore and Legg, "Soft-Bayes: Prod for mixtures of experts with log-loss". Its regret does not depend on
    the size of the ratios, and no weight ever collapses. Within a round the rates add up as if the nodes stood still.
    """

    name = "soft_bayes"

    def __init__(self) -> None:
        super().__init__()
        self._count = 0.0

    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        k = len(log_p)
        rate = 1 - (1 - max(SOFT_BAYES_RATE, 1 / (self._count + 2))) ** k
        self._count += k
        self.weights = self.weights * ((1 - rate) + rate * ratio.mean(0))

    @property
    def running(self) -> FloatArray:
        return np.array([self._count])

    @running.setter
    def running(self, values: FloatArray) -> None:
        self._count = float(values[0])


MIXTURES: Final[dict[str, type[Mixture]]] = {c.name: c for c in (ExponentiatedGradient, SoftBayes)}
