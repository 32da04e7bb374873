"""Durations above 0: T = (log x, x), A = log G(k) - k log l with eta = (k, -l), h = 1 / x.

The conjugate prior has a rate that integrates out in closed form; the shape k is integrated numerically for the
evidence and taken at the moment map for the predictive, which is then a beta prime.
"""

from typing import Any, Final

import numpy as np
from scipy.special import betainc, betaincinv, betaln, expit, gammaln, logit, polygamma, psi

from core.arrays import FloatArray, IntArray
from core.families.factor import LARGEST, LEAST, MOST_COUNT, Factor, Predictive
from core.kinds import KINDS

PRIOR_COUNT: Final = 0.01
"""Pseudo-samples of what the parent has learned: see the exponential. Chosen by hand."""
LIMIT_COUNT: Final = 8.0
"""Pseudo-samples of what was expected, in the limits of what is learned. Chosen by hand."""
LEAST_GAP: Final = 5e-5
"""The least log E x - E log x, about half the squared relative deviation: equal durations deviate by 1 %. Chosen by
hand."""
NEWTON_STEPS: Final = 5
"""From Minka's start. Chosen by hand."""
LEAST_VALUE: Final = 1e-290
"""The least quantile, in units of the scale: with a shape of 1e-3 most would be 0."""
_STEPS: Final = np.linspace(-10.0, 10.0, 81)
"""Points of the trapezium rule, in widths of the integrand around its peak. Chosen by hand."""


class Gamma(Factor):
    """Columns: known, log x, x in the unit of its coordinate; the root expects an exponential of mean one unit."""

    kind = "gamma"
    width = 3

    def sufficient(self, X: FloatArray) -> FloatArray:
        return np.concatenate([np.log(X), X], 1)

    def log_partition(self, eta: FloatArray) -> float:
        return float(gammaln(eta[0]) - eta[0] * np.log(-eta[1]))

    def log_base(self, X: FloatArray) -> FloatArray:
        return -np.log(X[:, 0])

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        shape = shape_of(np.log(mean_statistic[1]) - mean_statistic[0])
        return np.array([float(shape), -float(shape) / mean_statistic[1]])

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        return np.array([psi(eta[0]) - np.log(-eta[1]), -eta[0] / eta[1]])

    def columns(self, z: FloatArray) -> FloatArray:
        return np.stack([np.ones(len(z)), z, np.minimum(KINDS[self.kind].value(z), LARGEST)], 1)

    def start(self) -> FloatArray:
        return np.array([1.0, psi(1.0), 1.0])

    def prior_count(self, expected: FloatArray) -> FloatArray:
        return np.full(len(expected), PRIOR_COUNT)

    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        """Over log k by the trapezium rule about the moment map; the rate's integral is a Gamma's."""
        gap, scale = _gap(mean)
        c, shape = count[:, None], shape_of(gap)[:, None]
        width = 1 / np.sqrt(c * shape**2 * (polygamma(1, shape) - 1 / shape) + 0.25)
        k = shape * np.exp(width * _STEPS)
        terms = c * (k * (np.log(scale) - gap)[:, None] - gammaln(k)) + gammaln(c * k + 1)
        terms += np.log(k) - (c * k + 1) * np.log(c * scale[:, None])
        top = terms.max(1)
        step = width[:, 0] * (_STEPS[1] - _STEPS[0])
        value: FloatArray = top + np.log(np.exp(terms - top[:, None]).sum(1) * step)
        return value

    def predictive(self, count: FloatArray, mean: FloatArray) -> "BetaPrime":
        gap, scale = _gap(mean)
        return BetaPrime(shape_of(gap), np.minimum(count, MOST_COUNT), scale)

    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        """1 + reach deviations of log x, by the root's shape, on either side of its mean."""
        together = (count * mean + LIMIT_COUNT * expected) / (count * mean[0] + LIMIT_COUNT)
        gap, _ = _gap(together[None])
        width = (1 + reach) * float(np.sqrt(polygamma(1, shape_of(gap)[0])))
        return float(together[1]) - width, float(together[1]) + width


def _gap(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log E x - E log x, (k,), and E x."""
    scale = np.maximum(mean[:, 2], LEAST)
    return np.maximum(np.log(scale) - mean[:, 1], LEAST_GAP), scale


def shape_of(gap: FloatArray) -> FloatArray:
    """The k with log k - psi(k) = gap, (k,): Minka's start and Newton's steps in 1 / k."""
    gap = np.maximum(gap, LEAST_GAP)
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(NEWTON_STEPS):
        slope = 1 / shape - polygamma(1, shape)
        inverse = 1 / shape + (np.log(shape) - psi(shape) - gap) / (shape**2 * slope)
        shape = 1 / np.maximum(inverse, 1e-3 / shape)
    return shape


class BetaPrime(Predictive):
    """Of c samples (N,) of mean t (N,) and shape k (N,): x / b has a beta prime law of k and a = c k + 1, b = c t."""

    def __init__(self, shape: FloatArray, count: FloatArray, mean: FloatArray) -> None:
        self._shape, self._mean = shape, mean
        self._tail, self._log_scale = count * shape + 1, np.log(count * mean)
        self._log_norm = -betaln(shape, self._tail)

    def log_density(self, z: FloatArray) -> FloatArray:
        w = z[:, None] - self._log_scale
        below, above = np.logaddexp(0.0, -w), np.logaddexp(0.0, w)
        log_density: FloatArray = self._log_norm - z[:, None] - self._shape * below - self._tail * above
        return log_density

    def expected(self) -> FloatArray:
        """x / (b + x) is a Beta of k and a."""
        k, a = self._shape, self._tail
        both = (k + a) * psi(k + a) - k * psi(k) - a * psi(a)
        expected: FloatArray = self._log_norm - self.center() - both
        return expected

    def center(self) -> FloatArray:
        center: FloatArray = self._log_scale + psi(self._shape) - psi(self._tail)
        return center

    def spread(self) -> FloatArray:
        spread: FloatArray = polygamma(1, self._shape) + polygamma(1, self._tail)
        return spread

    def cdf(self, x: FloatArray, nodes: IntArray) -> FloatArray:
        share = expit(np.log(x)[:, None] - self._log_scale[nodes])
        return np.asarray(betainc(self._shape[nodes], self._tail[nodes], share), np.float64)

    def bounds(self, level: float) -> tuple[FloatArray, FloatArray]:
        share = np.clip(betaincinv(self._shape, self._tail, level), LEAST_VALUE, 1 - 1e-16)
        quantile = np.exp(self._log_scale + logit(share))
        return quantile, quantile

    def describe(self, node: int, unit: float) -> dict[str, Any]:
        return {"shape": float(self._shape[node]), "mean": float(self._mean[node]) * unit}
