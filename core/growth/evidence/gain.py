"""How much better two densities explain a leaf's samples than one."""

from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.marginal_likelihood import MEAN_COUNT, choose_prior, log_share
from core.families.statistics import Moments
from core.growth.evidence.candidates import Candidates
from core.growth.evidence.priors import Priors
from core.mixture.nodes import Nodes

MARGIN: Final = 2.0
PRICE_A_FEATURE: Final = 2.0
"""A hyperplane costs MARGIN nats, and for each feature PRICE_A_FEATURE / 2 times log n. Chosen by hand: m log n is
twice the price of m parameters by the Bayesian information criterion."""


class Gain:
    """The gain of a cut, eq. (20), in nats: the evidence of two sides against that of the whole, less the cut's price.

    least is the fewest samples that a side may have, m + 1.
    """

    def __init__(self, n_features: int, nodes: Nodes, priors: Priors) -> None:
        self._n_features, self._nodes, self._priors = n_features, nodes, priors
        self.least = n_features + 1

    def of_candidates(self, candidates: Candidates, leaves: IntArray) -> FloatArray:
        """The gain (k,) of each leaf's candidate; -inf without one, or with too few samples on a side."""
        gains = np.full(len(leaves), -np.inf)
        fits = candidates.sizes(leaves).min(1) >= self.least
        if fits.any():
            gains[fits] = self.of_sides(leaves[fits], *candidates.sides(leaves[fits]))
        return gains

    def of_sides(self, leaves: IntArray, left: Moments, right: Moments) -> FloatArray:
        """The gain (k,) of cutting each of these leaves (k,) into these two sides."""
        k = len(leaves)
        whole = _joined(left, right)
        count = np.concatenate([whole.count, left.count, right.count])
        scatter = np.concatenate([whole.scatter, left.scatter, right.scatter])
        own = self._priors.own(leaves)
        parents = np.concatenate([self._nodes.tree.parent[leaves], leaves, leaves])
        of_child = self._priors.of_child(own)
        expected = self._priors.expected(parents, np.concatenate([own, of_child, of_child]))
        floor, mean_count = self._nodes.prior.floor, np.full(3 * k, MEAN_COUNT)
        evidence = choose_prior(count, scatter, expected, floor, mean_count).log_evidence
        evidence += self._nodes.evidence_apart(leaves, [whole, left, right])
        price = MARGIN + 0.5 * PRICE_A_FEATURE * self._n_features * np.log(whole.count)
        gain: FloatArray = evidence[k : 2 * k] + evidence[2 * k :] - evidence[:k]
        return gain + log_share(left.count, right.count) - price


def _joined(left: Moments, right: Moments) -> Moments:
    """The moments of both sides together."""
    k = len(left.count)
    both = Moments(
        np.concatenate([left.count, right.count]),
        np.concatenate([left.mean, right.mean]),
        np.concatenate([left.scatter, right.scatter]),
    )
    return both.pooled(np.arange(2 * k).reshape(2, k).T.ravel(), np.arange(0, 2 * k, 2))
