"""Growth by evidence: a leaf is cut when two densities explain its samples better than one, the cut's price included.

Every leaf has at most one candidate, a hyperplane found among its recent samples, and counts what falls on its two
sides from then on. When the marginal likelihood of the sides beats that of the whole, the leaf is cut and its children
inherit what the sides have counted. A candidate that stays poor is replaced by a better one.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.config import DetectorConfig
from core.density.forgetting import Forgetting
from core.density.receipt import Groups, Learned, Receipt
from core.errors import InvalidSnapshot
from core.families.marginal_likelihood import MEAN_COUNT, Expectation, choose_prior, log_share
from core.families.posterior import scatter_about_prior
from core.families.statistics import Moments, moments_of, outer
from core.mixture.shares import Shares
from core.snapshot import Arrays, take
from core.tree.evidence.candidates import Candidates
from core.tree.evidence.reservoir import Reservoir
from core.tree.evidence.screening import Screen, SideEvidence
from core.tree.evidence.search import Hyperplanes, best_hyperplane
from core.tree.evidence.worth import Worth
from core.tree.growth import Growth
from core.tree.nodes import VARIANCE_FLOOR, Nodes
from core.tree.schedule.dates import splits_due
from core.tree.subspaces import Pair

CHILD_SHAPE: Final = 0.5
"""A child's expected variances as a share of its parent's."""
MARGIN: Final = 2.0
PRICE_A_FEATURE: Final = 2.0
"""What a hyperplane costs: MARGIN nats, and half as many times log n as this a feature."""
SLOW: Final = 256
CHECK_GROWTH: Final = (0.15, 0.5)
SEARCH_GROWTH: Final = (0.3, 0.5)
"""A node is looked at, or searched, when it has grown by this share; the second number from SLOW samples on."""
ROUNDING: Final = 1e-9
"""Nats a sample: of two hyperplanes that part samples alike the older one stays, whatever the last bits say."""
WORTH_OF_USE: Final = 3.0
EXCHANGE: Final = 2.0
"""At the cap a pair is given up for a cut that promises EXCHANGE times what it saves; a leaf that hardly anything
reaches saves WORTH_OF_USE nats a sample that does."""


class EvidenceGrowth(Growth):
    """Splits by evidence; with a schedule the leaf whose candidate's sides lie farthest apart is cut at t = beta^k."""

    _ARRAYS: Final = ("fresh", "unsearched", "variance")

    def __init__(self, config: DetectorConfig, nodes: Nodes, forgetting: Forgetting) -> None:
        m = config.n_features
        self._config, self._nodes, self._forgetting = config, nodes, forgetting
        self._least = m + 1
        self._candidates = Candidates(m, nodes.statistics)
        self._recent = Reservoir(m)
        self._worth = Worth()
        self._fresh, self._unsearched = np.zeros(1), np.zeros(1)
        self._variance = np.ones((1, nodes.statistics.n_block))

    def keys(self, X: FloatArray, held: BoolArray) -> IntArray:
        """Twice the leaf, plus the side of its candidate."""
        return self._candidates.cells(X, self._nodes.tree.leaf_of(held))

    def count(self, learned: Learned, held: BoolArray, groups: Groups, moments: Moments) -> None:
        fresh = self._nodes.tree.ancestor.T @ np.bincount(groups.key // 2, moments.count, len(self._fresh))
        self._fresh += fresh
        self._unsearched += fresh
        self._candidates.count(groups.key, moments)
        leaf = self._nodes.tree.leaf_of(held)
        self._recent.add(learned.x, learned.spread, learned.ordinal, learned.moment, leaf)
        self._recent.trim(int(np.count_nonzero(self._nodes.tree.leaf)))

    def change(self, receipt: Receipt, sign: int, weight: float) -> None:
        x, candidates = receipt.x, self._candidates
        leaf = self._nodes.tree.leaf_of(self._nodes.tree.membership(x[None]))
        at = int(leaf[0])
        if weight > 0 and candidates.has[at] and candidates.since[at] <= receipt.ordinal:
            statistics = candidates.statistics
            change = statistics.remove if sign < 0 else statistics.insert
            rows, spread = self._nodes.layout.columns(x[None], receipt.spread[None])
            change(candidates.cells(x[None], leaf), rows[0], spread[0], weight)
        if sign < 0:
            self._recent.remove(receipt.ordinal)
        else:
            self._recent.insert(x, receipt.spread, receipt.ordinal, receipt.moment, at)

    def weigh(self, shares: Shares) -> None:
        if self._full:
            self._worth.learn(shares, self._nodes.mixture, self._nodes.tree)

    def fade(self, factor: float) -> None:
        self._candidates.statistics.fade(factor)
        self._fresh *= factor
        self._unsearched *= factor

    def grow(self, before: int, after: int) -> None:
        due = self._due(self._fresh, CHECK_GROWTH)
        if due.size:
            self._fresh[due] = 0
            self._choose_priors(due)
            if self._config.max_nodes > 1:
                self._consider(due[self._nodes.tree.leaf[due]], after)
        if self._config.split != "evidence":
            for _ in range(splits_due(self._config.beta, before, after)):
                self._split_most_separated(after)

    @property
    def _full(self) -> bool:
        return self._nodes.tree.n_nodes + 2 > self._config.max_nodes

    def _due(self, fresh: FloatArray, growth: tuple[float, float]) -> IntArray:
        """The nodes that have grown by so much, of which fresh (N,) is new."""
        count = self._nodes.statistics.count
        rate = np.where(count < SLOW, *growth)
        return np.flatnonzero((count >= 2) & (fresh > 0) & (fresh >= rate * np.maximum(count - fresh, 0.0)))

    def _choose_priors(self, nodes: IntArray) -> None:
        """Let the evidence of what these nodes have counted choose the scale and strength of their priors."""
        prior, statistics = self._nodes.prior, self._nodes.statistics
        scatter = scatter_about_prior(statistics, prior, nodes)
        expected = self._expected(self._nodes.tree.parent[nodes], self._variance[nodes])
        choice = choose_prior(statistics.count[nodes], scatter, expected, VARIANCE_FLOOR, prior.mean_count[nodes])
        prior.scale[nodes], prior.strength[nodes] = choice.scale, choice.strength
        self._nodes.touch(nodes)

    def _expected(self, parent: IntArray, variance: FloatArray) -> Expectation:
        """What groups below these nodes (k,), -1 for none, expect: variances (k, m), and the nodes' correlations."""
        if self._nodes.statistics.diagonal:
            return Expectation(variance, None, np.zeros(len(parent)))
        n, m = self._nodes.statistics.count[parent], self._nodes.statistics.n_block
        covariance = self._nodes.covariance(parent)
        deviation = np.sqrt(np.einsum("kii->ki", covariance))
        correlation = covariance / outer(deviation, diagonal=False)
        return Expectation(variance, correlation, np.where(parent < 0, 0.0, n / (n + m * (m + 1) / 2)))

    def _consider(self, leaves: IntArray, n_learned: int) -> None:
        """Cut these leaves where the evidence is for it; elsewhere look for a better candidate."""
        unsearched = set(self._due(self._unsearched, SEARCH_GROWTH).tolist())
        gains = self._gains(leaves)
        for i, leaf in enumerate(leaves.tolist()):
            gain = float(gains[i])
            if not self._nodes.tree.leaf[leaf]:
                continue
            if gain <= 0 and (leaf in unsearched or not self._candidates.has[leaf]):
                gain = self._search(leaf, gain)
            if gain > 0 and self._config.split != "scheduled" and self._split(leaf, gain, n_learned):
                gains = self._gains(leaves)  # at the cap a split takes its numbers from others

    def _gains(self, leaves: IntArray) -> FloatArray:
        """The evidence for each leaf's candidate, -inf where there is none or a side has too few samples: (k,)."""
        gains = np.full(len(leaves), -np.inf)
        fits = self._candidates.sizes(leaves).min(1) >= self._least
        if fits.any():
            gains[fits] = self._gain(leaves[fits], *self._candidates.sides(leaves[fits]))
        return gains

    def _gain(self, leaves: IntArray, left: Moments, right: Moments) -> FloatArray:
        """Evidence of two sides against that of the whole, less the price of the hyperplane, in nats: (k,)."""
        k = len(leaves)
        whole = _joined(left, right)
        count = np.concatenate([whole.count, left.count, right.count])
        scatter = np.concatenate([whole.scatter, left.scatter, right.scatter])
        own = _variances(self._nodes.covariance(leaves))
        parents = np.concatenate([self._nodes.tree.parent[leaves], leaves, leaves])
        expected = self._expected(parents, np.concatenate([own, CHILD_SHAPE * own, CHILD_SHAPE * own]))
        evidence = choose_prior(count, scatter, expected, VARIANCE_FLOOR, np.full(3 * k, MEAN_COUNT)).log_evidence
        evidence += self._nodes.evidence_apart(leaves, [whole, left, right])
        price = MARGIN + 0.5 * PRICE_A_FEATURE * self._config.n_features * np.log(whole.count)
        gain: FloatArray = evidence[k : 2 * k] + evidence[2 * k :] - evidence[:k]
        return gain + log_share(left.count, right.count) - price

    def _search(self, leaf: int, gain: float) -> float:
        """Look for a better candidate among a leaf's recent samples; the gain of the one that it has then."""
        rows, diagonal = self._recent.of(leaf), self._nodes.statistics.diagonal
        if len(rows) < 2 * self._least:
            return gain
        self._unsearched[leaf] = 0
        x, at = self._recent.x[rows], np.array([leaf])
        covariance = self._nodes.covariance(at)
        columns, _ = self._nodes.layout.columns(x, self._recent.spread[rows])
        layout = self._nodes.layout
        apart = SideEvidence(layout, columns, self._nodes.known_apart(at)) if layout.factors else None
        expected = CHILD_SHAPE * _variances(covariance)[0]
        screen = Screen(columns[:, : len(expected)], expected, VARIANCE_FLOOR, apart, diagonal=diagonal)
        plane = best_hyperplane(x, self._nodes.extent(x, covariance[0]), self._least, screen, self._nodes.layout.apart)
        return gain if plane is None else self._propose(leaf, plane, rows, gain)

    def _propose(self, leaf: int, plane: Hyperplanes, rows: IntArray, gain: float) -> float:
        """Take a hyperplane as the leaf's candidate if it promises more than the present one's gain."""
        recent, candidates, at = self._recent, self._candidates, np.array([leaf])
        weight = self._forgetting.weight(recent.moment[rows])
        groups = Groups.by((~plane.left(recent.x[rows])[:, 0]).astype(np.int64))
        rows = rows[groups.order]
        x, spread = self._nodes.layout.columns(recent.x[rows], recent.spread[rows])
        sides = moments_of(x, spread, weight[groups.order], groups.first, diagonal=self._nodes.statistics.diagonal)
        if len(sides.count) < 2 or sides.count.min() < self._least:
            return gain
        promise = float(self._gain(at, _one(sides, 0), _one(sides, 1))[0])
        have = float(candidates.sizes(at).sum())
        if np.isfinite(gain) and promise <= 0 and promise / float(sides.count.sum()) <= gain / have + ROUNDING:
            return gain
        candidates.put(leaf, plane, int(recent.window[leaf]), sides)
        return promise

    def _split_most_separated(self, n_learned: int) -> None:
        """Alg. 2's choice among the leaves: the largest distance of the sides' means, halved for every level."""
        tree = self._nodes.tree
        leaves = np.flatnonzero(tree.leaf & self._candidates.has)
        leaves = leaves[self._candidates.sizes(leaves).min(1) >= self._least]
        if leaves.size and not self._full:
            left, right = self._candidates.sides(leaves)
            gap = np.linalg.norm(left.mean - right.mean, axis=1) / 2.0 ** tree.level[leaves]
            self._split(int(leaves[gap.argmax()]), 0.0, n_learned)

    def _split(self, leaf: int, gain: float, n_learned: int) -> bool:
        """Cut a leaf by its candidate if there is room; the children inherit its sides."""
        free = None
        if self._full and (free := self._room_for(leaf, gain, n_learned)) is None:
            return False
        nodes, candidates, at = self._nodes, self._candidates, np.array([leaf])
        own, sides = _variances(nodes.covariance(at))[0], candidates.statistics.of(np.array([2 * leaf, 2 * leaf + 1]))
        plane = candidates.plane(leaf)
        pair = nodes.cut(leaf, *plane, int(candidates.since[leaf]), free)
        self._grow()
        nodes.inherit(pair, sides, MEAN_COUNT)
        self._variance[pair.children] = CHILD_SHAPE * own
        rows = self._recent.of(leaf)
        self._recent.leaf[rows] = pair.left + candidates.cells(self._recent.x[rows], np.full(len(rows), leaf)) % 2
        self._recent.window[pair.children] = self._recent.window[leaf]
        self._fresh[pair.children] = self._unsearched[pair.children] = sides.count
        candidates.clear(np.array([leaf, pair.left, pair.right]))
        self._choose_priors(pair.children)
        left_share = float(sides.count[0] / sides.count.sum())
        nodes.mixture.split(pair, self._config.xi, left_share)
        self._worth.split(pair, nodes.tree.n_nodes, left_share, max(gain, 0.0) / float(sides.count.sum()))
        return True

    def _room_for(self, leaf: int, gain: float, n_learned: int) -> Pair | None:
        """At the cap, the pair that the tree can best do without, given up if this leaf's cut promises enough more."""
        tree, worth = self._nodes.tree, self._worth
        prices = []
        for pair in tree.pairs():
            leaves = [c for c in (pair.left, pair.right) if tree.leaf[c]]
            if leaf in leaves:
                continue
            if len(leaves) == 2:
                prices.append((float(worth.saved[pair.node]), -1, pair))
            if pair.node != 0:
                prices += [(WORTH_OF_USE * float(worth.used[c]), c, pair) for c in leaves]
        if not prices or not worth.known:
            return None
        price, idle, pair = min(prices, key=lambda p: p[0])
        have = float(self._candidates.sizes(np.array([leaf])).sum())
        if gain / have * float(worth.used[leaf]) < EXCHANGE * price:
            return None
        if idle < 0:
            self._collapse(pair)
        else:
            self._lift(pair, idle, n_learned)
        return pair

    def _collapse(self, pair: Pair) -> None:
        """Two leaves return into their node; what cut them stays as its candidate."""
        nodes, recent, tree = self._nodes, self._recent, self._nodes.tree
        plane = Hyperplanes(tree.normal[pair.cut][None].copy(), tree.offset[[pair.cut]].copy())
        since = int(tree.since[pair.children].max())
        self._candidates.put(pair.node, plane, since, nodes.statistics.of(pair.children))
        nodes.mixture.merge(pair)
        recent.window[pair.node] = recent.window[pair.children].max()
        for child in (pair.left, pair.right):
            recent.leaf[recent.of(child)] = pair.node
        self._fresh[pair.node] = self._unsearched[pair.node] = 0
        self._candidates.clear(pair.children)

    def _lift(self, pair: Pair, idle: int, n_learned: int) -> None:
        """A leaf that hardly anything reaches goes, and its parent with it: its sibling takes the parent's place."""
        child = pair.left + pair.right - idle
        recent = self._recent
        recent.drop(idle)
        self._nodes.lift(pair, child, n_learned + 1)
        self._candidates.move(child, pair.node)
        recent.leaf[recent.of(child)] = pair.node
        below = self._nodes.tree.ancestor[:, child]
        recent.window[below] = self._candidates.since[below] = n_learned + 1
        for name in self._ARRAYS:
            array = getattr(self, f"_{name}")
            array[pair.node] = array[child]
        recent.window[pair.node] = self._candidates.since[pair.node] = n_learned + 1
        self._worth.lift(pair, child)

    def _grow(self) -> None:
        n = self._nodes.tree.n_nodes
        self._candidates.grow(n)
        self._recent.grow(n)
        for name in self._ARRAYS:
            setattr(self, f"_{name}", grown(getattr(self, f"_{name}"), n))

    def state(self) -> dict[str, NDArray[Any]]:
        own = {f"growth_{name}": getattr(self, f"_{name}") for name in self._ARRAYS}
        return own | self._candidates.state() | self._recent.state() | self._worth.state()

    def check(self, arrays: Arrays, times_cut: IntArray, n_learned: int) -> None:
        n = len(times_cut)
        fresh, unsearched, variance = (
            take(arrays, f"growth_{name}", np.float64, (n, *getattr(self, f"_{name}").shape[1:]))
            for name in self._ARRAYS
        )
        if (variance < CHILD_SHAPE * VARIANCE_FLOOR / 2).any() or (fresh < 0).any() or (unsearched < 0).any():
            raise InvalidSnapshot("what its nodes expect is not positive")
        if (times_cut > 1).any():
            raise InvalidSnapshot("it has a node that is cut twice")
        self._candidates.check(arrays, times_cut == 0, n_learned)
        self._recent.check(arrays, n, n_learned)
        self._worth.check(arrays, n)

    def load(self, arrays: Arrays) -> None:
        for name in self._ARRAYS:
            setattr(self, f"_{name}", arrays[f"growth_{name}"])
        self._candidates.load(arrays)
        self._recent.load(arrays, self._nodes.tree)
        self._worth.load(arrays)


def _variances(covariance: FloatArray) -> FloatArray:
    """The diagonals (k, m) of covariances (k, m, m), or those that are already."""
    return covariance if covariance.ndim == 2 else np.einsum("kii->ki", covariance)


def _joined(left: Moments, right: Moments) -> Moments:
    """The moments of both sides together."""
    k = len(left.count)
    both = Moments(
        np.concatenate([left.count, right.count]),
        np.concatenate([left.mean, right.mean]),
        np.concatenate([left.scatter, right.scatter]),
    )
    return both.pooled(np.arange(2 * k).reshape(2, k).T.ravel(), np.arange(0, 2 * k, 2))


def _one(moments: Moments, i: int) -> Moments:
    return Moments(moments.count[[i]], moments.mean[[i]], moments.scatter[[i]])
