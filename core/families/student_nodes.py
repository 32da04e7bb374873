"""The posterior predictive of the Gaussian: a Student t, heavy-tailed while a node knows little.

With a normal-inverse-Wishart prior of k0 pseudo-samples, n samples give the MAP location, the MAP covariance times
(n + k0 + 1) / (n + k0) as scale matrix, and n + k0 degrees of freedom. The Gaussian of Alg. 1 is its limit.
"""

from math import pi
from typing import Final

import numpy as np
from scipy.special import gammaln, psi

from core.arrays import BoolArray, FloatArray, IntArray
from core.families.base import Prior
from core.families.gaussian_nodes import DiagonalGaussianNodes, GaussianNodes, posterior
from core.statistics import Statistics

MOST_FREEDOM: Final = 30.0
MOST_FREEDOM_PER_FEATURE: Final = 4.0
"""Even a node that has seen much keeps a tail, which bounds what a single sample can cost. With the features grows what
the tail takes from the centre, about m^2 / (4 nu) nats, so the cap grows with them."""


def predictive(statistics: Statistics, prior: Prior, nodes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Locations (k, m), scale matrices and degrees of freedom (k,) of these nodes."""
    mean, covariance = posterior(statistics, prior, nodes)
    total = statistics.count[nodes] + prior.count
    widening = ((total + 1) / total).reshape(-1, *(1,) * (covariance.ndim - 1))
    return mean, covariance * widening, np.minimum(total, most_freedom(mean.shape[1]))


def most_freedom(n_features: int) -> float:
    """The cap on degrees of freedom."""
    return MOST_FREEDOM + MOST_FREEDOM_PER_FEATURE * n_features


def log_norm(freedom: FloatArray, n_features: int) -> FloatArray:
    """Log densities (N,) of standard Student t over so many features at their centre."""
    half = (freedom + n_features) / 2
    norm: FloatArray = gammaln(half) - gammaln(freedom / 2) - 0.5 * n_features * np.log(freedom * pi)
    return norm


def expected_tail(freedom: FloatArray, known: int, missing: int) -> FloatArray:
    """The expected growth (N,) of log(1 + q / nu) by features that are not known, given some that are.

    (1 + q / nu) = (1 + q_known / nu) (1 + F missing / (nu + known)), and the reciprocal of the last factor is Beta.
    """
    growth: FloatArray = psi((freedom + known + missing) / 2) - psi((freedom + known) / 2)
    return growth


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
        super()._place()
        self._norms: dict[int, FloatArray] = {}

    def _log_kernel(self, squared: FloatArray, log_volumes: FloatArray, n_features: int) -> FloatArray:
        if n_features not in self._norms:
            self._norms[n_features] = log_norm(self.freedom, n_features)
        tail = np.log1p(squared / self.freedom) * (0.5 * (self.freedom + n_features))
        kernel: FloatArray = self._norms[n_features] - log_volumes - tail
        return kernel

    def _expected(self, squared: FloatArray, n_missing: int) -> FloatArray:
        m = self.mean.shape[1]
        growth = expected_tail(self.freedom, m - n_missing, n_missing)
        return self._log_kernel(squared, self._log_volume, m) - 0.5 * (self.freedom + m) * growth


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

    def _expected(self, features: BoolArray) -> FloatArray:
        tail = np.count_nonzero(features) * expected_tail(self.freedom, 0, 1)
        expected: FloatArray = self._log_constant(features) - 0.5 * (self.freedom + 1) * tail
        return expected

    def _log_constant(self, features: BoolArray) -> FloatArray:
        log_volumes = np.log(self._deviation[:, features]).sum(1)
        constant: FloatArray = np.count_nonzero(features) * log_norm(self.freedom, 1) - log_volumes
        return constant
