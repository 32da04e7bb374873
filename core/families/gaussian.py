"""The Gaussian, with a full covariance and with a diagonal one (Alg. 1; moment map with a conjugate prior)."""

from math import log, pi
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, product_by_blocks
from core.cholesky import factor
from core.families.base import Conditional, Family, NodeDensities, Prior
from core.statistics import Statistics

CHUNK_ROWS: Final = 64
"""Rows scored at a time: bounds the memory of a large batch, and keeps the work in the processor's cache."""


def posterior(statistics: Statistics, prior: Prior, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """MAP means (k, m) and covariances of these nodes: the moments of samples and pseudo-samples together."""
    n, k0 = statistics.count[nodes], prior.count
    total = n + k0
    mean = (n[:, None] * statistics.mean[nodes] + k0 * prior.mean[nodes]) / total[:, None]
    delta = statistics.mean[nodes] - prior.mean[nodes]
    if statistics.diagonal:
        between = (n * k0 / total)[:, None] * delta * delta
        variance = (statistics.scatter[nodes] + k0 * prior.covariance[nodes] + between) / total[:, None]
        return mean, variance + prior.floor
    between = (n * k0 / total)[:, None, None] * delta[:, :, None] * delta[:, None, :]
    covariance = (statistics.scatter[nodes] + k0 * prior.covariance[nodes] + between) / total[:, None, None]
    return mean, covariance + prior.floor * np.eye(mean.shape[1])


class GaussianNodes(NodeDensities):
    """N Gaussians as whitening maps: log f = log_norm - |W (x - mean)|^2 / 2."""

    def __init__(self, n_features: int) -> None:
        m = n_features
        self.mean = np.zeros((0, m))
        self.covariance = np.zeros((0, m, m))
        self._whitening = np.zeros((0, m, m))
        self._log_norm = np.zeros(0)
        self._partial: dict[bytes, tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = {}

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        self._make_room(int(nodes.max(initial=-1)) + 1)
        self._set(nodes, *posterior(statistics, prior, nodes))

    def marginal(self, features: list[int]) -> "GaussianNodes":
        part = GaussianNodes(len(features))
        part._make_room(len(self.mean))
        part._set(np.arange(len(self.mean)), self.mean[:, features], self.covariance[:, features][:, :, features])
        return part

    def _set(self, nodes: IntArray, mean: FloatArray, covariance: FloatArray) -> None:
        factors, deviations = factor(covariance)
        self.mean[nodes], self.covariance[nodes] = mean, covariance
        self._whitening[nodes] = np.linalg.inv(factors) / deviations[:, None, :]
        self._log_norm[nodes] = _log_norm(factors, deviations)
        self._place()

    def log_density(self, X: FloatArray) -> FloatArray:
        result = np.empty((len(X), len(self.mean)))
        for start in range(0, len(X), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            result[rows] = self._log_norm - 0.5 * self._squared_distance(X[rows])
        return result

    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        whitening, log_norm, gain, variance = self._given_the_rest(missing)
        nodes, k, p = gain.shape
        z = product_by_blocks(X[:, ~missing] - self._center[~missing], whitening.reshape(nodes * p, p).T)
        offset = np.matmul(whitening, (self.mean - self._center)[:, ~missing, None])
        z = z.reshape(len(X), nodes, p) - offset[:, :, 0]
        squared = (z * z).sum(2)
        mean = self.mean[:, missing] + np.matmul(gain, z[:, :, :, None])[:, :, :, 0]
        return Conditional(log_norm - 0.5 * squared, self._log_norm - 0.5 * (squared + k), mean, variance)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.covariance

    def _make_room(self, size: int) -> None:
        extra = size - len(self.mean)
        if extra > 0:
            for name in ("mean", "covariance", "_whitening", "_log_norm"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((extra, *old.shape[1:]))]))

    def _place(self) -> None:
        """Distances are taken from the root's mean, not from the origin, which may be 1e12 away."""
        self._center = self.mean[0].copy()
        self._offset = np.matmul(self._whitening, (self.mean - self._center)[:, :, None]).reshape(-1)
        self._columns = np.ascontiguousarray(self._whitening.reshape(len(self._offset), -1).T)
        self._partial.clear()

    def _squared_distance(self, X: FloatArray) -> FloatArray:
        z = product_by_blocks(X - self._center, self._columns)
        z -= self._offset
        z *= z
        squared: FloatArray = z.reshape(len(X), len(self.mean), -1).sum(2)
        return squared

    def _given_the_rest(self, missing: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """For one pattern of missing features: whitening and norm of the rest, gain on it, and what varies still."""
        key = missing.tobytes()
        if key not in self._partial:
            rest = self.covariance[:, ~missing][:, :, ~missing]
            factors, deviations = factor(rest)
            whitening = np.linalg.inv(factors) / deviations[:, None, :]
            cross = self.covariance[:, missing][:, :, ~missing]
            gain = np.matmul(cross, whitening.transpose(0, 2, 1))
            own = np.einsum("nii->ni", self.covariance)[:, missing]
            remaining = np.maximum(own - (gain * gain).sum(2), 0.0)
            self._partial[key] = whitening, _log_norm(factors, deviations), gain, remaining
        return self._partial[key]


def _log_norm(factors: FloatArray, deviations: FloatArray) -> FloatArray:
    """Log densities at the mean, (N,), of Gaussians with these correlation factors and deviations."""
    log_volume = np.log(np.einsum("nii->ni", factors)).sum(1) + np.log(deviations).sum(1)
    norm: FloatArray = -0.5 * deviations.shape[1] * log(2 * pi) - log_volume
    return norm


class DiagonalGaussianNodes(NodeDensities):
    """N Gaussians without correlations."""

    def __init__(self, n_features: int) -> None:
        self.mean = np.zeros((0, n_features))
        self.variance = np.zeros((0, n_features))

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        extra = int(nodes.max(initial=-1)) + 1 - len(self.mean)
        if extra > 0:
            padding = np.zeros((extra, self.mean.shape[1]))
            self.mean = np.concatenate([self.mean, padding])
            self.variance = np.concatenate([self.variance, padding])
        self.mean[nodes], self.variance[nodes] = posterior(statistics, prior, nodes)
        self._place()

    def marginal(self, features: list[int]) -> "DiagonalGaussianNodes":
        part = DiagonalGaussianNodes(len(features))
        part.mean, part.variance = self.mean[:, features], self.variance[:, features]
        part._place()
        return part

    def _place(self) -> None:
        self._deviation = np.sqrt(self.variance)
        self._log_norm = -0.5 * self.mean.shape[1] * log(2 * pi) - np.log(self._deviation).sum(1)

    def log_density(self, X: FloatArray) -> FloatArray:
        result = np.empty((len(X), len(self.mean)))
        for start in range(0, len(X), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            z = (X[rows, None, :] - self.mean) / self._deviation
            result[rows] = self._log_norm - 0.5 * (z * z).sum(2)
        return result

    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        z = (X[:, None, ~missing] - self.mean[:, ~missing]) / self._deviation[:, ~missing]
        squared = (z * z).sum(2)
        known = -0.5 * z.shape[2] * log(2 * pi) - np.log(self._deviation[:, ~missing]).sum(1) - 0.5 * squared
        expected = self._log_norm - 0.5 * (squared + np.count_nonzero(missing))
        mean = np.broadcast_to(self.mean[:, missing], (len(X), *self.mean[:, missing].shape))
        return Conditional(known, expected, mean, self.variance[:, missing])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.variance[:, :, None] * np.eye(self.mean.shape[1])


class Gaussian(Family):
    """T(x) = (x, x x^T), eta = (P mean, -P / 2) with P the inverse covariance; h = (2 pi)^(-m/2)."""

    diagonal = False

    def sufficient(self, X: FloatArray) -> FloatArray:
        return np.concatenate([X, (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)], 1)

    def log_partition(self, eta: FloatArray) -> float:
        mean, covariance = self._moments(eta)
        return float(0.5 * eta[: self.n_features] @ mean + 0.5 * np.linalg.slogdet(covariance)[1])

    def log_base(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), -0.5 * self.n_features * log(2 * pi))

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        m = self.n_features
        mean = mean_statistic[:m]
        precision = np.linalg.inv(mean_statistic[m:].reshape(m, m) - np.outer(mean, mean))
        return np.concatenate([precision @ mean, -0.5 * precision.ravel()])

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        mean, covariance = self._moments(eta)
        return np.concatenate([mean, (covariance + np.outer(mean, mean)).ravel()])

    def nodes(self) -> GaussianNodes:
        return GaussianNodes(self.n_features)

    def _moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        m = self.n_features
        covariance = np.linalg.inv(-2 * eta[m:].reshape(m, m)).astype(np.float64, copy=False)
        return covariance @ eta[:m], covariance


class DiagonalGaussian(Family):
    """T(x) = (x, x^2) a feature, eta = (mean / variance, -1 / (2 variance)); h = (2 pi)^(-m/2)."""

    diagonal = True

    def sufficient(self, X: FloatArray) -> FloatArray:
        return np.concatenate([X, X * X], 1)

    def log_partition(self, eta: FloatArray) -> float:
        mean, variance = self._moments(eta)
        return float(0.5 * (mean * mean / variance + np.log(variance)).sum())

    def log_base(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), -0.5 * self.n_features * log(2 * pi))

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        mean, square = np.split(mean_statistic, 2)
        variance = square - mean * mean
        return np.concatenate([mean / variance, -0.5 / variance])

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        mean, variance = self._moments(eta)
        return np.concatenate([mean, variance + mean * mean])

    def nodes(self) -> DiagonalGaussianNodes:
        return DiagonalGaussianNodes(self.n_features)

    def _moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        linear, quadratic = np.split(eta, 2)
        variance = -0.5 / quadratic
        return linear * variance, variance
