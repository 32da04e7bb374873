"""The MAP Gaussians of many nodes at once, with full covariances and with diagonal ones."""

from collections.abc import Callable
from math import log, pi
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, product_by_blocks
from core.cholesky import factor
from core.families.base import Conditional, NodeDensities, Prior
from core.statistics import Statistics

CHUNK_ROWS: Final = 64
"""Rows scored at a time: bounds the memory of a large batch, and keeps the work in the processor's cache."""


def by_chunks(X: FloatArray, log_density: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Log densities (n, N) of samples, so many rows at a time."""
    if len(X) <= CHUNK_ROWS:
        return log_density(X)
    return np.concatenate([log_density(X[start : start + CHUNK_ROWS]) for start in range(0, len(X), CHUNK_ROWS)])


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
    """N Gaussians as whitening maps: log f = -(|W (x - mean)|^2 + m log 2 pi) / 2 - log_volume."""

    ARRAYS: tuple[str, ...] = ("mean", "covariance", "_whitening", "_log_volume")

    def __init__(self, n_features: int) -> None:
        m = n_features
        self.mean = np.zeros((0, m))
        self.covariance = np.zeros((0, m, m))
        self._whitening = np.zeros((0, m, m))
        self._log_volume = np.zeros(0)
        self._partial: dict[bytes, tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = {}

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        self._make_room(int(nodes.max(initial=-1)) + 1)
        self._set(nodes, *posterior(statistics, prior, nodes))
        self._place()

    def marginal(self, features: list[int]) -> "GaussianNodes":
        part, nodes = type(self)(len(features)), np.arange(len(self.mean))
        part._make_room(len(nodes))
        part.freedom = self.freedom
        part._set(nodes, self.mean[:, features], self.covariance[:, features][:, :, features])
        part._place()
        return part

    def _set(self, nodes: IntArray, mean: FloatArray, covariance: FloatArray) -> None:
        factors, deviations = factor(covariance)
        self.mean[nodes], self.covariance[nodes] = mean, covariance
        self._whitening[nodes] = np.linalg.inv(factors) / deviations[:, None, :]
        self._log_volume[nodes] = log_volume(factors, deviations)

    def _log_kernel(self, squared: FloatArray, log_volumes: FloatArray, n_features: int) -> FloatArray:
        """Log densities (n, N) at these squared distances, of the Gaussians over so many features."""
        return -0.5 * (squared + n_features * log(2 * pi)) - log_volumes

    def _expected(self, squared: FloatArray, n_missing: int) -> FloatArray:
        """Log densities (n, N) expected of the whole, from the squared distance of what is known."""
        return self._log_kernel(squared + n_missing, self._log_volume, self.mean.shape[1])

    def log_density(self, X: FloatArray) -> FloatArray:
        return by_chunks(X, lambda x: self._log_kernel(self._squared_distance(x), self._log_volume, x.shape[1]))

    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        whitening, volumes, gain, variance = self._given_the_rest(missing)
        nodes, k, p = gain.shape
        z = product_by_blocks(X[:, ~missing] - self._center[~missing], whitening.reshape(nodes * p, p).T)
        offset = np.matmul(whitening, (self.mean - self._center)[:, ~missing, None])
        z = z.reshape(len(X), nodes, p) - offset[:, :, 0]
        squared = (z * z).sum(2)
        mean = self.mean[:, missing] + np.matmul(gain, z[:, :, :, None])[:, :, :, 0]
        return Conditional(self._log_kernel(squared, volumes, p), self._expected(squared, k), mean, variance)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.covariance

    def root_moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean[0], np.sqrt(np.diag(self.covariance[0]))

    def _make_room(self, size: int) -> None:
        extra = size - len(self.mean)
        if extra > 0:
            for name in self.ARRAYS:
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
        squared: FloatArray = z.reshape(len(X), *self.mean.shape).sum(2)
        return squared

    def _given_the_rest(self, missing: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """For one pattern of missing features: whitening and volume of the rest, gain on it, and what varies still."""
        key = missing.tobytes()
        if key not in self._partial:
            rest = self.covariance[:, ~missing][:, :, ~missing]
            factors, deviations = factor(rest)
            whitening = np.linalg.inv(factors) / deviations[:, None, :]
            cross = self.covariance[:, missing][:, :, ~missing]
            gain = np.matmul(cross, whitening.transpose(0, 2, 1))
            own = np.einsum("nii->ni", self.covariance)[:, missing]
            remaining = np.maximum(own - (gain * gain).sum(2), 0.0)
            self._partial[key] = whitening, log_volume(factors, deviations), gain, remaining
        return self._partial[key]


def log_volume(factors: FloatArray, deviations: FloatArray) -> FloatArray:
    """Half the log determinants, (N,), of covariances with these correlation factors and deviations."""
    volume: FloatArray = np.log(np.einsum("nii->ni", factors)).sum(1) + np.log(deviations).sum(1)
    return volume


class DiagonalGaussianNodes(NodeDensities):
    """N Gaussians without correlations."""

    ARRAYS: tuple[str, ...] = ("mean", "variance")

    def __init__(self, n_features: int) -> None:
        self.mean = np.zeros((0, n_features))
        self.variance = np.zeros((0, n_features))

    def update(self, statistics: Statistics, prior: Prior, nodes: IntArray) -> None:
        self._make_room(int(nodes.max(initial=-1)) + 1)
        self.mean[nodes], self.variance[nodes] = posterior(statistics, prior, nodes)
        self._place()

    def marginal(self, features: list[int]) -> "DiagonalGaussianNodes":
        part = type(self)(len(features))
        part._make_room(len(self.mean))
        part.freedom = self.freedom
        part.mean, part.variance = self.mean[:, features], self.variance[:, features]
        part._place()
        return part

    def log_density(self, X: FloatArray) -> FloatArray:
        return by_chunks(X, lambda x: self._log_kernel(x, np.ones(x.shape[1], bool)))

    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        known = self._log_kernel(X, ~missing)
        mean = np.broadcast_to(self.mean[:, missing], (len(X), *self.mean[:, missing].shape))
        return Conditional(known, known + self._expected(missing), mean, self.variance[:, missing])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.variance[:, :, None] * np.eye(self.mean.shape[1])

    def root_moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean[0], np.sqrt(self.variance[0])

    def _make_room(self, size: int) -> None:
        extra = size - len(self.mean)
        if extra > 0:
            for name in self.ARRAYS:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((extra, *old.shape[1:]))]))

    def _place(self) -> None:
        self._deviation = np.sqrt(self.variance)

    def _squares(self, X: FloatArray, features: BoolArray) -> FloatArray:
        z = (X[:, None, features] - self.mean[:, features]) / self._deviation[:, features]
        return z * z

    def _log_kernel(self, X: FloatArray, features: BoolArray) -> FloatArray:
        """Log densities (n, N) of these features."""
        log_volumes = np.log(self._deviation[:, features]).sum(1)
        count = int(np.count_nonzero(features))
        kernel: FloatArray = -0.5 * (self._squares(X, features).sum(2) + count * log(2 * pi)) - log_volumes
        return kernel

    def _expected(self, features: BoolArray) -> FloatArray:
        """Expected log densities (N,) of features that are not known: minus their entropy."""
        log_volumes = np.log(self._deviation[:, features]).sum(1)
        expected: FloatArray = -0.5 * np.count_nonzero(features) * (1 + log(2 * pi)) - log_volumes
        return expected
