"""What growth by evidence remembers of the nodes, and how that changes when the tree changes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, IntArray, grown
from core.errors import InvalidSnapshot
from core.families.marginal_likelihood import MEAN_COUNT
from core.families.statistics import Moments
from core.growth.evidence.candidates import Candidates
from core.growth.evidence.priors import CHILD_SHAPE, Priors
from core.growth.evidence.reservoir import Reservoir
from core.growth.evidence.search import Hyperplanes
from core.growth.evidence.worth import Worth
from core.mixture.learned import Groups, LearnedBatch, LearnedSample
from core.mixture.nodes import Nodes
from core.snapshot import Arrays, take
from core.tree.subspaces import Pair


class GrowthState:
    """The candidates, recent samples, priors and worth of the nodes.

    fresh (N,) and unsearched (N,) are what each node has counted since it was last looked at, and last searched.
    """

    def __init__(self, n_features: int, nodes: Nodes) -> None:
        self._nodes = nodes
        self.candidates = Candidates(n_features, nodes.statistics)
        self.recent = Reservoir(n_features)
        self.priors = Priors(nodes)
        self.worth = Worth()
        self.fresh, self.unsearched = np.zeros(1), np.zeros(1)

    def count(self, learned: LearnedBatch, held: BoolArray, groups: Groups, moments: Moments) -> None:
        """Count a round's samples in the nodes held (n, N); the groups are those of Candidates.cells."""
        tree = self._nodes.tree
        fresh = tree.ancestor.T @ np.bincount(groups.key // 2, moments.count, len(self.fresh))
        self.fresh += fresh
        self.unsearched += fresh
        self.candidates.count(groups.key, moments)
        self.recent.add(learned.x, learned.spread, learned.ordinal, learned.moment, tree.leaf_of(held))
        self.recent.trim(int(np.count_nonzero(tree.leaf)))

    def change(self, sample: LearnedSample, sign: int, weight: float) -> None:
        """Take one sample out of (sign -1) or back into (sign +1) its leaf's candidate and the recent samples."""
        x, candidates = sample.x, self.candidates
        leaf = self._nodes.tree.leaf_of(self._nodes.tree.membership(x[None]))
        at = int(leaf[0])
        if weight > 0 and candidates.has[at] and candidates.since[at] <= sample.ordinal:
            statistics = candidates.statistics
            change = statistics.remove if sign < 0 else statistics.insert
            rows, spread = self._nodes.layout.columns(x[None], sample.spread[None])
            change(candidates.cells(x[None], leaf), rows[0], spread[0], weight)
        if sign < 0:
            self.recent.remove(sample.ordinal)
        else:
            self.recent.insert(x, sample.spread, sample.ordinal, sample.moment, at)

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far by a factor, 0 to 1."""
        self.candidates.statistics.fade(factor)
        self.fresh *= factor
        self.unsearched *= factor

    def split(self, leaf: int, gain: float, free: Pair | None) -> tuple[Pair, float]:
        """Cut a leaf by its candidate, for a gain in nats; the children inherit what its sides have counted.

        They take the numbers of the pair free, which was given up, or new ones. Returns the new pair, and the left
        child's share of the samples, 0 to 1.
        """
        nodes, candidates, at = self._nodes, self.candidates, np.array([leaf])
        own, sides = self.priors.own(at)[0], candidates.statistics.of(np.array([2 * leaf, 2 * leaf + 1]))
        normal, offset = candidates.normal[leaf], float(candidates.offset[leaf])
        pair = nodes.cut(leaf, normal, offset, int(candidates.since[leaf]), free)
        self._grow()
        nodes.inherit(pair, sides, MEAN_COUNT)
        self.priors.variance[pair.children] = self.priors.of_child(own)
        rows = self.recent.of(leaf)
        self.recent.leaf[rows] = pair.left + candidates.cells(self.recent.x[rows], np.full(len(rows), leaf)) % 2
        self.recent.window[pair.children] = self.recent.window[leaf]
        self.fresh[pair.children] = self.unsearched[pair.children] = sides.count
        candidates.clear(np.array([leaf, pair.left, pair.right]))
        total = float(sides.count.sum())
        left_share = float(sides.count[0] / sides.count.sum())
        self.worth.split(pair, nodes.tree.n_nodes, left_share, max(gain, 0.0) / total)
        return pair, left_share

    def collapse(self, pair: Pair) -> None:
        """Merge two leaves into their parent; the hyperplane between them becomes its candidate."""
        nodes, recent, tree = self._nodes, self.recent, self._nodes.tree
        plane = Hyperplanes(tree.normal[pair.cut][None].copy(), tree.offset[[pair.cut]].copy())
        since = int(tree.since[pair.children].max())
        self.candidates.put(pair.node, plane, since, nodes.statistics.of(pair.children))
        nodes.mixture.merge(pair)
        recent.window[pair.node] = recent.window[pair.children].max()
        for child in (pair.left, pair.right):
            recent.leaf[recent.of(child)] = pair.node
        self.fresh[pair.node] = self.unsearched[pair.node] = 0
        self.candidates.clear(pair.children)

    def lift(self, pair: Pair, idle: int, n_learned: int) -> None:
        """Remove an idle leaf: its sibling, with all below, takes their parent's place.

        These nodes count from the next sample on; earlier samples can no longer be taken out of them.
        """
        child, recent = pair.left + pair.right - idle, self.recent
        recent.drop(idle)
        self._nodes.lift(pair, child, n_learned + 1)
        self.candidates.move(child, pair.node)
        recent.leaf[recent.of(child)] = pair.node
        below = self._nodes.tree.ancestor[:, child]
        recent.window[below] = self.candidates.since[below] = n_learned + 1
        for array in (self.fresh, self.unsearched, self.priors.variance):
            array[pair.node] = array[child]
        recent.window[pair.node] = self.candidates.since[pair.node] = n_learned + 1
        self.worth.lift(pair, child)

    def _grow(self) -> None:
        n = self._nodes.tree.n_nodes
        for part in (self.candidates, self.recent, self.priors):
            part.grow(n)
        self.fresh, self.unsearched = grown(self.fresh, n), grown(self.unsearched, n)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        own = {"fresh": self.fresh, "unsearched": self.unsearched, "variance": self.priors.variance}
        named = {f"growth_{name}": array for name, array in own.items()}
        return named | self.candidates.state() | self.recent.state() | self.worth.state()

    def check(self, arrays: Arrays, times_cut: IntArray, n_learned: int) -> None:
        """Raise InvalidSnapshot if a state does not fit a tree of nodes cut times_cut (N,) times, and n_learned."""
        n, m = len(times_cut), self.priors.variance.shape[1]
        fresh, unsearched = (take(arrays, f"growth_{name}", np.float64, (n,)) for name in ("fresh", "unsearched"))
        variance = take(arrays, "growth_variance", np.float64, (n, m))
        if (
            (variance < CHILD_SHAPE * self._nodes.floor_of(arrays) / 2).any()
            or (fresh < 0).any()
            or (unsearched < 0).any()
        ):
            raise InvalidSnapshot("what its nodes expect is not positive")
        if (times_cut > 1).any():
            raise InvalidSnapshot("it has a node that is cut twice")
        self.candidates.check(arrays, times_cut == 0, n_learned)
        self.recent.check(arrays, n, n_learned)
        self.worth.check(arrays, n)

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.fresh, self.unsearched = arrays["growth_fresh"], arrays["growth_unsearched"]
        self.priors.variance = arrays["growth_variance"]
        self.candidates.load(arrays)
        self.recent.load(arrays, self._nodes.tree)
        self.worth.load(arrays)
