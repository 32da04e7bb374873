"""The nodes of the mixture: their subspaces, and what each has counted, its prior, density and weight."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown, packed, packed_width, unpacked, variances
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.families import Layout, family_of
from core.families.base import NodeDensities, Prior
from core.families.posterior import posterior
from core.families.statistics import Moments, Statistics
from core.mixture import mixture_of
from core.mixture.learned import LearnedSample
from core.snapshot import Arrays, take
from core.tree.subspaces import Pair, SubspaceTree

VARIANCE_FLOOR: Final = 1e-4
"""The least variance of a feature, in the scaled space, for duplicates and constant features. Chosen by hand; section
10 of docs/method.md has the loss without it."""
SPREADS: Final = (1e-40, 1e40)
"""Range of spreads in the scaled space: squares of samples, over the least variances, stay far from overflow."""
LEAST_STRENGTH: Final = 1e-3
MOST_STRENGTH: Final = 1e3
"""Range of a prior's pseudo-samples in a snapshot: all that a config allows, or the evidence chooses among."""


class Nodes:
    """N nodes; node 0 is the root. Densities stand still until refresh.

    spread (m,) is the usual size of each feature's differences in the scaled space, which measures least variances, and
    most_spread (m,) what it was at first. coarse (m,) tells where, beside other values, most are equal; spread is that
    of the others. context (c,) are the columns that are not scored, block_context their places in the block.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.layout = layout = Layout(config.column_kinds)
        b = len(layout.block)
        family = family_of(config)
        predictive = config.profile != "paper"
        self.tree = SubspaceTree(config.n_columns)
        self.mixture = mixture_of(config, self.tree)
        self.statistics = Statistics(1, b, diagonal=family.diagonal, n_apart=layout.n_apart)
        unit = np.ones((1, b)) if family.diagonal else np.eye(b)[None]
        count, mean = np.full(1, config.prior_count), np.concatenate([np.zeros(b), layout.start()])[None]
        self.prior = Prior(count, mean, count.copy(), unit, np.zeros(b))
        self.spread, self.coarse = np.ones(config.n_columns), np.zeros(config.n_columns, bool)
        self.most_spread = np.ones(config.n_columns)
        self._has_floor = predictive
        self.densities = family.nodes(predictive=predictive)
        self._stale, self._current = np.ones(1, bool), False
        self.context, self._n_values = np.array(config.context, np.int64), len(config.values)
        self.block_context = np.flatnonzero(np.isin(layout.block, self.context))
        self._of_context: NodeDensities | None = None
        self._set_floor()

    @property
    def of_context(self) -> NodeDensities:
        """The densities of the context alone, by the columns context (c,), as of the last refresh."""
        if self._of_context is None:
            self._of_context = self.densities.marginal(self.context.tolist())
        return self._of_context

    def count(self, held: BoolArray, groups: Moments) -> None:
        """Count g groups of samples in the nodes held (g, N) that hold them."""
        cell, group = np.nonzero(held.T)
        starts = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]]))
        cells = cell[starts]
        self.statistics.merge(cells, groups.pooled(group, starts))
        self.touch(cells)

    def change(self, sample: LearnedSample, sign: int, weight: float) -> None:
        """Take one sample out of (sign -1) or back into (sign +1) the nodes that counted it, with its weight now."""
        cells = self.tree.counting(sample.x, sample.ordinal)
        change = self.statistics.remove if sign < 0 else self.statistics.insert
        x, spread = self.layout.columns(sample.x[None], sample.spread[None])
        change(cells, x[0], spread[0], weight)
        self.touch(cells)

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far by a factor, 0 to 1."""
        if factor != 1.0:
            self.statistics.fade(factor)
            self.touch(slice(None))

    def covariance(self, nodes: IntArray) -> FloatArray:
        """The covariances of these nodes' blocks, eq. (5): (k, b, b), or (k, b) when diagonal."""
        return posterior(self.statistics, self.prior, nodes)[1]

    def cut(self, node: int, normal: FloatArray, offset: float, since: int, free: Pair | None = None) -> Pair:
        """Cut a node by a unit normal (m,) and offset. Its children start empty and count from ordinal since on.

        They take the numbers of the pair free, which was given up, or new ones.
        """
        pair = self.tree.split(node, normal, offset, since, free)
        self._grow()
        self.touch(pair.children)
        return pair

    def expect(self, location: FloatArray, spread: FloatArray) -> None:
        """Set what the root expects of its factors, from medians and spreads (m,) of the warm-up's coordinates."""
        self.prior.mean[0, len(self.layout.block) :] = self.layout.expecting(location, spread)
        self.touch(0)

    def inherit(self, pair: Pair, sides: Moments, mean_count: float) -> None:
        """Give new children what their sides have counted.

        They expect the block's mean to be that of their side, for mean_count pseudo-samples, and of the factors what
        their parent has learned.
        """
        at, b = np.array([pair.node]), len(self.layout.block)
        self.statistics.put(pair.children, sides)
        self.prior.mean[pair.children, :b], self.prior.mean_count[pair.children] = sides.mean[:, :b], mean_count
        self.prior.mean[pair.children, b:] = self.known_apart(at)

    def known_apart(self, nodes: IntArray) -> FloatArray:
        """What these nodes have learned to expect of their factors' columns: (k, n_apart)."""
        statistics, b = self.statistics, len(self.layout.block)
        return self.layout.posterior(statistics.count[nodes], statistics.mean[nodes], self.prior.mean[nodes, b:])

    def evidence_apart(self, leaves: IntArray, parts: list[Moments], only: IntArray | None = None) -> FloatArray:
        """Log marginal likelihoods (3 k,) of the factors, in nats: of k whole leaves, then their left and right sides.

        A leaf expects what its prior says; its sides expect what the leaf has learned. only are the features whose
        factors count, all if not given.
        """
        count, mean = np.concatenate([p.count for p in parts]), np.concatenate([p.mean for p in parts])
        learned = self.known_apart(leaves)
        expected = np.concatenate([self.prior.mean[leaves, len(self.layout.block) :], learned, learned])
        return self.layout.log_evidence(count, mean, expected, only)

    def extent(self, X: FloatArray, covariance: FloatArray) -> FloatArray:
        """The covariance of a leaf's samples (n, m) over all features, (m, m) or (m,), given that of its block.

        Without factors it is the block's own; with factors it is that of the samples, plus the least variance.
        """
        if not self.layout.factors:
            return covariance
        off = X - X.mean(0)
        if self.statistics.diagonal:
            variance: FloatArray = (off * off).mean(0) + self._least_variance
            return variance
        whole: FloatArray = off.T @ off / len(X) + np.diag(self._least_variance)
        return whole

    @property
    def _least_variance(self) -> FloatArray:
        return least_variance(self.spread, self.coarse)

    def lift(self, pair: Pair, child: int, since: int) -> None:
        """Move one child's subtree into its parent's place, counting from ordinal since on; its sibling goes."""
        self.mixture.lift(pair, child)
        self.tree.lift(pair, child, since)
        at, source = np.array([pair.node]), np.array([child])
        self.statistics.put(at, self.statistics.of(source))
        for name in Prior.ARRAYS:
            getattr(self.prior, name)[at] = getattr(self.prior, name)[source]
        self.touch(pair.node)

    def tell(self, told: dict[int, tuple[float, bool]]) -> bool:
        """Take the spread of some features, by number, for that of the values that differ, and whether it is coarse.

        Returns whether that is new.
        """
        before = self.spread.copy(), self.coarse.copy()
        for feature, (spread, coarse) in told.items():
            self.spread[feature] = self.most_spread[feature] = min(max(spread, SPREADS[0]), SPREADS[1])
            self.coarse[feature] = coarse and self._n_values > 1
        self._set_floor()
        return not (np.array_equal(before[0], self.spread) and np.array_equal(before[1], self.coarse))

    def follow(self, moved: dict[int, float]) -> None:
        """Take the spread of some features, by number, for that of all values."""
        for feature, spread in moved.items():
            self.spread[feature], self.coarse[feature] = max(spread, SPREADS[0]), False
        self._set_floor()

    def _set_floor(self) -> None:
        if self._has_floor:
            self.prior.floor = self._least_variance[self.layout.block]
        self.touch(slice(None))

    def touch(self, nodes: Any) -> None:
        """Mark nodes whose prior or statistics have changed."""
        self._stale[nodes] = True
        self._current = False

    def refresh(self) -> None:
        """Estimate the densities of marked nodes anew."""
        if not self._current:
            self._current, self._of_context = True, None
            self.densities.update(self.statistics, self.prior, np.flatnonzero(self._stale))
            self._stale[:] = False

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        arrays = self.tree.state() | {"mixture": self.mixture.running, "weights": self.mixture.weights}
        arrays |= {f"prior_{name}": getattr(self.prior, name) for name in Prior.ARRAYS}
        arrays["prior_scale"] = packed(self.prior.scale)
        return arrays | self.spreads() | self.statistics.state("node")

    def spreads(self) -> dict[str, NDArray[Any]]:
        """What is kept of the spreads, by name."""
        return {"node_spread": self.spread, "node_most_spread": self.most_spread, "node_coarse": self.coarse}

    def check(self, arrays: Arrays) -> IntArray:
        """How often each node of a state is cut, (N,). Raises InvalidSnapshot if its arrays do not fit together."""
        times_cut = self.tree.check(arrays)
        n, b = len(times_cut), self.statistics.n_block
        self.statistics.check(arrays, "node", n)
        self.mixture.check(take(arrays, "mixture", np.float64, (-1,)), n)
        weights = take(arrays, "weights", np.float64, (n,))
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
            raise InvalidSnapshot("its weights are not those of a mixture")
        take(arrays, "prior_mean", np.float64, (n, self.prior.mean.shape[1]))
        scale = take(arrays, "prior_scale", np.float64, (n, packed_width(b, self.statistics.diagonal)))
        counts = [take(arrays, f"prior_{name}", np.float64, (n,)) for name in ("mean_count", "strength")]
        if (variances(scale, b) < 0.5 * self.floor_of(arrays)).any():
            raise InvalidSnapshot("its prior's scale is below the least variance")
        if any(((count < LEAST_STRENGTH) | (count > MOST_STRENGTH)).any() for count in counts):
            raise InvalidSnapshot("its prior counts more or less than a prior can")
        return times_cut

    def floor_of(self, arrays: Arrays) -> FloatArray:
        """The least variances (b,) of a state. Raises InvalidSnapshot if no samples could have told its spreads."""
        spread, most = (take(arrays, f"node_{k}", np.float64, self.spread.shape) for k in ("spread", "most_spread"))
        fits = (SPREADS[0] <= spread) & (spread <= most) & (most <= SPREADS[1])
        if not fits.all() or (np.delete(most, self.layout.block) != 1).any():
            raise InvalidSnapshot("its spreads are out of range")
        coarse = take(arrays, "node_coarse", np.bool_, self.coarse.shape)
        return least_variance(spread, coarse)[self.layout.block]

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.tree.load(arrays)
        self._grow()
        for name in Prior.ARRAYS:
            rows = arrays[f"prior_{name}"]
            setattr(self.prior, name, unpacked(rows, self.prior.scale) if name == "scale" else rows)
        self.statistics.load(arrays, "node")
        self.spread, self.coarse = arrays["node_spread"], arrays["node_coarse"]
        self.most_spread = arrays["node_most_spread"]
        self.mixture.restore(arrays["mixture"], arrays["weights"])
        self._set_floor()

    def _grow(self) -> None:
        n = self.tree.n_nodes
        self.statistics.grow(n)
        self.prior.grow(n)
        self._stale = grown(self._stale, n)


def least_variance(spread: FloatArray, coarse: BoolArray) -> FloatArray:
    """The least variances (m,) of features with these spreads (m,), which most of their values share if coarse (m,).

    A smaller one would make that one value so likely that all others stand out, and hide what other features say.
    """
    variance: FloatArray = np.where(coarse, 1.0, VARIANCE_FLOOR) * spread**2
    return variance
