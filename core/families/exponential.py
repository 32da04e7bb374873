"""Waiting times from 0 on: T = x, A = -log(-eta); the conjugate prior is a Gamma, the predictive a Lomax."""

from typing import Any, Final

import numpy as np
from scipy.special import gammaln

from core.arrays import FloatArray, IntArray
from core.families.factor import LARGEST, LEAST, MOST_COUNT, Factor, Predictive
from core.kinds import KINDS

PRIOR_COUNT: Final = 0.01
"""Pseudo-samples of a parent's mean time, few since its children's may be much shorter. Chosen by hand."""
FAR: Final = 20.0
"""Longer times, in mean times, are learned as so many. Chosen by hand."""


class Exponential(Factor):
    """Columns: known, x in the unit of its coordinate; the root expects a mean of one unit."""

    kind = "exponential"
    width = 2

    def sufficient(self, X: FloatArray) -> FloatArray:
        return X

    def log_partition(self, eta: FloatArray) -> float:
        return -float(np.log(-eta[0]))

    def log_base(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X))

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        return -1 / mean_statistic

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        return -1 / eta

    def columns(self, z: FloatArray) -> FloatArray:
        return np.stack([np.ones(len(z)), _time(z)], 1)

    def start(self) -> FloatArray:
        return np.ones(2)

    def prior_count(self, expected: FloatArray) -> FloatArray:
        return np.full(len(expected), PRIOR_COUNT)

    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        """With rate l = -eta: the integral of exp(-c t l) l^c."""
        value: FloatArray = gammaln(count + 1) - (count + 1) * np.log(count * _mean_time(mean))
        return value

    def predictive(self, count: FloatArray, mean: FloatArray) -> "Lomax":
        return Lomax(np.minimum(count, MOST_COUNT), _mean_time(mean))

    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        longest = FAR * np.maximum((count * mean[1] + expected[1]) / (count + 1), LEAST)
        return 0.0, float(KINDS[self.kind].coordinate(longest))


def _time(z: FloatArray) -> FloatArray:
    return np.minimum(KINDS["exponential"].value(z), LARGEST)


def _mean_time(mean: FloatArray) -> FloatArray:
    return np.maximum(mean[:, 1], LEAST)


class Lomax(Predictive):
    """Of c samples (N,) of mean time t (N,): log f = log(a / b) - (a + 1) log(1 + x / b), a = c + 1, b = c t."""

    def __init__(self, count: FloatArray, mean_time: FloatArray) -> None:
        self._shape, self._scale, self._mean_time = count + 1, count * mean_time, mean_time
        self._log_norm = np.log(self._shape) - np.log(self._scale)

    def log_density(self, z: FloatArray) -> FloatArray:
        log_density: FloatArray = self._log_norm - (self._shape + 1) * np.log1p(_time(z)[:, None] / self._scale)
        return log_density

    def expected(self) -> FloatArray:
        """log(1 + x / b) is exponential of mean 1 / a."""
        expected: FloatArray = self._log_norm - (self._shape + 1) / self._shape
        return expected

    def center(self) -> FloatArray:
        return KINDS["exponential"].coordinate(self._mean_time)

    def spread(self) -> FloatArray:
        """By the delta method: u = 4 x^(1/4), x of deviation t."""
        spread: FloatArray = np.sqrt(self._mean_time)
        return spread

    def cdf(self, x: FloatArray, nodes: IntArray) -> FloatArray:
        log_rest: FloatArray = -self._shape[nodes] * np.log1p(np.maximum(x, 0.0)[:, None] / self._scale[nodes])
        return -np.expm1(log_rest)

    def bounds(self, level: float) -> tuple[FloatArray, FloatArray]:
        quantile = self._scale * np.expm1(-np.log1p(-level) / self._shape)
        return quantile, quantile

    def describe(self, node: int, unit: float) -> dict[str, Any]:
        return {"mean": float(self._mean_time[node]) * unit}
