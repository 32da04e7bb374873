"""The MAP Gaussians of many nodes at once, with full covariances and with diagonal ones."""

from collections.abc import Callable
from math import log, pi
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, padded, product_by_blocks, sum_of_others
from core.cholesky import factor
from core.families.base import Conditional, LeftOut, NodeDensities, Prior
from core.statistics import Statistics, outer

CHUNK_ROWS: Final = 64
"""Rows scored at a time: bounds the memory of a large batch, and keeps the work in the processor's cache."""
NEAR: Final = 1e5
"""A squared distance is summed from products of features up to this |y|^2 times the largest precision, where rounding
costs it 1e-10 at most; beyond, the sample is whitened."""


def by_chunks(X: FloatArray, log_density: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Log densities (n, N) of samples, so many rows at a time."""
    if len(X) <= CHUNK_ROWS:
        return log_density(X)
    return np.concatenate([log_density(X[start : start + CHUNK_ROWS]) for start in range(0, len(X), CHUNK_ROWS)])


def posterior(statistics: Statistics, prior: Prior, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """MAP means (k, m) and covariances of these nodes: the moments of samples and pseudo-samples together."""
    n, k0, a = statistics.count[nodes], prior.mean_count[nodes], prior.strength[nodes]
    b = statistics.n_block
    mean = (n[:, None] * statistics.mean[nodes, :b] + k0[:, None] * prior.mean[nodes, :b]) / (n + k0)[:, None]
    covariance = scatter_about_prior(statistics, prior, nodes)
    ones = (-1, *(1,) * (covariance.ndim - 1))
    covariance += a.reshape(ones) * prior.scale[nodes]
    covariance /= (n + a).reshape(ones)
    return mean, covariance + prior.floor * (1.0 if statistics.diagonal else np.eye(mean.shape[1]))


def scatter_about_prior(statistics: Statistics, prior: Prior, nodes: IntArray) -> FloatArray:
    """The scatter of these nodes, with what the prior mean adds by being elsewhere: (k, m, m), or (k, m)."""
    n, k0 = statistics.count[nodes], prior.mean_count[nodes]
    b = statistics.n_block
    off = outer(statistics.mean[nodes, :b] - prior.mean[nodes, :b], statistics.diagonal)
    off *= (n * k0 / (n + k0)).reshape(-1, *(1,) * (off.ndim - 1))
    off += statistics.scatter[nodes]
    return off


class GaussianNodes(NodeDensities):
    """N Gaussians as whitening maps: log f = -(|W (x - mean)|^2 + m log 2 pi) / 2 - log_volume."""

    ARRAYS: tuple[str, ...] = ("mean", "covariance", "_whitening", "_precision", "_log_volume")

    def __init__(self, n_features: int) -> None:
        m = n_features
        self.mean = np.zeros((0, m))
        self.covariance = np.zeros((0, m, m))
        self._whitening = np.zeros((0, m, m))
        self._precision = np.zeros((0, m, m))
        self._log_volume = np.zeros(0)
        self._i, self._j = np.triu_indices(m)
        self._is_square = (self._i == self._j).astype(float)
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
        self._whitening[nodes] = whitening = np.linalg.inv(factors) / deviations[:, None, :]
        self._precision[nodes] = np.matmul(whitening.transpose(0, 2, 1), whitening)
        self._log_volume[nodes] = log_volume(factors, deviations)

    def _log_peak(self, log_volumes: FloatArray, n_features: int) -> FloatArray:
        """What the kernel over so many features adds to what it makes of a distance, given these volumes (N,)."""
        return -log_volumes

    def _log_kernel(self, squared: FloatArray, log_peak: FloatArray, n_features: int) -> FloatArray:
        """Log densities (n, N) at these squared distances, of the densities over so many features."""
        return -0.5 * (squared + n_features * log(2 * pi)) + log_peak

    def _expected(self, squared: FloatArray, n_missing: int) -> FloatArray:
        """Log densities (n, N) expected of the whole, from the squared distance of what is known."""
        return self._log_kernel(squared + n_missing, self._peak, self.mean.shape[1])

    def _spread(self, variance: FloatArray, squared: FloatArray, n_known: int) -> FloatArray:
        """The variances (n, N, k) left by so many known features, from (N, k) and the squared distance of these."""
        return np.broadcast_to(variance, (*squared.shape, variance.shape[1]))

    def log_density(self, X: FloatArray) -> FloatArray:
        return by_chunks(X, self._log_density)

    def _log_density(self, X: FloatArray) -> FloatArray:
        return self._log_kernel(self._squared_distance(X), self._peak, X.shape[1])

    def conditional(self, X: FloatArray, missing: BoolArray) -> Conditional:
        whitening, peak, gain, variance = self._given_the_rest(missing)
        nodes, k, p = gain.shape
        z = product_by_blocks(X[:, ~missing] - self._center[~missing], whitening.reshape(nodes * p, p).T)
        offset = np.matmul(whitening, (self.mean - self._center)[:, ~missing, None])
        z = z.reshape(len(X), nodes, p) - offset[:, :, 0]
        squared = (z * z).sum(2)
        mean = self.mean[:, missing] + np.matmul(gain, z[:, :, :, None])[:, :, :, 0]
        expected, spread = self._expected(squared, k), self._spread(variance, squared, p)
        return Conditional(self._log_kernel(squared, peak, p), expected, mean, spread)

    def left_out(self, X: FloatArray) -> LeftOut:
        # with e = x - mean and z = P e: |W e|^2 - z_j^2 / P_jj is left without x_j, and x_j - z_j / P_jj expected of it
        m = X.shape[1]
        own = np.einsum("nii->ni", self._precision)
        off = X[:, None, :] - self.mean
        pull = np.matmul(self._precision * (1.0 - np.eye(m)), off[:, :, :, None])[:, :, :, 0]
        squared = self._length(off) - (pull + own * off) ** 2 / own
        # beside a feature of 1e9 deviations the others drown in rounding: that one is left out from the start
        largest = (off * off * own).argmax(2)[:, :, None]
        np.put_along_axis(off, largest, 0.0, 2)
        np.put_along_axis(squared, largest, np.take_along_axis(self._length(off) - pull**2 / own, largest, 2), 2)
        volumes = self._log_volume[:, None] + 0.5 * np.log(own)
        log_peak = self._log_peak(volumes.T, m - 1)
        log_density = self._log_kernel(np.maximum(squared, 0.0).transpose(0, 2, 1), log_peak, m - 1)
        return LeftOut(log_density, (self.mean - pull / own).transpose(0, 2, 1))

    def _length(self, off: FloatArray) -> FloatArray:
        """Squared distances (n, N, 1) at these differences (n, N, m) from the means."""
        y = np.matmul(self._whitening, off[:, :, :, None])[:, :, :, 0]
        length: FloatArray = (y * y).sum(2, keepdims=True)
        return length

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.covariance

    def drawn_in(self, X: FloatArray, log_density: FloatArray, reach: float) -> FloatArray:
        if reach not in self._edges:
            at_edge = np.full((1, len(self.mean)), reach**2)
            self._edges[reach] = float(self._log_kernel(at_edge, self._peak, X.shape[1])[0, 0])
        if log_density[:, 0].min(initial=np.inf) >= self._edges[reach]:
            return X
        return drawn_to(X, log_density[:, 0] < self._edges[reach], self.mean[0], self._whitening[0], reach)

    def _make_room(self, size: int) -> None:
        extra = size - len(self.mean)
        if extra > 0:
            for name in self.ARRAYS:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((extra, *old.shape[1:]))]))

    def _place(self) -> None:
        """Squared distances as linear in the products y_i y_j, y and 1, with y = x - the root's mean; last, |y|^2."""
        self._center = self.mean[0].copy()
        self._peak = self._log_peak(self._log_volume, len(self._center))
        from_center = self.mean - self._center
        pull = np.matmul(self._precision, from_center[:, :, None])[:, :, 0]
        products = self._precision[:, self._i, self._j] * (2.0 - self._is_square)
        self._coefficients = np.zeros((len(self._i) + len(self._center) + 1, len(self.mean) + 1))
        self._coefficients[: len(self._i), :-1], self._coefficients[: len(self._i), -1] = products.T, self._is_square
        self._coefficients[len(self._i) : -1, :-1] = -2.0 * pull.T
        self._coefficients[-1, :-1] = (pull * from_center).sum(1)
        self._near = NEAR / np.einsum("nii->ni", self._precision).max()
        self._edges: dict[float, float] = {}
        self._partial.clear()

    def _squared_distance(self, X: FloatArray) -> FloatArray:
        n, products = len(X), len(self._i)
        Y = X - self._center
        terms = np.zeros((padded(n), len(self._coefficients)))
        np.multiply(Y.take(self._i, 1), Y.take(self._j, 1), out=terms[:n, :products])
        terms[:n, products:-1], terms[:n, -1] = Y, 1.0
        sums = product_by_blocks(terms, self._coefficients)[:n]
        squared: FloatArray = sums[:, :-1]
        if sums[:, -1].max(initial=0.0) > self._near:
            far = sums[:, -1] > self._near
            squared[far] = self._whitened(Y[far])
        return squared

    def _whitened(self, Y: FloatArray) -> FloatArray:
        """The same, node by node, by differences: nothing cancels."""
        nodes, m = self.mean.shape
        z = product_by_blocks(Y, np.ascontiguousarray(self._whitening.reshape(nodes * m, m).T))
        z -= np.matmul(self._whitening, (self.mean - self._center)[:, :, None]).reshape(-1)
        squared: FloatArray = (z * z).reshape(len(Y), nodes, m).sum(2)
        return squared

    def _given_the_rest(self, missing: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """For one pattern of missing features: whitening and peak of the rest, gain on it, and what varies still."""
        key = missing.tobytes()
        if key not in self._partial:
            rest = self.covariance[:, ~missing][:, :, ~missing]
            factors, deviations = factor(rest)
            whitening = np.linalg.inv(factors) / deviations[:, None, :]
            cross = self.covariance[:, missing][:, :, ~missing]
            gain = np.matmul(cross, whitening.transpose(0, 2, 1))
            own = np.einsum("nii->ni", self.covariance)[:, missing]
            remaining = np.maximum(own - (gain * gain).sum(2), 0.0)
            log_peak = self._log_peak(log_volume(factors, deviations), len(rest[0]))
            self._partial[key] = whitening, log_peak, gain, remaining
        return self._partial[key]


def drawn_to(X: FloatArray, suspect: BoolArray, mean: FloatArray, whitening: FloatArray, reach: float) -> FloatArray:
    """X with the suspect rows that are more than reach deviations from the mean drawn back to there."""
    if not suspect.any():
        return X
    rows = np.flatnonzero(suspect)
    off = X[rows] - mean
    length = np.sqrt((product_by_blocks(off, whitening.T) ** 2).sum(1))
    drawn = X.copy()
    drawn[rows] = mean + off * np.minimum(1.0, reach / np.maximum(length, reach))[:, None]
    return drawn


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
        shape = len(X), len(self.mean), int(np.count_nonzero(missing))
        mean = np.broadcast_to(self.mean[:, missing], shape)
        variance = np.broadcast_to(self._spread()[:, missing], shape)
        return Conditional(known, known + self._expected(missing), mean, variance)

    def left_out(self, X: FloatArray) -> LeftOut:
        others = sum_of_others(self._log_terms(X)).transpose(0, 2, 1)
        return LeftOut(others, np.broadcast_to(self.mean.T, others.shape))

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.mean, self.variance[:, :, None] * np.eye(self.mean.shape[1])

    def drawn_in(self, X: FloatArray, log_density: FloatArray, reach: float) -> FloatArray:
        whitening = np.diag(1 / self._deviation[0])
        return drawn_to(X, np.ones(len(X), bool), self.mean[0], whitening, reach)

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

    def _log_terms(self, X: FloatArray) -> FloatArray:
        """Log densities (n, N, m) of each feature alone."""
        terms: FloatArray = -0.5 * (self._squares(X, np.ones(X.shape[1], bool)) + log(2 * pi)) - np.log(self._deviation)
        return terms

    def _spread(self) -> FloatArray:
        """The variances (N, m)."""
        return self.variance

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
