"""Better candidates for a leaf, found among its recent samples."""

from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.statistics import Moments, moments_of, outer
from core.forgetting import Forgetting
from core.growth.evidence.gain import Gain
from core.growth.evidence.screening import ConditionalScreen, Screen, SideEvidence
from core.growth.evidence.search import Hyperplanes, Judge, best_hyperplane
from core.growth.evidence.state import GrowthState
from core.mixture.learned import Groups
from core.mixture.nodes import Nodes

ROUNDING: Final = 1e-9
"""Nats a sample that a new hyperplane must be better by: of two that part the samples alike the older one stays."""


class Proposals:
    """Searches leaves for hyperplanes, and takes a new one as the candidate if it promises more.

    tie is by how many nats a sample hyperplanes may differ and be equally good: with another unit they round otherwise.
    """

    def __init__(self, nodes: Nodes, state: GrowthState, gain: Gain, forgetting: Forgetting, tie: float) -> None:
        self._nodes, self._state, self._gain, self._forgetting = nodes, state, gain, forgetting
        self._tie = tie

    def search(self, leaf: int, gain: float) -> float:
        """Search a leaf whose candidate has this gain, -inf without one; the gain of its candidate afterwards."""
        rows = self._state.recent.of(leaf)
        if len(rows) < 2 * self._gain.least:
            return gain
        self._state.unsearched[leaf] = 0
        plane = self._best(leaf, rows)
        return gain if plane is None else self._propose(leaf, plane, rows, gain)

    def _best(self, leaf: int, rows: IntArray) -> Hyperplanes | None:
        """The best hyperplane that parts these recent samples, if any."""
        nodes, layout, recent, at = self._nodes, self._nodes.layout, self._state.recent, np.array([leaf])
        x, covariance = recent.x[rows], nodes.covariance(at)
        columns, _ = layout.columns(x, recent.spread[rows])
        screen, diagonal = self._screen(columns, leaf, rows), nodes.statistics.diagonal
        extent, least, tie = nodes.extent(x, covariance[0]), self._gain.least, self._tie * len(x)
        if (nodes.spread == 1).all():
            return best_hyperplane(x, extent, least, screen, layout.apart, tie)
        extent = extent / outer(nodes.spread[None], diagonal)[0]
        plane = best_hyperplane(x / nodes.spread, extent, least, screen, layout.apart, tie)
        return None if plane is None else plane.stretched(nodes.spread)

    def _screen(self, columns: FloatArray, leaf: int, rows: IntArray) -> Judge:
        """What judges cuts of a leaf's columns (n, width)."""
        nodes, at = self._nodes, np.array([leaf])
        everything = self._screen_of(columns, at, slice(nodes.statistics.n_block))
        if not nodes.context.size:
            return everything
        context = self._screen_of(columns, at, nodes.block_context)
        return ConditionalScreen(everything, context, self._gain.doubt(leaf, rows))

    def _screen_of(
        self, columns: FloatArray, at: IntArray, block: slice | IntArray, only: IntArray | None = None
    ) -> Screen:
        """The screen of a part of the block, and of the factors of some features, all if not given."""
        nodes, layout, priors = self._nodes, self._nodes.layout, self._state.priors
        apart = SideEvidence(layout, columns, nodes.known_apart(at), only) if layout.factors else None
        expected, floor = priors.of_child(priors.own(at))[0][block], nodes.prior.floor[block]
        return Screen(columns[:, block], expected, floor, apart, diagonal=nodes.statistics.diagonal)

    def _propose(self, leaf: int, plane: Hyperplanes, rows: IntArray, gain: float) -> float:
        """Take a hyperplane as the leaf's candidate if it promises more than the gain of the present one."""
        candidates, at = self._state.candidates, np.array([leaf])
        sides = self._sides(plane, rows)
        if len(sides.count) < 2 or sides.count.min() < self._gain.least:
            return gain
        promise = float(self._gain.of_sides(at, [plane], _one(sides, 0), _one(sides, 1))[0])
        have = float(candidates.sizes(at).sum())
        if np.isfinite(gain) and promise <= 0 and promise / float(sides.count.sum()) <= gain / have + ROUNDING:
            return gain
        candidates.put(leaf, plane, int(self._state.recent.window[leaf]), sides)
        return promise

    def _sides(self, plane: Hyperplanes, rows: IntArray) -> Moments:
        """The moments of the recent samples on each side of a hyperplane, left first."""
        recent = self._state.recent
        weight = self._forgetting.weight(recent.moment[rows])
        groups = Groups.by((~plane.left(recent.x[rows])[:, 0]).astype(np.int64))
        rows = rows[groups.order]
        x, spread = self._nodes.layout.columns(recent.x[rows], recent.spread[rows])
        return moments_of(x, spread, weight[groups.order], groups.first, diagonal=self._nodes.statistics.diagonal)


def _one(moments: Moments, i: int) -> Moments:
    return Moments(moments.count[[i]], moments.mean[[i]], moments.scatter[[i]])
