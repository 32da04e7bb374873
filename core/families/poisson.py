"""Counts: T = x, A = e^eta, h = 1 / x!; the conjugate prior is a Gamma, the predictive a negative binomial."""

from math import log, pi
from typing import Any, Final

import numpy as np
from scipy.special import betainc, gammaln

from core.arrays import FloatArray, IntArray
from core.families.factor import LEAST, MOST_COUNT, Factor, Predictive
from core.kinds import KINDS

SHAPE: Final = 0.5
"""Shape of the Gamma prior of a node's rate, whose mean is the parent's rate: that of Jeffreys' prior. A whole
pseudo-sample of mean 10^6 would fix the rate to a part in a thousand."""
LIMIT_COUNT: Final = 8.0
"""Pseudo-samples of the warm-up's spread, in the limits of what is learned. Chosen by hand."""
_FEW: Final = 16.0
"""From here on three terms of Stirling's series err by 3e-12 at most."""
_MOST_TERMS: Final = 1024
"""Counts that an entropy is summed over; a Gaussian's stands for that of larger ones. Chosen by hand."""


class Poisson(Factor):
    """Columns: known, x, and its coordinate u = 2 sqrt(x), whose variance 4 E x - (E u)^2 bounds what is learned."""

    kind = "poisson"
    width = 3

    def sufficient(self, X: FloatArray) -> FloatArray:
        return X

    def log_partition(self, eta: FloatArray) -> float:
        return float(np.exp(eta[0]))

    def log_base(self, X: FloatArray) -> FloatArray:
        base: FloatArray = -gammaln(X[:, 0] + 1)
        return base

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        return np.log(mean_statistic)

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        return np.exp(eta)

    def columns(self, z: FloatArray) -> FloatArray:
        return np.stack([np.ones(len(z)), KINDS[self.kind].value(z), z], 1)

    def start(self) -> FloatArray:
        return self.expecting(20.0, 20.0)

    def expecting(self, location: float, spread: float) -> FloatArray:
        return np.array([1.0, max(0.25 * (location**2 + spread**2), 0.25), location])

    def prior_count(self, expected: FloatArray) -> FloatArray:
        return np.minimum(1.0, SHAPE / _rate(expected))

    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        """With rate l = e^eta: the integral of exp(-c l) l^(c t - 1)."""
        sums = count * _rate(mean)
        value: FloatArray = gammaln(sums) - sums * np.log(count)
        return value

    def predictive(self, count: FloatArray, mean: FloatArray) -> "NegativeBinomial":
        return NegativeBinomial(np.minimum(count, MOST_COUNT), _rate(mean))

    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        _, x, u = (count * mean + LIMIT_COUNT * expected) / (count * mean[0] + LIMIT_COUNT)
        width = (1 + reach) * np.sqrt(max(4 * x - u * u, 0.0) + 1.0)
        return max(u - width, 0.0), float(u + width)


def _rate(mean: FloatArray) -> FloatArray:
    return np.maximum(mean[:, 1], LEAST)


class NegativeBinomial(Predictive):
    """Of c samples (N,) of mean t (N,): r = c t successes of probability c / (c + 1)."""

    def __init__(self, count: FloatArray, rate: FloatArray) -> None:
        self._count, self._rate, self._successes = count, rate, count * rate

    def log_density(self, z: FloatArray) -> FloatArray:
        return self._log_probability(np.rint(KINDS["poisson"].value(z))[:, None])

    def _log_probability(self, x: FloatArray) -> FloatArray:
        """By Loader's saddle point (R's dnbinom): differences of log-gamma lose all digits at counts of 10^15."""
        r, c = self._successes, self._count
        total, some = x + r, np.maximum(x, 0.5)
        deviance = _deviance(r, total * (c / (c + 1))) + _deviance(some, total / (c + 1))
        stirling = _stirling(total) - _stirling(r) - _stirling(some)
        log_probability = np.log(r / total) + stirling - deviance - 0.5 * (log(2 * pi) + np.log(r * some / total))
        return np.where(x > 0, log_probability, -r * np.log1p(1 / c))

    def expected(self) -> FloatArray:
        """Summed over the counts, or the Gaussian's where they are large."""
        variance = self.variance()
        expected: FloatArray = -0.5 * (1 + np.log(2 * pi * variance))
        small = self._rate + 40 * np.sqrt(variance) < _MOST_TERMS
        if small.any():
            summed = NegativeBinomial(self._count[small], self._rate[small])
            log_p = summed._log_probability(np.arange(float(_MOST_TERMS))[:, None])
            expected[small] = (np.exp(log_p) * log_p).sum(0)
        return expected

    def variance(self) -> FloatArray:
        """Of the counts, (N,)."""
        variance: FloatArray = self._rate * (1 + 1 / self._count)
        return variance

    def center(self) -> FloatArray:
        return KINDS["poisson"].coordinate(self._rate)

    def spread(self) -> FloatArray:
        """By the delta method; u = 2 sqrt(x)."""
        spread: FloatArray = self.variance() / np.maximum(self._rate, 0.25)
        return spread

    def cdf(self, x: FloatArray, nodes: IntArray) -> FloatArray:
        up_to, count = np.floor(x)[:, None], self._count[nodes]
        chance = betainc(self._successes[nodes], np.maximum(up_to, 0.0) + 1.0, count / (count + 1.0))
        return np.where(up_to < 0, 0.0, chance)

    def bounds(self, level: float) -> tuple[FloatArray, FloatArray]:
        """By Cantelli's inequality."""
        deviation, odds = np.sqrt(self.variance()), np.sqrt(level / (1 - level))
        return np.maximum(self._rate - deviation / odds, 0.0), self._rate + deviation * odds

    def describe(self, node: int, unit: float) -> dict[str, Any]:
        return {"rate": float(self._rate[node])}


def _deviance(x: FloatArray, mean: FloatArray) -> FloatArray:
    """x log(x / mean) + mean - x, for positive ones."""
    off = (x - mean) / mean
    ratio = np.where(off < -0.5, np.log(x / mean), np.log1p(np.maximum(off, -0.5)))
    deviance: FloatArray = x * ratio - (x - mean)
    return deviance


def _stirling(x: FloatArray) -> FloatArray:
    """What Stirling's formula leaves of log x!."""
    large = np.maximum(x, _FEW)
    series = (1 / 12 - (1 / 360 - 1 / (1260 * large**2)) / large**2) / large
    small = np.minimum(x, _FEW)
    direct: FloatArray = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * log(2 * pi)
    return np.where(x < _FEW, direct, series)
