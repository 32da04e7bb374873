"""The default rule: one two-way choice a node, so that a weight is a product along a path of the tree."""

from math import log
from typing import Final

import numpy as np

from core.arrays import FloatArray, grown
from core.mixture.base import MEMORY, Mixture
from core.mixture.log_sum import LEAST_WEIGHT
from core.mixture.shares import Shares
from core.tree.subspaces import Pair, SubspaceTree

START_STOP_ODDS: Final = log(0.3 / 0.7)
MOST_STOP_ODDS: Final = 7.0
MOST_EVIDENCE: Final = 5.0
"""Nats that one sample may say for or against a split: gross outliers decide nothing."""
START_SHARE_COUNT: Final = 20.0
LEAST_PAIR_SHARE: Final = 0.5
MOST_SHARE: Final = 1e6


class TreeOdds(Mixture):
    """Weights along the tree: a node keeps what reaches it with some probability, or passes it on to its children.

    Exponentiated gradient on one two-way choice a node, in the log odds of keeping: each sample moves them by what
    the node's density says against the best of what is below it, times how much of the sample reaches there. Every
    alpha is a product along a path, so the broad nodes above never die. A node must be cut once at most.
    """

    name = "tree"

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        self._odds, self._share = np.zeros(1), np.ones(1)
        super().__init__(tree, memory)

    def learn(self, shares: Shares) -> None:
        inner = np.flatnonzero(~self._tree.leaf)
        if not inner.size:
            return
        reached = shares.reaching(self._tree)
        odds = self._odds[inner]
        said = said_for_stopping(shares.own[inner], reached[inner])
        said -= odds[:, None]
        np.minimum(np.maximum(said, -MOST_EVIDENCE, out=said), MOST_EVIDENCE, out=said)
        step = (reached[inner] * said).sum(1)
        self._odds[inner] = np.clip(odds + step, -MOST_STOP_ODDS, MOST_STOP_ODDS)
        self._share[1:] += reached[1:].sum(1)
        both = self._share[1::2] + self._share[2::2]
        self._share[1:] *= np.repeat(np.minimum(1.0, self._memory / both), 2)
        self._place()

    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        self._odds, self._share = (grown(a, self._tree.n_nodes) for a in (self._odds, self._share))
        self._odds[pair.node] = START_STOP_ODDS
        self._share[pair.children] = START_SHARE_COUNT * left_share, START_SHARE_COUNT * (1 - left_share)
        self._place()

    def merge(self, pair: Pair) -> None:
        """Nothing to do: a leaf keeps all that reaches it."""

    def lift(self, pair: Pair, child: int) -> None:
        self._odds[pair.node] = self._odds[child]

    def _place(self) -> None:
        """alpha: the product of what is passed on down the path, times what the node keeps."""
        tree = self._tree
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
        in_range = (np.abs(odds) <= MOST_STOP_ODDS).all() and ((share >= 0) & (share < MOST_SHARE)).all()
        return bool(in_range and (both >= LEAST_PAIR_SHARE).all())

    def _take(self, running: FloatArray) -> None:
        self._odds, self._share = (half.copy() for half in np.split(running, 2))


def said_for_stopping(own: FloatArray, reached: FloatArray) -> FloatArray:
    """Log of a node's own share of what reaches it against that of what is below it."""
    passed = reached - own
    ratio: FloatArray = np.maximum(own, LEAST_WEIGHT)
    ratio /= np.maximum(passed, LEAST_WEIGHT, out=passed)
    return np.log(ratio, out=ratio)
