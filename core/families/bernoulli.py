"""Flags: T = x, A = log(1 + e^eta); the conjugate prior is a Beta, the predictive a Bernoulli."""

from typing import Any

import numpy as np
from scipy.special import betaln, expit, logit, xlogy

from core.arrays import FloatArray, IntArray
from core.families.factor import LEAST, Factor, Predictive


class Bernoulli(Factor):
    """Columns: known, x. The root's prior is Jeffreys', Beta(1/2, 1/2); a child's one sample of its parent's share."""

    kind = "bernoulli"
    width = 2

    def sufficient(self, X: FloatArray) -> FloatArray:
        return X

    def log_partition(self, eta: FloatArray) -> float:
        return float(np.logaddexp(0.0, eta[0]))

    def log_base(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X))

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        eta: FloatArray = logit(mean_statistic)
        return eta

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        share: FloatArray = expit(eta)
        return share

    def columns(self, z: FloatArray) -> FloatArray:
        return np.stack([np.ones(len(z)), z], 1)

    def start(self) -> FloatArray:
        return np.array([1.0, 0.5])

    def prior_count(self, expected: FloatArray) -> FloatArray:
        return np.ones(len(expected))

    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        share = _share(mean)
        value: FloatArray = betaln(count * share, count * (1 - share))
        return value

    def predictive(self, count: FloatArray, mean: FloatArray) -> "BernoulliPredictive":
        return BernoulliPredictive(_share(mean))

    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        return 0.0, 1.0


def _share(mean: FloatArray) -> FloatArray:
    return np.clip(mean[:, 1], LEAST, 1 - LEAST)


class BernoulliPredictive(Predictive):
    """Bernoulli of share (N,)."""

    def __init__(self, share: FloatArray) -> None:
        self._share = share
        self._log: FloatArray = np.log(np.stack([1 - share, share]))

    def log_density(self, z: FloatArray) -> FloatArray:
        return np.asarray(self._log[(z > 0.5).astype(np.int64)], np.float64)

    def expected(self) -> FloatArray:
        p = self._share
        return np.asarray(xlogy(p, p) + xlogy(1 - p, 1 - p), np.float64)

    def center(self) -> FloatArray:
        return self._share

    def spread(self) -> FloatArray:
        return self._share * (1 - self._share)

    def cdf(self, x: FloatArray, nodes: IntArray) -> FloatArray:
        at = x[:, None]
        return np.where(at < 0, 0.0, np.where(at < 1, 1 - self._share[nodes], 1.0))

    def bounds(self, level: float) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(self._share)), np.ones(len(self._share))

    def describe(self, node: int, unit: float) -> dict[str, Any]:
        return {"probability": float(self._share[node])}
