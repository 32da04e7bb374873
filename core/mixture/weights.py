"""The weights alpha of the nodes in the mixture p(x) = sum_i alpha_i f_i(x) (ITAN eq. mixture), and how they move."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log, sqrt
from typing import Final

import numpy as np

from core.arrays import FloatArray, grown
from core.errors import InvalidSnapshot
from core.tree.subspaces import Pair, SubspaceTree

LEAST_WEIGHT: Final = 1e-300
RATIO_CAP: Final = 5.0
"""Where EG clips f_i / p. The paper bounds f, which carries units; the ratio itself reaches 1 / alpha_i, and unclipped
it throws all weight on one node (log-loss 5 to 30 on the paper's own experiments)."""
LEAST_MEAN_LOSS: Final = 1e-3
SOFT_BAYES_RATE: Final = 0.02
LARGEST_LOSS: Final = 1e217
START_STOP_ODDS: Final = log(0.3 / 0.7)
MOST_STOP_ODDS: Final = 7.0
MOST_EVIDENCE: Final = 5.0
"""Nats that one sample may say for or against a split: gross outliers decide nothing."""
START_SHARE_COUNT: Final = 20.0
LEAST_PAIR_SHARE: Final = 0.5
MOST_SHARE: Final = 1e6
MEMORY: Final = 1000.0
"""Samples that the children's shares remember."""


def log_mixture(log_density: FloatArray, weights: FloatArray) -> FloatArray:
    """log sum_i alpha_i f_i, (n,), from the nodes' log densities (n, N).

    >>> log_mixture(np.array([[-1e5, -1e5]]), np.array([0.5, 0.5]))
    array([-100000.])
    """
    return log_sum_exp(log_density + np.log(np.maximum(weights, LEAST_WEIGHT)))


def log_sum_exp(terms: FloatArray) -> FloatArray:
    """log of the sum of exponentials along the rows of (n, N): (n,)."""
    top: FloatArray = np.maximum.reduce(terms, axis=1)
    terms = terms - top[:, None]
    np.exp(terms, out=terms)
    top += np.log(np.add.reduce(terms, axis=1))
    return top


@dataclass(slots=True)
class Shares:
    """Whose the n samples of a round are: own (N, n) is alpha_i f_i / p, and log_p (n,)."""

    own: FloatArray
    log_p: FloatArray

    def reaching(self, tree: SubspaceTree) -> FloatArray:
        """The share of each sample that is a node's or of what is below it, (N, n)."""
        return summed_upwards(self.own, tree)


def summed_upwards(values: FloatArray, tree: SubspaceTree) -> FloatArray:
    """For each node the sum of values (N, ...) of itself and all that is below it."""
    total = values.copy()
    rows = list(total)
    for node, left, right in tree.links_upwards:
        rows[node] += rows[left]
        rows[node] += rows[right]
    return total


class Mixture(ABC):
    """Weights (N,) on the simplex; move them by the densities that the samples had before they were learned."""

    name: str

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        self._tree, self._memory = tree, memory
        self.weights = np.ones(1)

    @property
    def weights(self) -> FloatArray:
        """alpha, (N,), summing to one."""
        return self._weights

    @weights.setter
    def weights(self, values: FloatArray) -> None:
        self._weights = values
        self.log_weights = np.log(np.maximum(values, LEAST_WEIGHT))

    def log_p(self, log_density: FloatArray) -> FloatArray:
        """log_mixture by the present weights."""
        return log_sum_exp(log_density + self.log_weights)

    def shares(self, log_density: FloatArray) -> Shares:
        """Whose each sample is by the present weights, from the log densities (n, N)."""
        terms = (log_density + self.log_weights).T
        top = terms.max(0)
        own = np.exp(terms - top)
        total = own.sum(0)
        own /= total
        return Shares(own, top + np.log(total))

    @abstractmethod
    def learn(self, shares: Shares) -> None:
        """Move the weights by a round of samples."""

    @abstractmethod
    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        """A node keeps a share of its weight; its new children get left_share and the rest of what it gives."""

    @abstractmethod
    def merge(self, pair: Pair) -> None:
        """Give the weight of two leaves back to the node they came from."""

    @abstractmethod
    def lift(self, pair: Pair, child: int) -> None:
        """One child takes its parent's place, and the weight of both and of the other child, a leaf."""

    @property
    @abstractmethod
    def running(self) -> FloatArray:
        """What a snapshot must keep beside the weights."""

    def check(self, running: FloatArray, n_nodes: int) -> None:
        """InvalidSnapshot if running is not what a mixture of so many nodes writes."""
        if running.shape != self._running_shape(n_nodes) or not self._fits(running):
            raise InvalidSnapshot("its mixture's running estimates do not fit")

    def restore(self, running: FloatArray, weights: FloatArray) -> None:
        """Take over a state."""
        self._take(running)
        self.weights = weights

    @abstractmethod
    def _running_shape(self, n_nodes: int) -> tuple[int]: ...

    @abstractmethod
    def _fits(self, running: FloatArray) -> bool:
        """Whether this can have been kept beside weights."""

    @abstractmethod
    def _take(self, running: FloatArray) -> None:
        """Take over what is kept beside the weights."""


class FlatMixture(Mixture):
    """Every node bids for itself, whatever the tree."""

    def learn(self, shares: Shares) -> None:
        self._move((shares.own / np.maximum(self.weights, LEAST_WEIGHT)[:, None]).T, shares.log_p)
        positive = np.maximum(self.weights, LEAST_WEIGHT)
        self.weights = positive / positive.sum()

    def split(self, pair: Pair, kept: float, left_share: float) -> None:
        given = (1 - kept) * self.weights[pair.node]
        weights = grown(self.weights, self._tree.n_nodes)
        weights[pair.children] = left_share * given, (1 - left_share) * given
        weights[pair.node] *= kept
        self.weights = weights

    def merge(self, pair: Pair) -> None:
        weights = self.weights.copy()
        weights[pair.node] += weights[pair.children].sum()
        weights[pair.children] = 0
        self.weights = weights

    def lift(self, pair: Pair, child: int) -> None:
        self.merge(pair)

    @abstractmethod
    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        """One step by the ratios f_i / p (k, N) of a round whose log p is log_p (k,)."""


class ExponentiatedGradient(FlatMixture):
    """alpha_i <- alpha_i exp(theta f_i / p), normalised (ITAN eq. EG; the paper leaves the normalisation out).

    theta is Theorem 1's, 2 sqrt(ln N) / (R sqrt(2 A T) + R^2 sqrt(ln N)), from running estimates: T the samples so far,
    A their mean loss -log p (at least LEAST_MEAN_LOSS: it is negative once densities pass 1), R the largest ratio so
    far.
    """

    name = "eg"

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        super().__init__(tree, memory)
        self._count, self._loss, self._largest = 0.0, 0.0, 1.0

    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        clipped = np.minimum(ratio, RATIO_CAP)
        self._count += len(log_p)
        self._loss -= float(log_p.sum())
        self._largest = max(self._largest, float(clipped.max()))
        step = self._rate() * clipped.sum(0)
        self.weights = self.weights * np.exp(step - step.max())

    def _rate(self) -> float:
        complexity = sqrt(log(len(self.weights)))
        mean_loss = max(self._loss / self._count, LEAST_MEAN_LOSS)
        return theorem_1_rate(complexity, self._largest, mean_loss, self._count)

    @property
    def running(self) -> FloatArray:
        return np.array([self._count, self._loss, self._largest])

    def _running_shape(self, n_nodes: int) -> tuple[int]:
        return (3,)

    def _fits(self, running: FloatArray) -> bool:
        count, loss, largest = running.tolist()
        return bool(0 <= count < LARGEST_LOSS and abs(loss) < LARGEST_LOSS and 1.0 <= largest <= RATIO_CAP)

    def _take(self, running: FloatArray) -> None:
        self._count, self._loss, self._largest = running.tolist()


def theorem_1_rate(complexity: float, largest_ratio: float, mean_loss: float, rounds: float) -> float:
    """Theorem 1's theta for complexity sqrt(ln N), R, A and T."""
    return 2 * complexity / (largest_ratio * sqrt(2 * mean_loss * rounds) + largest_ratio**2 * complexity)


class SoftBayes(FlatMixture):
    """alpha_i <- alpha_i ((1 - eta) + eta f_i / p) with eta = max(SOFT_BAYES_RATE, 1 / (t + 1)).

    Orseau, Lattimore and Legg, "Soft-Bayes: Prod for mixtures of experts with log-loss". Its regret does not depend on
    the size of the ratios; a weight may still fade to nothing while its node is of no use. Within a round the rates add
    up as if the nodes stood still.
    """

    name = "soft_bayes"

    def __init__(self, tree: SubspaceTree, memory: float = MEMORY) -> None:
        super().__init__(tree, memory)
        self._count = 0.0

    def _move(self, ratio: FloatArray, log_p: FloatArray) -> None:
        k = len(log_p)
        rate = 1 - (1 - max(SOFT_BAYES_RATE, 1 / (self._count + 2))) ** k
        self._count += k
        self.weights = self.weights * ((1 - rate) + rate * ratio.mean(0))

    @property
    def running(self) -> FloatArray:
        return np.array([self._count])

    def _running_shape(self, n_nodes: int) -> tuple[int]:
        return (1,)

    def _fits(self, running: FloatArray) -> bool:
        return bool(0 <= running[0] < LARGEST_LOSS)

    def _take(self, running: FloatArray) -> None:
        self._count = float(running[0])


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


MIXTURES: Final[dict[str, type[Mixture]]] = {c.name: c for c in (ExponentiatedGradient, SoftBayes, TreeOdds)}
