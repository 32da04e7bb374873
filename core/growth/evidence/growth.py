"""Growth by evidence: a leaf is cut when two densities explain its samples better than one, the cut's price included.

Every leaf has at most one candidate, a hyperplane found among its recent samples, and counts what falls on its two
sides from then on. When the marginal likelihood of the sides beats that of the whole, the leaf is cut and its children
inherit what the sides have counted. A candidate that stays poor is replaced by a better one.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.config import DetectorConfig
from core.families.statistics import Moments
from core.forgetting import Forgetting
from core.growth.base import Growth
from core.growth.evidence.candidates import Candidates
from core.growth.evidence.gain import Gain
from core.growth.evidence.proposals import ROUNDING, Proposals
from core.growth.evidence.reservoir import Reservoir
from core.growth.evidence.room import cheapest
from core.growth.evidence.state import GrowthState
from core.growth.schedule.dates import splits_due
from core.mixture.learned import Groups, LearnedBatch, LearnedSample
from core.mixture.nodes import Nodes
from core.mixture.shares import Shares
from core.snapshot import Arrays
from core.tree.subspaces import Pair

SLOW: Final = 256
CHECK_GROWTH: Final = (0.15, 0.5)
SEARCH_GROWTH: Final = (0.3, 0.5)
"""A node is looked at, or searched, when it has grown by this share; the second number holds from SLOW samples on.
Chosen by hand."""
EXCHANGE: Final = 2.0
"""At the cap a pair is given up for a cut that promises EXCHANGE times what the pair saves. Chosen by hand."""


class EvidenceGrowth(Growth):
    """Cuts leaves whose candidates have a gain above 0, and by the schedule, as the config's split says.

    The paper cuts any node, by a schedule alone; section 10 of docs/method.md has the losses of both.
    """

    def __init__(self, config: DetectorConfig, nodes: Nodes, forgetting: Forgetting) -> None:
        self._config, self._nodes = config, nodes
        self._state = GrowthState(config.n_columns, nodes)
        self._gain = Gain(config.n_columns, nodes, self._state.priors, self._state.recent)
        tie = ROUNDING if config.follows_spread else 0.0
        self._proposals = Proposals(nodes, self._state, self._gain, forgetting, tie)

    @property
    def candidates(self) -> Candidates:
        """The hyperplanes that may cut the leaves, and what they have counted."""
        return self._state.candidates

    @property
    def recent(self) -> Reservoir:
        """The recent samples of the leaves."""
        return self._state.recent

    def keys(self, X: FloatArray, held: BoolArray) -> IntArray:
        """Twice the leaf, plus the side of its candidate."""
        return self.candidates.cells(X, self._nodes.tree.leaf_of(held))

    def count(self, learned: LearnedBatch, held: BoolArray, groups: Groups, moments: Moments) -> None:
        self._state.count(learned, held, groups, moments)

    def change(self, sample: LearnedSample, sign: int, weight: float) -> None:
        self._state.change(sample, sign, weight)

    def weigh(self, shares: Shares) -> None:
        if self._full:
            self._state.worth.learn(shares, self._nodes.mixture, self._nodes.tree)

    def fade(self, factor: float) -> None:
        self._state.fade(factor)

    def grow(self, before: int, after: int) -> None:
        due = self._due(self._state.fresh, CHECK_GROWTH)
        if due.size:
            self._state.fresh[due] = 0
            self._state.priors.choose(due)
            if self._config.max_nodes > 1:
                self._consider(due[self._nodes.tree.leaf[due]], after)
        if self._config.split != "evidence":
            for _ in range(splits_due(self._config.beta, before, after)):
                self._split_most_separated(after)

    def begin_warm(self, n_learned: int) -> None:
        self.candidates.since[:] = 0
        self.recent.begin_warm(n_learned)

    def newest(self, n: int) -> FloatArray:
        return self.recent.x[-n:]

    def follow(self) -> None:
        self._state.priors.follow()

    @property
    def _full(self) -> bool:
        return self._nodes.tree.n_nodes + 2 > self._config.max_nodes

    def _due(self, fresh: FloatArray, growth: tuple[float, float]) -> IntArray:
        """The nodes that have grown by the shares growth, fresh (N,) being what is new."""
        count = self._nodes.statistics.count
        rate = np.where(count < SLOW, *growth)
        return np.flatnonzero((count >= 2) & (fresh > 0) & (fresh >= rate * np.maximum(count - fresh, 0.0)))

    def _consider(self, leaves: IntArray, n_learned: int) -> None:
        """Cut the leaves whose gain is above 0; search the others for a better candidate."""
        unsearched = set(self._due(self._state.unsearched, SEARCH_GROWTH).tolist())
        gains = self._gain.of_candidates(self.candidates, leaves)
        for i, leaf in enumerate(leaves.tolist()):
            gain = float(gains[i])
            if not self._nodes.tree.leaf[leaf]:
                continue
            if gain <= 0 and (leaf in unsearched or not self.candidates.has[leaf]):
                gain = self._proposals.search(leaf, gain)
            if gain > 0 and self._config.split != "scheduled" and self._split(leaf, gain, n_learned):
                gains = self._gain.of_candidates(self.candidates, leaves)  # at the cap a split takes numbers of others

    def _split_most_separated(self, n_learned: int) -> None:
        """Cut the leaf of the largest ratio, eq. (8), with the means of its candidate's sides as centroids."""
        tree = self._nodes.tree
        leaves = np.flatnonzero(tree.leaf & self.candidates.has)
        leaves = leaves[self.candidates.sizes(leaves).min(1) >= self._gain.least]
        if leaves.size and not self._full:
            left, right = self.candidates.sides(leaves)
            between = left.mean - right.mean
            between[:, : self._nodes.statistics.n_block] /= self._nodes.spread[self._nodes.layout.block]
            gap = np.linalg.norm(between, axis=1) / 2.0 ** tree.level[leaves]
            self._split(int(leaves[gap.argmax()]), 0.0, n_learned)

    def _split(self, leaf: int, gain: float, n_learned: int) -> bool:
        """Cut a leaf by its candidate, if there is room; whether it was cut."""
        free = None
        if self._full and (free := self._room_for(leaf, gain, n_learned)) is None:
            return False
        pair, left_share = self._state.split(leaf, gain, free)
        self._state.priors.choose(pair.children)
        self._nodes.mixture.split(pair, self._config.xi, left_share)
        return True

    def _room_for(self, leaf: int, gain: float, n_learned: int) -> Pair | None:
        """Give up a pair for this leaf's cut, if the cut promises enough more; the pair, or None."""
        worth = self._state.worth
        offer = cheapest(self._nodes.tree, worth, leaf)
        if offer is None:
            return None
        have = float(self.candidates.sizes(np.array([leaf])).sum())
        if gain / have * float(worth.used[leaf]) < EXCHANGE * offer.price:
            return None
        if offer.idle is None:
            self._state.collapse(offer.pair)
        else:
            self._state.lift(offer.pair, offer.idle, n_learned)
        return offer.pair

    def state(self) -> dict[str, NDArray[Any]]:
        return self._state.arrays()

    def check(self, arrays: Arrays, times_cut: IntArray, n_learned: int) -> None:
        self._state.check(arrays, times_cut, n_learned)

    def load(self, arrays: Arrays) -> None:
        self._state.load(arrays)
