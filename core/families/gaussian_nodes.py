"""MAP Gaussians of many nodes, with full covariances."""

from math import log, pi
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, padded, product_by_blocks, upper_triangle
from core.families.base import Conditional, LeftOut, Prior
from core.families.cholesky import factor
from core.families.node_arrays import NodeArrays, by_chunks, drawn_to
from core.families.posterior import posterior
from core.families.statistics import Statistics

NEAR: Final = 1e5
"""Up to this |y|^2 times the largest precision a squared distance is summed from products of features: rounding costs
it 1e-10 at most. Farther samples are whitened."""


class GaussianNodes(NodeArrays):
    """N Gaussians as whitening maps: log f = -(|W (x - mean)|^2 + m log 2 pi) / 2 - log_volume."""

    ARRAYS: tuple[str, ...] = ("mean", "covariance", "_whitening", "_precision", "_log_volume")

    def __init__(self, n_features: int) -> None:
        m = n_features
        self.mean = np.zeros((0, m))
        self.covariance = np.zeros((0, m, m))
        self._whitening = np.zeros((0, m, m))
        self._precision = np.zeros((0, m, m))
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
        # squared last: a precision times a difference may overflow when it is squared
        root = np.sqrt(own)
        squared = self._length(off) - (pull / root + root * off) ** 2
        # beside a feature of 1e9 deviations the others drown in rounding: that one is left out from the start
        largest = (off * off * own).argmax(2)[:, :, None]
        np.put_along_axis(off, largest, 0.0, 2)
        np.put_along_axis(squared, largest, np.take_along_axis(self._length(off) - (pull / root) ** 2, largest, 2), 2)
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
        edge = self._edge(reach)
        if log_density[:, 0].min(initial=np.inf) >= edge:
            return X
        return drawn_to(X, log_density[:, 0] < edge, self.mean[0], self._whitening[0], reach)

    def _edge(self, reach: float) -> float:
        """The log density of the root at reach deviations from its centre."""
        if reach not in self._edges:
            at_edge = np.full((1, len(self.mean)), reach**2)
            self._edges[reach] = float(self._log_kernel(at_edge, self._peak, self.mean.shape[1])[0, 0])
        return self._edges[reach]

    def _place(self) -> None:
        """Squared distances as linear in the products y_i y_j, y and 1, with y = x - the root's mean; last, |y|^2."""
        self._center = self.mean[0].copy()
        i, j = upper_triangle(len(self._center))
        is_square = (i == j).astype(float)
        self._peak = self._log_peak(self._log_volume, len(self._center))
        from_center = self.mean - self._center
        pull = np.matmul(self._precision, from_center[:, :, None])[:, :, 0]
        products = self._precision[:, i, j] * (2.0 - is_square)
        self._coefficients = self._blank(len(i) + len(self._center) + 1, len(self.mean) + 1)
        self._coefficients[: len(i), :-1], self._coefficients[: len(i), -1] = products.T, is_square
        self._coefficients[len(i) : -1, :-1] = -2.0 * pull.T
        self._coefficients[-1, :-1] = (pull * from_center).sum(1)
        self._near = NEAR / np.einsum("nii->ni", self._precision).max()
        self._edges: dict[float, float] = {}
        self._partial.clear()

    def _blank(self, rows: int, columns: int) -> FloatArray:
        """Room for the coefficients."""
        return np.zeros((rows, columns))

    def _squared_distance(self, X: FloatArray) -> FloatArray:
        i, j = upper_triangle(X.shape[1])
        n, products = len(X), len(i)
        Y = X - self._center
        terms = np.zeros((padded(n), len(self._coefficients)))
        np.multiply(Y.take(i, 1), Y.take(j, 1), out=terms[:n, :products])
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
            with np.errstate(over="ignore"):  # of variances beyond 1e154 nothing remains
                remaining = np.maximum(own - (gain * gain).sum(2), 0.0)
            log_peak = self._log_peak(log_volume(factors, deviations), len(rest[0]))
            self._partial[key] = whitening, log_peak, gain, remaining
        return self._partial[key]


def log_volume(factors: FloatArray, deviations: FloatArray) -> FloatArray:
    """Half the log determinants, (N,), of covariances with these correlation factors and deviations."""
    volume: FloatArray = np.log(np.einsum("nii->ni", factors)).sum(1) + np.log(deviations).sum(1)
    return volume
