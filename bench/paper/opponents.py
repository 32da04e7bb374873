"""The paper's opponents, as models of the protocol: their score is -log p."""

from math import ceil, log, log2, pi, sqrt
from typing import Final

import numpy as np

from core.arrays import FloatArray

COMPONENTS: Final = (1, 2, 3)
EM_STEPS: Final = 6
PRIOR_COUNTS: Final = (0.1, 1.0)
PRIOR_COUNT: Final = 0.1
"""Pseudo-samples of N(0, I) in each covariance, as in ITAN's paper profile; without them ten points have no EM."""


class RunningGaussian:
    """ML: one Gaussian of all past normals."""

    block = 1

    def __init__(self, n_features: int) -> None:
        self._n = PRIOR_COUNT
        self._mean = np.zeros(n_features)
        self._scatter = PRIOR_COUNT * np.eye(n_features)

    def score(self, X: FloatArray) -> FloatArray:
        return -gaussian_log_density(X, self._mean, self._scatter / self._n)

    def learn(self, X: FloatArray) -> None:
        for x in X:
            self._n += 1
            deviation = x - self._mean
            self._mean = self._mean + deviation / self._n
            self._scatter += np.outer(deviation, x - self._mean)


class WindowedMixture:
    """wGMM: a Gaussian mixture by EM on the last log2 t normals, fitted again in each round.

    prior_count pseudo-samples of N(0, I) keep the covariances of a few points regular.
    """

    block = 1

    def __init__(self, n_features: int, components: int, prior_count: float = PRIOR_COUNT) -> None:
        self._past = np.zeros((0, n_features))
        self._components, self._prior_count = components, prior_count
        self._n = 0
        self._fit()

    def score(self, X: FloatArray) -> FloatArray:
        parts = [gaussian_log_density(X, m, c) for m, c in zip(self._means, self._covariances, strict=True)]
        log_density: FloatArray = np.logaddexp.reduce(np.array(parts) + np.log(self._weights)[:, None])
        return -log_density

    def learn(self, X: FloatArray) -> None:
        self._n += len(X)
        length = max(1, ceil(log2(self._n)))
        self._past = np.concatenate([self._past, X])[-length:]
        self._fit()

    def _fit(self) -> None:
        """EM from samples far from each other; covariances shrink towards I, means towards 0."""
        window, m = self._past, self._past.shape[1]
        k = min(self._components, max(1, len(window)))
        self._weights, self._covariances = np.full(k, 1 / k), np.repeat(np.eye(m)[None], k, 0)
        self._means = _far_apart(window, k) if len(window) else np.zeros((1, m))
        for _ in range(EM_STEPS if len(window) else 0):
            self._step(window)

    def _step(self, window: FloatArray) -> None:
        deviation = window[:, None] - self._means
        factor = np.linalg.cholesky(self._covariances)
        solved = np.linalg.solve(factor, deviation.transpose(1, 2, 0))
        log_volume = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(1)
        log_joint = (np.log(self._weights) - log_volume)[:, None] - (solved * solved).sum(1) / 2
        share = np.exp(log_joint - np.logaddexp.reduce(log_joint))
        count = share.sum(1) + self._prior_count
        self._weights = count / count.sum()
        self._means = share @ window / count[:, None]
        weighted = share[:, :, None] * (window - self._means[:, None])
        scatter = weighted.transpose(0, 2, 1) @ (window - self._means[:, None])
        self._covariances = (scatter + self._prior_count * np.eye(window.shape[1])) / count[:, None, None]


def _far_apart(X: FloatArray, k: int) -> FloatArray:
    """The newest of samples (n, m), and then repeatedly the one farthest from those chosen: (k, m)."""
    chosen = X[-1:]
    for _ in range(k - 1):
        gaps = np.linalg.norm(X[:, None] - chosen, axis=2).min(1)
        chosen = np.concatenate([chosen, X[[gaps.argmax()]]])
    return chosen


class WindowedKernel:
    """wKDE: Gaussian kernels on the last sqrt t normals, Silverman's bandwidth in each feature."""

    block = 1

    def __init__(self, n_features: int) -> None:
        self._past = np.zeros((0, n_features))
        self._n = 0

    def score(self, X: FloatArray) -> FloatArray:
        n, m = self._past.shape
        if n == 0:
            return -gaussian_log_density(X, np.zeros(m), np.eye(m))
        width = self._bandwidth()
        z = (X[:, None] - self._past) / width
        log_kernels = -(z * z).sum(2) / 2 - np.log(width).sum() - m / 2 * log(2 * pi)
        score: FloatArray = log(n) - np.logaddexp.reduce(log_kernels, axis=1)
        return score

    def learn(self, X: FloatArray) -> None:
        self._n += len(X)
        self._past = np.concatenate([self._past, X])[-ceil(sqrt(self._n)) :]

    def _bandwidth(self) -> FloatArray:
        """sigma (4 / ((m + 2) n))^(1 / (m + 4)); the deviations with the prior's pseudo-samples of N(0, 1)."""
        n, m = self._past.shape
        scatter = ((self._past - self._past.mean(0)) ** 2).sum(0)
        deviation = np.sqrt((scatter + PRIOR_COUNT) / (n + PRIOR_COUNT))
        width: FloatArray = deviation * (4 / ((m + 2) * n)) ** (1 / (m + 4))
        return width


class BestGaussian:
    """The one Gaussian that fits a stream's normals best, in hindsight: it learns nothing."""

    block = 1_000_000

    def __init__(self, normals: FloatArray) -> None:
        self._mean, self._covariance = normals.mean(0), np.cov(normals.T, bias=True)

    def score(self, X: FloatArray) -> FloatArray:
        return -gaussian_log_density(X, self._mean, self._covariance)

    def learn(self, X: FloatArray) -> None:
        pass


def gaussian_log_density(X: FloatArray, mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """Log density of samples (n, m) under a Gaussian, (n,).

    >>> gaussian_log_density(np.zeros((1, 2)), np.zeros(2), np.eye(2)).round(3)
    array([-1.838])
    """
    factor = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(factor, (X - mean).T)
    log_volume = np.log(np.diag(factor)).sum() + X.shape[1] / 2 * log(2 * pi)
    log_density: FloatArray = -(solved * solved).sum(0) / 2 - log_volume
    return log_density
