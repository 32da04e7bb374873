"""The default rule: one two-way choice a node, so that a weight is a product along a path of the tree."""

from math import log
from typing import Final

import numpy as np

from core.arrays import FloatArray, grown
from core.mixture.base import MEMORY, Mixture
from core.mixture.log_sum import LEAST_WEIGHT
from core.mixture.shares import Shares
from core.tree.subspaces import Pair, SubspaceTree

START_KEEP_ODDS: Final = log(0.3 / 0.7)
"""Log odds of keeping, of a node that was just cut. Chosen by hand."""
MOST_KEEP_ODDS: Final = 7.0
"""Bound of the log odds: a node keeps at least e^-7 of what reaches it, for the day it is needed. Chosen by hand."""
MOST_EVIDENCE: Final = 5.0
"""Nats that one sample may say for or against a split: gross outliers decide nothing. Chosen by hand."""
START_SHARE_COUNT: Final = 20.0
"""Samples that the shares of new children count as. Chosen by hand."""
LEAST_PAIR_SHARE: Final = 0.5
MOST_SHARE: Final = 1e6
"""Range of the shares in a snapshot: a pair starts with START_SHARE_COUNT, and memory bounds it."""


class TreeOdds(Mixture):
    """Weights along the tree, eq. (15): a node keeps what reaches it with some probability, or passes it on.

    Exponentiated gradient on this choice moves its log odds, eq. (16). Each weight is a product along a path, so broad
    nodes never die. Needs a tree whose nodes are cut once at most. The paper's rule lets each node compete with all
    others; section 10 of docs/method.md has the losses of both.
    """

    name = "tree"

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        self._odds, self._share = np.zeros(1), np.ones(1)
        super().__init__(tree, memory)

    def learn(self, shares: Shares) -> None:
        inner = np.flatnonzero(~self.tree.leaf)
        if not inner.size:
            return
        reached = shares.reaching(self.tree)
        odds = self._odds[inner]
        said = evidence_for_keeping(shares.own[inner], reached[inner])
        said -= odds[:, None]
        np.minimum(np.maximum(said, -MOST_EVIDENCE, out=said), MOST_EVIDENCE, out=said)
        step = (reached[inner] * said).sum(1)
        self._odds[inner] = np.clip(odds + step, -MOST_KEEP_ODDS, MOST_KEEP_ODDS)
        self._share[1:] += reached[1:].sum(1)
        both = self._share[1::2] + self._share[2::2]
        self._share[1:] *= np.repeat(np.minimum(1.0, self._memory / both), 2)
        self._place()

    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        self._odds, self._share = (grown(a, self.tree.n_nodes) for a in (self._odds, self._share))
        self._odds[pair.node] = START_KEEP_ODDS
        self._share[pair.children] = START_SHARE_COUNT * left_share, START_SHARE_COUNT * (1 - left_share)
        self._place()

    def merge(self, pair: Pair) -> None:
        """Do nothing: a leaf keeps all that reaches it."""

    def lift(self, pair: Pair, child: int) -> None:
        self._odds[pair.node] = self._odds[child]

    def _place(self) -> None:
        """Set the weights by eq. (15)."""
        tree = self.tree
        keep = np.where(tree.leaf, 1.0, 1 / (1 + np.exp(-self._odds)))
        passed_on = np.ones(tree.n_nodes)
        parent, share = tree.parent[1:], self._share[1:]
        passed_on[1:] = (1 - keep[parent]) * share / np.repeat(share[::2] + share[1::2], 2)
        reach = np.exp(np.where(tree.ancestor, np.log(np.maximum(passed_on, LEAST_WEIGHT)), 0.0).sum(1))
        weights = np.maximum(reach * keep, LEAST_WEIGHT)
        self.weights = weights / weights.sum()

    @property
    def running(self) -> FloatArray:
        return np.concatenate([self._odds, self._share])

    def _running_shape(self, n_nodes: int) -> tuple[int]:
        return (2 * n_nodes,)

    def _fits(self, running: FloatArray) -> bool:
        odds, share = np.split(running, 2)
        both = share[1::2] + share[2::2]  # one of a pair alone fades to nothing where all go to the other
        in_range = (np.abs(odds) <= MOST_KEEP_ODDS).all() and ((share >= 0) & (share < MOST_SHARE)).all()
        return bool(in_range and (both >= LEAST_PAIR_SHARE).all())

    def _take(self, running: FloatArray) -> None:
        self._odds, self._share = (half.copy() for half in np.split(running, 2))


def evidence_for_keeping(own: FloatArray, reached: FloatArray) -> FloatArray:
    """The log ratio of what nodes have of samples (k, n) to what the nodes below them have, in nats: (k, n).

    own is the nodes' own share of each sample, reached theirs and that of all nodes below.
    """
    passed = reached - own
    ratio: FloatArray = np.maximum(own, LEAST_WEIGHT)
    ratio /= np.maximum(passed, LEAST_WEIGHT, out=passed)
    return np.log(ratio, out=ratio)
