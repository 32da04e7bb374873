"""The nodes' priors, chosen by the evidence of what the nodes have counted."""

from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray, grown
from core.families.marginal_likelihood import Expectation, choose_prior
from core.families.posterior import scatter_about_prior
from core.families.statistics import outer
from core.mixture.nodes import Nodes

CHILD_SHAPE: Final = 0.5
"""A child's expected variances as a share of its parent's. Chosen by hand."""


class Priors:
    """Chooses the priors of nodes by the marginal likelihood of eq. (19).

    variance (N, b) is what each node was expected to have when it was made: 1 for the root, for a child a share of its
    parent's.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.variance = np.ones((1, nodes.statistics.n_block))

    def choose(self, nodes: IntArray) -> None:
        """Choose the scale and strength of these nodes' priors."""
        prior, statistics = self._nodes.prior, self._nodes.statistics
        scatter = scatter_about_prior(statistics, prior, nodes)
        expected = self.expected(self._nodes.tree.parent[nodes], self.variance[nodes])
        count, mean_count = statistics.count[nodes], prior.mean_count[nodes]
        choice = choose_prior(count, scatter, expected, prior.floor, mean_count, self._nodes.block_context)
        prior.scale[nodes], prior.strength[nodes] = choice.scale, choice.strength
        self._nodes.touch(nodes)

    def follow(self) -> None:
        """Expect the features' spread of the root, and choose the priors anew."""
        nodes = self._nodes
        floor, scale = nodes.prior.floor, nodes.prior.scale
        self.variance = np.minimum(self.variance, self._most())
        self.variance[0] = nodes.spread[nodes.layout.block] ** 2
        np.maximum(self.variance, CHILD_SHAPE * floor, out=self.variance)
        if scale.ndim == 2:
            np.maximum(scale, floor, out=scale)
        else:
            own = np.arange(len(floor))
            scale[:, own, own] = np.maximum(scale[:, own, own], floor)
        if (known := np.flatnonzero(nodes.statistics.count >= 2)).size:
            self.choose(known)

    def expected(self, parent: IntArray, variance: FloatArray) -> Expectation:
        """What groups below these nodes (k,), -1 for none, expect: variances (k, b), and the nodes' correlations."""
        if self._nodes.statistics.diagonal:
            return Expectation(variance, None, np.zeros(len(parent)))
        n, m = self._nodes.statistics.count[parent], self._nodes.statistics.n_block
        n_pairs = m * (m + 1) / 2 or 1.0  # a node without a sample and without any pair would be 0 / 0
        covariance = self._nodes.covariance(parent)
        deviation = np.sqrt(np.einsum("kii->ki", covariance))
        correlation = covariance / outer(deviation, diagonal=False)
        return Expectation(variance, correlation, np.where(parent < 0, 0.0, n / (n + n_pairs)))

    def of_child(self, own: FloatArray) -> FloatArray:
        """The variances (k, b) that children expect of nodes with these own ones (k, b)."""
        return np.minimum(CHILD_SHAPE * own, self._most())

    def _most(self) -> FloatArray:
        """The largest variances (b,) that a node expects: where values are calmer than they were at first, theirs."""
        nodes, block = self._nodes, self._nodes.layout.block
        spread = nodes.spread[block]
        return np.where(spread < nodes.most_spread[block], spread**2, np.inf)

    def own(self, nodes: IntArray) -> FloatArray:
        """The variances (k, b) of these nodes by what they have counted."""
        covariance = self._nodes.covariance(nodes)
        return covariance if covariance.ndim == 2 else np.einsum("kii->ki", covariance)

    def grow(self, n_nodes: int) -> None:
        """Make room for more nodes."""
        self.variance = grown(self.variance, n_nodes)
