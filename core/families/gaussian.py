"""The Gaussian as an exponential family, with a full and with a diagonal covariance (Alg. 1)."""

from math import log, pi

import numpy as np

from core.arrays import FloatArray
from core.families.base import Family, NodeDensities
from core.families.diagonal_nodes import DiagonalGaussianNodes
from core.families.gaussian_nodes import GaussianNodes
from core.families.student_nodes import DiagonalStudentNodes, StudentNodes


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

    def nodes(self, *, predictive: bool) -> NodeDensities:
        return (StudentNodes if predictive else GaussianNodes)(self.n_features)

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

    def nodes(self, *, predictive: bool) -> NodeDensities:
        return (DiagonalStudentNodes if predictive else DiagonalGaussianNodes)(self.n_features)

    def _moments(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        linear, quadratic = np.split(eta, 2)
        variance = -0.5 / quadratic
        return linear * variance, variance
