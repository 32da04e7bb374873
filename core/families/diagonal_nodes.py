"""MAP Gaussians of many nodes, without correlations."""

from math import log, pi

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray, sum_of_others
from core.families.base import Conditional, LeftOut, Prior
from core.families.node_arrays import NodeArrays, by_chunks, drawn_to
from core.families.posterior import posterior
from core.families.statistics import Statistics


class DiagonalGaussianNodes(NodeArrays):
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
