"""The posterior predictive of the Gaussian, eq. (6): a Student t, heavy-tailed while a node knows little.

With a normal-inverse-Wishart prior of k0 pseudo-samples for the mean and a for the scale, n samples give the MAP
location, the MAP covariance times (n + k0 + 1) / (n + k0) as scale matrix, and n + a degrees of freedom. The paper has
the Gaussian of Alg. 1, which is its limit.
"""

from math import isnan, pi
from typing import Final

import numpy as np
from scipy.special import gammaln, psi

from core.arrays import BoolArray, FloatArray, IntArray
from core.families.base import Prior
from core.families.diagonal_nodes import DiagonalGaussianNodes
from core.families.gaussian_nodes import GaussianNodes
from core.families.posterior import posterior
from core.families.statistics import Statistics
from core.families.student_stack import row_width

MOST_FREEDOM: Final = 30.0
MOST_FREEDOM_PER_FEATURE: Final = 4.0
"""Cap of the degrees of freedom: even a node that has seen much keeps a tail, which bounds what one sample can cost.
The tail costs the centre about m^2 / (4 nu) nats, so the cap grows with the features. Chosen by hand; section 10 of
docs/method.md has the loss without it."""
LARGEST_SPREAD: Final = 1e300
"""Variances given far values end here, short of overflow."""


def predictive(statistics: Statistics, prior: Prior, nodes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Locations (k, b), scale matrices, (k, b, b) or (k, b), and degrees of freedom (k,) of these nodes: eq. (6)."""
    mean, covariance = posterior(statistics, prior, nodes)
    n, k0 = statistics.count[nodes], prior.mean_count[nodes]
    widening = ((n + k0 + 1) / (n + k0)).reshape(-1, *(1,) * (covariance.ndim - 1))
    return mean, covariance * widening, np.minimum(n + prior.strength[nodes], most_freedom(mean.shape[1]))


def most_freedom(n_features: int) -> float:
    """The cap on degrees of freedom."""
    return MOST_FREEDOM + MOST_FREEDOM_PER_FEATURE * n_features


def log_norm(freedom: FloatArray, n_features: int) -> FloatArray:
    """Log densities (N,) at the centre of standard Student t over n_features, in nats."""
    half = (freedom + n_features) / 2
    norm: FloatArray = gammaln(half) - gammaln(freedom / 2) - 0.5 * n_features * np.log(freedom * pi)
    return norm


def expected_tail(freedom: FloatArray, known: int, missing: int) -> FloatArray:
    """How much log(1 + q / nu) grows, on average, by the missing features, given the known ones: (N,).

    (1 + q / nu) = (1 + q_known / nu) (1 + F missing / (nu + known)), and the reciprocal of the last factor is Beta.
    """
    growth: FloatArray = psi((freedom + known + missing) / 2) - psi((freedom + known) / 2)
    return growth


def stretch(freedom: FloatArray, squared: FloatArray, known: int) -> FloatArray:
    """Variance over scale, (n, N), of the missing features, given known ones at squared distances (n, N).

    They are Student t again, with nu + known degrees of freedom and (nu + q_known) / (nu + known) times the scale.
    Their variance is that times (nu + known) / (nu + known - 2), which grows without bound towards two degrees of
    freedom: below three it is taken as at three.
    """
    stretched: FloatArray = (freedom + squared) / np.maximum(freedom + known - 2.0, 1.0)
    return stretched


class StudentNodes(GaussianNodes):
    """N multivariate Student t: log f = log_norm - (nu + m) / 2 log(1 + |W (x - location)|^2 / nu) - log_volume."""

    ARRAYS = (*GaussianNodes.ARRAYS, "freedom")

    freedom: FloatArray

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self.freedom = np.zeros(0)

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        self._make_room(int(nodes.max(initial=-1)) + 1)
        mean, scale, self.freedom[nodes] = predictive(statistics, prior, nodes)
        self._set(nodes, mean, scale)
        self._place()

    def _place(self) -> None:
        self._exponents: dict[int, FloatArray] = {}
        super()._place()
        exponents = -0.5 * (self.freedom + len(self._center))
        self._row[self._coefficients.size : -1] = np.concatenate(
            [self._center, self.freedom, exponents, self._peak, [self._near]]
        )

    def _blank(self, rows: int, columns: int) -> FloatArray:
        nodes, m = self.mean.shape
        self._row = np.zeros(row_width(nodes, m))
        self._row[-1] = np.nan
        return self._row[: rows * columns].reshape(rows, columns)

    def row(self, reach: float) -> FloatArray:
        """All that scores a sample, as one row of numbers, for StudentStack. It may draw samples in to this reach."""
        if isnan(self._row[-1]):
            self._row[-1] = self._edge(reach)
        return self._row

    def _log_peak(self, log_volumes: FloatArray, n_features: int) -> FloatArray:
        return log_norm(self.freedom, n_features) - log_volumes

    def _log_kernel(self, squared: FloatArray, log_peak: FloatArray, n_features: int) -> FloatArray:
        if n_features not in self._exponents:
            self._exponents[n_features] = -0.5 * (self.freedom + n_features)
        kernel: FloatArray = squared / self.freedom
        kernel += 1.0
        np.log(kernel, out=kernel)
        kernel *= self._exponents[n_features]
        kernel += log_peak
        return kernel

    def _expected(self, squared: FloatArray, n_missing: int) -> FloatArray:
        m = self.mean.shape[1]
        growth = expected_tail(self.freedom, m - n_missing, n_missing)
        expected: FloatArray = self._log_kernel(squared, self._peak, m) - 0.5 * (self.freedom + m) * growth
        return expected

    def _spread(self, variance: FloatArray, squared: FloatArray, n_known: int) -> FloatArray:
        most = LARGEST_SPREAD / max(1.0, float(variance.max()))
        spread: FloatArray = np.minimum(stretch(self.freedom, squared, n_known), most)[:, :, None] * variance
        return spread


class DiagonalStudentNodes(DiagonalGaussianNodes):
    """N products of Student t, one a feature."""

    ARRAYS = (*DiagonalGaussianNodes.ARRAYS, "freedom")

    freedom: FloatArray

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self.freedom = np.zeros(0)

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        self._make_room(int(nodes.max(initial=-1)) + 1)
        self.mean[nodes], self.variance[nodes], self.freedom[nodes] = predictive(statistics, prior, nodes)
        self._place()

    def _log_kernel(self, X: FloatArray, features: BoolArray) -> FloatArray:
        tail = np.log1p(self._squares(X, features) / self.freedom[:, None]).sum(2) * (0.5 * (self.freedom + 1))
        kernel: FloatArray = self._log_constant(features) - tail
        return kernel

    def _log_terms(self, X: FloatArray) -> FloatArray:
        tails = np.log1p(self._squares(X, np.ones(X.shape[1], bool)) / self.freedom[:, None])
        centre = log_norm(self.freedom, 1)[:, None] - np.log(self._deviation)
        terms: FloatArray = centre - 0.5 * (self.freedom + 1)[:, None] * tails
        return terms

    def _spread(self) -> FloatArray:
        spread: FloatArray = stretch(self.freedom, np.zeros(1), 0)[:, None] * self.variance
        return spread

    def _expected(self, features: BoolArray) -> FloatArray:
        tail = np.count_nonzero(features) * expected_tail(self.freedom, 0, 1)
        expected: FloatArray = self._log_constant(features) - 0.5 * (self.freedom + 1) * tail
        return expected

    def _log_constant(self, features: BoolArray) -> FloatArray:
        log_volumes = np.log(self._deviation[:, features]).sum(1)
        constant: FloatArray = np.count_nonzero(features) * log_norm(self.freedom, 1) - log_volumes
        return constant
