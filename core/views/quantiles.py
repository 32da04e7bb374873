"""Quantiles of mixtures, found by their distribution functions."""

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import stdtr, stdtrit

from core.arrays import FloatArray, IntArray
from core.families.base import Conditional
from core.families.factor import Predictive
from core.kinds import Kind

LEAST_SHARE: Final = 1e-4
"""Nodes that have a lower share are left out. Chosen by hand."""
STEPS: Final = 100
"""Of a search, at most; it takes seven or so."""
CLOSE: Final = 1e-6
"""A chance this near to the level is the level, as a share of the level, or of the chance to be above."""

Cdf = Callable[[FloatArray, IntArray], FloatArray]
"""Chances (k,) of values up to (k,), by k of the p mixtures, given by their numbers (k,)."""


class NodeMixtures:
    """Mixtures of the nodes' densities of one feature, by shares (n, N) of the nodes, each for q levels: p = n q.

    share (p, k) and nodes (p, k) are those of the nodes with the largest shares.
    """

    def __init__(self, log_share: FloatArray, levels: FloatArray) -> None:
        share = np.exp(log_share - log_share.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        share[share < LEAST_SHARE] = 0.0
        size = int((share > 0).sum(1).max(initial=1))
        nodes = np.argsort(-share, 1, kind="stable")[:, :size]
        share = np.take_along_axis(share, nodes, 1)
        self._levels, self._rows = levels, np.repeat(np.arange(len(share)), len(levels))
        self._share, self._nodes = (share / share.sum(1, keepdims=True))[self._rows], nodes[self._rows]
        self._level = np.tile(levels, len(share))

    def of_student(self, given: Conditional, freedom: FloatArray, n_known: int) -> FloatArray:
        """Quantiles (n, q) of what the nodes say of it given n_known others: Student t of freedom + n_known, (N,)."""
        at = self._rows[:, None], self._nodes, 0
        freedom, mean, variance = freedom[self._nodes], given.mean[at], given.variance[at]
        if np.isfinite(freedom).all():
            variance = variance * np.maximum(freedom + n_known - 2.0, 1.0) / (freedom + n_known)
        scale, total = np.sqrt(variance), freedom + n_known
        own = mean + scale * stdtrit(total, self._level[:, None])
        return self._found(continuous, lambda z, at: stdtr(total[at], (z[:, None] - mean[at]) / scale[at]), own, own)

    def of_factor(self, kind: Kind, predictive: Predictive) -> FloatArray:
        """Quantiles (n, q), as coordinates, of a feature of this kind whose nodes are independent of the others."""
        bounds = np.array([predictive.bounds(level) for level in self._levels.tolist()])
        which = np.tile(np.arange(len(self._levels)), len(self._share) // len(self._levels))[:, None]
        low, high = bounds[which, 0, self._nodes], bounds[which, 1, self._nodes]
        if kind.whole:
            return kind.coordinate(self._found(whole, lambda x, at: predictive.cdf(x, self._nodes[at]), low, high))
        low, high = kind.coordinate(low), kind.coordinate(high)
        return self._found(continuous, lambda z, at: predictive.cdf(kind.value(z), self._nodes[at]), low, high)

    def _found(self, search: "Search", cdf: Cdf, low: FloatArray, high: FloatArray) -> FloatArray:
        """What a search finds between the lowest and highest bounds (p, k) of the nodes; cdf gives theirs."""
        low, high = (np.where(self._share > 0, bound, other) for bound, other in ((low, np.inf), (high, -np.inf)))
        found = search(lambda x, at: (self._share[at] * cdf(x, at)).sum(1), self._level, low.min(1), high.max(1))
        return found.reshape(-1, len(self._levels))


Search = Callable[[Cdf, FloatArray, FloatArray, FloatArray], FloatArray]


def continuous(cdf: Cdf, level: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where p increasing distribution functions reach their levels (p,), each between low and high (p,).

    By false position, and by halves in every third step.
    """
    low, high, all_of_them = low.copy(), high.copy(), np.arange(len(level))
    below, above = cdf(low, all_of_them) - level, cdf(high, all_of_them) - level
    found = np.where(below >= 0, low, high)
    for step in range(STEPS):
        at = np.flatnonzero((below < 0) & (above > 0))
        if not at.size:
            break
        share = np.clip(below[at] / (below[at] - above[at]), 0.01, 0.99) if step % 3 != 2 else 0.5
        found[at] = middle = low[at] + share * (high[at] - low[at])
        off = cdf(middle, at) - level[at]
        near = CLOSE * np.minimum(level[at], 1 - level[at])
        off[(np.abs(off) <= near) | (middle <= low[at]) | (middle >= high[at])] = 0.0
        up = off <= 0
        low[at[up]], below[at[up]] = middle[up], off[up]
        high[at[~up]], above[at[~up]] = middle[~up], off[~up]
    return found


def whole(cdf: Cdf, level: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The least whole numbers (p,) at which p distribution functions reach their levels (p,), from low to high (p,)."""
    low, high = np.floor(low) - 1.0, np.ceil(high)
    while (at := np.flatnonzero(high - low > 1.0)).size:
        middle = np.floor(0.5 * (low[at] + high[at]))
        reached = cdf(middle, at) >= level[at]
        low[at[~reached]], high[at[reached]] = middle[~reached], middle[reached]
    return high
