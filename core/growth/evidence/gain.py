"""How much better two densities explain a leaf's samples than one."""

from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.marginal_likelihood import MEAN_COUNT, choose_prior, log_share
from core.families.statistics import Moments
from core.growth.evidence.candidates import Candidates
from core.growth.evidence.doubt import Doubt
from core.growth.evidence.priors import Priors
from core.growth.evidence.reservoir import Reservoir
from core.growth.evidence.search import Hyperplanes
from core.mixture.nodes import Nodes

MARGIN: Final = 2.0
PRICE_A_FEATURE: Final = 2.0
"""A hyperplane costs MARGIN nats, and for each feature PRICE_A_FEATURE / 2 times log n. Chosen by hand: m log n is
twice the price of m parameters by the Bayesian information criterion."""


class Gain:
    """The gain of a cut, eq. (20), in nats: the evidence of two sides against that of the whole, less the cut's price.

    Of values given a context, eq. (38): what the cut gains for the context alone does not count, and a cut that the
    context does not see costs it nothing. least is the fewest samples that a side may have, m + 1.
    """

    def __init__(self, n_features: int, nodes: Nodes, priors: Priors, recent: Reservoir) -> None:
        self._n_features, self._nodes, self._priors, self._recent = n_features, nodes, priors, recent
        self.least = n_features + 1

    def of_candidates(self, candidates: Candidates, leaves: IntArray) -> FloatArray:
        """The gain (k,) of each leaf's candidate; -inf without one, or with too few samples on a side."""
        gains = np.full(len(leaves), -np.inf)
        fits = candidates.sizes(leaves).min(1) >= self.least
        if fits.any():
            planes = [candidates.plane(leaf) for leaf in leaves[fits].tolist()]
            gains[fits] = self.of_sides(leaves[fits], planes, *candidates.sides(leaves[fits]))
        return gains

    def of_sides(self, leaves: IntArray, planes: list[Hyperplanes], left: Moments, right: Moments) -> FloatArray:
        """The gain (k,) of cutting each of these leaves (k,) by one of these hyperplanes (k,) into these two sides."""
        k = len(leaves)
        whole = _joined(left, right)
        count = np.concatenate([whole.count, left.count, right.count])
        scatter = np.concatenate([whole.scatter, left.scatter, right.scatter])
        own = self._priors.own(leaves)
        parents = np.concatenate([self._nodes.tree.parent[leaves], leaves, leaves])
        of_child = self._priors.of_child(own)
        expected = self._priors.expected(parents, np.concatenate([own, of_child, of_child]))
        floor, mean_count = self._nodes.prior.floor, np.full(3 * k, MEAN_COUNT)
        choice = choose_prior(count, scatter, expected, floor, mean_count, self._nodes.block_context)
        evidence = choice.log_evidence + self._nodes.evidence_apart(leaves, [whole, left, right])
        share = log_share(left.count, right.count)
        price = MARGIN + 0.5 * PRICE_A_FEATURE * self._n_features * np.log(whole.count)
        gain: FloatArray = _of_parts(evidence) + share - price
        if not self._nodes.context.size:
            return gain
        of_context = choice.of_context + self._nodes.evidence_apart(leaves, [whole, left, right], self._nodes.context)
        return self._beyond_context(leaves, planes, gain, _of_parts(of_context) + share, whole.count)

    def _beyond_context(
        self, leaves: IntArray, planes: list[Hyperplanes], gain: FloatArray, of_context: FloatArray, count: FloatArray
    ) -> FloatArray:
        """The gain (k,) less that for the context (k,), whose doubt about the sides counts where it decides."""
        beyond: FloatArray = gain - np.maximum(of_context, 0.0)
        for i in np.flatnonzero(beyond > 0).tolist():
            doubt = self._mean_doubt(int(leaves[i]), planes[i])
            beyond[i] = gain[i] - max(of_context[i] + count[i] * doubt, 0.0)
        return beyond

    def doubt(self, leaf: int, rows: IntArray) -> Doubt:
        """What judges how surely the context tells the sides of cuts of a leaf, by these of its recent samples."""
        at, recent = np.array([leaf]), self._recent
        return Doubt(
            self._nodes, at, recent.x[rows], recent.spread[rows], self._priors.of_child(self._priors.own(at))[0]
        )

    def _mean_doubt(self, leaf: int, plane: Hyperplanes) -> float:
        """The same of one hyperplane, a sample."""
        rows = self._recent.of(leaf)
        left = plane.left(self._recent.x[rows])
        return float(self.doubt(leaf, rows)(left)[0]) / len(rows) if len(rows) else 0.0


def _of_parts(evidence: FloatArray) -> FloatArray:
    """By how much the evidence (3 k,) of k left sides and of k right ones exceeds that of the k wholes before them."""
    whole, left, right = evidence.reshape(3, -1)
    return left + right - whole


def _joined(left: Moments, right: Moments) -> Moments:
    """The moments of both sides together."""
    k = len(left.count)
    both = Moments(
        np.concatenate([left.count, right.count]),
        np.concatenate([left.mean, right.mean]),
        np.concatenate([left.scatter, right.scatter]),
    )
    return both.pooled(np.arange(2 * k).reshape(2, k).T.ravel(), np.arange(0, 2 * k, 2))
