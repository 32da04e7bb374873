"""Codes 0 to 63: T is one-hot, A = log sum e^eta; the conjugate prior is a Dirichlet, the predictive a categorical."""

from typing import Any, Final

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from core.arrays import FloatArray, IntArray
from core.families.factor import LEAST, Factor, Predictive
from core.kinds import KINDS, LEVELS

LEAST_SHOWN: Final = 1e-3
"""Less probable codes are left out of a description."""
_COORDINATES: Final = KINDS["categorical"].coordinate(np.arange(float(LEVELS)))


class Categorical(Factor):
    """Columns: one for each code, all zero if missing. The root's prior is Dirichlet(1 / 64, ...), Perks'."""

    kind = "categorical"
    width = LEVELS

    def sufficient(self, X: FloatArray) -> FloatArray:
        return np.eye(LEVELS)[X[:, 0].astype(np.int64)]

    def log_partition(self, eta: FloatArray) -> float:
        return float(logsumexp(eta))

    def log_base(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X))

    def natural(self, mean_statistic: FloatArray) -> FloatArray:
        return np.log(mean_statistic)

    def mean_statistic(self, eta: FloatArray) -> FloatArray:
        shares: FloatArray = np.exp(eta - logsumexp(eta))
        return shares

    def columns(self, z: FloatArray) -> FloatArray:
        rows: FloatArray = np.eye(LEVELS)[_code(z)]
        return rows

    def start(self) -> FloatArray:
        return np.full(LEVELS, 1 / LEVELS)

    def prior_count(self, expected: FloatArray) -> FloatArray:
        return np.ones(len(expected))

    def known(self, mean: FloatArray) -> FloatArray:
        share: FloatArray = mean.sum(1)
        return share

    def log_normalizer(self, count: FloatArray, mean: FloatArray) -> FloatArray:
        value: FloatArray = gammaln(count[:, None] * np.maximum(mean, LEAST)).sum(1) - gammaln(count)
        return value

    def predictive(self, count: FloatArray, mean: FloatArray) -> "CategoricalPredictive":
        return CategoricalPredictive(np.maximum(mean, LEAST))

    def limits(self, count: float, mean: FloatArray, expected: FloatArray, reach: float) -> tuple[float, float]:
        return 0.0, float(_COORDINATES[-1])


def _code(z: FloatArray) -> Any:
    """Codes as indices; of what fills in for a missing one, which is never looked at, a code as well."""
    return KINDS["categorical"].value(z).astype(np.int64)


class CategoricalPredictive(Predictive):
    """Categoricals of shares (N, levels)."""

    def __init__(self, shares: FloatArray) -> None:
        self._shares = shares / shares.sum(1, keepdims=True)
        self._log = np.ascontiguousarray(np.log(self._shares).T)

    def log_density(self, z: FloatArray) -> FloatArray:
        log_density: FloatArray = self._log[_code(z)]
        return log_density

    def expected(self) -> FloatArray:
        expected: FloatArray = xlogy(self._shares, self._shares).sum(1)
        return expected

    def center(self) -> FloatArray:
        """The commonest code's."""
        center: FloatArray = _COORDINATES[self._shares.argmax(1)]
        return center

    def spread(self) -> FloatArray:
        mean = (self._shares * _COORDINATES).sum(1)
        spread: FloatArray = (self._shares * (_COORDINATES - mean[:, None]) ** 2).sum(1)
        return spread

    def cdf(self, x: FloatArray, nodes: IntArray) -> FloatArray:
        """In the order of the codes, which says nothing unless they have one."""
        up_to = np.minimum(np.floor(x), LEVELS - 1).astype(np.int64)[:, None]
        return np.where(up_to < 0, 0.0, self._shares.cumsum(1)[nodes, np.maximum(up_to, 0)])

    def bounds(self, level: float) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(self._shares)), np.full(len(self._shares), LEVELS - 1.0)

    def describe(self, node: int, unit: float) -> dict[str, Any]:
        shares = self._shares[node]
        return {"probabilities": {str(code): float(shares[code]) for code in np.flatnonzero(shares >= LEAST_SHOWN)}}
