"""The density estimate: a tree of subspaces, a density per node, their mixture, and when they learn (Alg. 2).

Learning goes by rounds. Inside a round the model is frozen: every sample is scored by it, and which nodes and which
sides of their 2-means will count the sample is known when it is scored. At the round's end all its samples are learned
at once. Rounds end by the number of learned samples alone, never by how a caller cut its batches; a round of one sample
is the paper's algorithm.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.families import family_of
from core.families.base import Prior
from core.families.gaussian_nodes import posterior
from core.mixture import MIXTURES
from core.snapshot import Arrays, take
from core.splitting import most_separated, splits_due
from core.statistics import Statistics
from core.tree import LEFT, RIGHT, SubspaceTree

CLIP_SCALES: Final = 32.0
"""Samples are learned cut at this many scales (or root deviations, if larger) from the root's mean: what is learned can
be subtracted again, and one outlier of 1e15 does not blind the model."""
VARIANCE_FLOOR: Final = 1e-4
CHILD_SHAPE: Final = 0.2
"""A warm child's prior covariance as a share of its parent's covariance."""
LEAST_SIDE_COUNT: Final = 2
_LARGEST: Final = {"count": 2.0**53, "sum": 1e117, "scatter": 1e217, "covariance": 1e217, "mixture": 1e217}
_LARGEST_SAMPLE: Final = 1e101
"""Bounds on what a snapshot may hold, a little above what scaled samples, at most 1e100, can add up to."""


@dataclass(slots=True)
class Examined:
    """What the frozen model says of n samples, and what will be learned of them.

    log_density (n, N); counted and left (n, N): the nodes that hold each sample, and on which side of their 2-means it
    falls; learned (n, m): the sample as it enters the statistics; spread (n, m): the variance of what was imputed.
    """

    Z: FloatArray
    log_density: FloatArray
    counted: BoolArray
    left: BoolArray
    learned: FloatArray
    spread: FloatArray

    @property
    def altered(self) -> BoolArray:
        """Which samples are not learned as they are, (n,): clipped or imputed ones (NaN differs from what fills it)."""
        different: BoolArray = (self.learned != self.Z).any(1)
        return different

    def rows(self, chosen: Any) -> "Examined":
        """The chosen rows (a slice, mask or index array)."""
        return Examined(*(getattr(self, name)[chosen] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Receipt:
    """How one sample was learned: in which round, by which of the nodes there were, on which sides, and as what."""

    round_number: int
    counted: BoolArray
    left: BoolArray
    learned: FloatArray
    spread: FloatArray


class DensityModel:
    """Density over scaled samples Z (n, m); NaN stands for a missing feature."""

    def __init__(self, config: DetectorConfig) -> None:
        m = config.n_features
        family = family_of(config)
        self.config = config
        self.n_learned = 0
        self.round_number = 1
        self.tree = SubspaceTree(m)
        self.mixture = MIXTURES[config.mixture]()
        self._statistics = Statistics(1, m, diagonal=family.diagonal)
        self._sides = tuple(Statistics(1, m, diagonal=family.diagonal) for _ in (LEFT, RIGHT))
        unit = np.ones((1, m)) if family.diagonal else np.eye(m)[None]
        self._prior = Prior(config.prior_count, np.zeros((1, m)), unit, VARIANCE_FLOOR if config.warm_children else 0.0)
        self._pending: list[Examined] = []
        self._n_pending = 0
        self.densities = family.nodes(predictive=config.warm_children)
        self._estimate(np.zeros(1, np.int64))

    @property
    def weights(self) -> FloatArray:
        """alpha, (N,), summing to one."""
        return self.mixture.weights

    @property
    def counts(self) -> FloatArray:
        """Samples that each node has counted, (N,)."""
        return self._statistics.count

    @property
    def room(self) -> int:
        """How many more samples the present round takes, at least one."""
        size = int(self.n_learned * self.config.round_growth)
        return min(max(size, 1), self.config.max_round) - self._n_pending

    def log_density(self, Z: FloatArray) -> FloatArray:
        """log p of each sample, (n,): ITAN eq. mixture in the log domain. Pure."""
        return self.mixture.log_p(self._impute(Z)[0])

    def examine(self, Z: FloatArray) -> Examined:
        """Score samples by the frozen model, and see how it would learn them. Pure."""
        log_density, filled, spread = self._impute(Z)
        learned = self._clipped(filled)
        counted, left = self.tree.locate(learned)
        return Examined(Z, log_density, counted, left, learned, spread)

    def learn(self, examined: Examined) -> None:
        """Take samples, at most as many as there is room for, into the round; learn it when it is full."""
        self._pending.append(examined)
        self._n_pending += len(examined.Z)
        if self.room <= 0:
            self.end_round()

    def end_round(self) -> None:
        """Learn what is pending: weights first, by the densities before, then statistics, centroids and splits."""
        if self._n_pending == 0:
            return
        batch = self._pending[0] if len(self._pending) == 1 else _concatenated(self._pending)
        self._pending, self._n_pending = [], 0
        self.mixture.learn(batch.log_density)
        self._count(batch)
        before, self.n_learned = self.n_learned, self.n_learned + len(batch.Z)
        new_nodes = self._split_on_schedule(before)
        self._estimate(np.concatenate([np.flatnonzero(batch.counted.any(0)), new_nodes]))
        self.round_number += 1

    def retract(self, receipt: Receipt) -> None:
        """Take a sample out of every node and side that counted it, and of the children that inherited that side.

        The statistics become those of a run that never saw it; tree and weights stay. Ends the round first.
        """
        self.end_round()
        self._apply(receipt, -1)

    def restore(self, receipt: Receipt) -> None:
        """Undo a retraction. Ends the round first."""
        self.end_round()
        self._apply(receipt, +1)

    def _impute(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Expected log densities (n, N), and samples with what is missing filled in, and the variance of that."""
        missing = np.isnan(Z)
        if not missing.any():
            return self.densities.log_density(Z), Z, np.zeros(Z.shape)
        incomplete = missing.any(1)
        log_density = np.empty((len(Z), self.tree.n_nodes))
        log_density[~incomplete] = self.densities.log_density(Z[~incomplete])
        filled, spread = Z.copy(), np.zeros_like(Z)
        for pattern in np.unique(missing[incomplete], axis=0):
            rows = np.flatnonzero((missing == pattern).all(1))
            log_density[rows], filled[np.ix_(rows, pattern)], spread[np.ix_(rows, pattern)] = self._fill(
                Z[rows], pattern
            )
        return log_density, filled, spread

    def _fill(self, Z: FloatArray, pattern: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Expected log densities; mean and variance, under the mixture, of what is missing given the rest."""
        given = self.densities.conditional(Z, pattern)
        log_p = self.mixture.log_p(given.known)
        share = np.exp(given.known + np.log(self.weights) - log_p[:, None])[:, :, None]
        mean = (share * given.mean).sum(1)
        variance = (share * (given.variance + (given.mean - mean[:, None]) ** 2)).sum(1)
        return given.log_density, mean, variance

    def _clipped(self, Z: FloatArray) -> FloatArray:
        return np.minimum(np.maximum(Z, self._lowest), self._highest) if self.config.warm_children else Z

    def _count(self, batch: Examined) -> None:
        spread = batch.spread if batch.spread.any() else None
        self._statistics.add(batch.counted.astype(float), batch.learned, spread)
        if self.config.warm_children:
            for side, taken in zip(self._sides, (batch.left, ~batch.left), strict=True):
                side.add((batch.counted & taken).astype(float), batch.learned, spread)
        self.tree.move_centroids(batch.counted, batch.left, batch.learned)

    def _estimate(self, nodes: IntArray) -> None:
        self.densities.update(self._statistics, self._prior, nodes)
        mean, deviation = self.densities.root_moments()
        reach = CLIP_SCALES * np.maximum(1.0, deviation)
        self._lowest, self._highest = mean - reach, mean + reach

    def _split_on_schedule(self, before: int) -> IntArray:
        """Split once for each scheduled point that the round has passed; the numbers of the new nodes."""
        n_nodes = self.tree.n_nodes
        for _ in range(splits_due(self.config.beta, before, self.n_learned)):
            node = most_separated(self.tree.separation(), self._splittable())
            if node is not None and self.tree.n_nodes + 2 <= self.config.max_nodes:
                self._split(node)
        return np.arange(n_nodes, self.tree.n_nodes)

    def _splittable(self) -> BoolArray:
        """Warm children need samples to start from; the paper's start empty."""
        if not self.config.warm_children:
            return np.ones(self.tree.n_nodes, bool)
        enough: BoolArray = np.minimum(*(s.count for s in self._sides)) >= LEAST_SIDE_COUNT
        return enough

    def _split(self, node: int) -> None:
        children = self.tree.split(node, self.round_number)
        for group in (self._statistics, *self._sides):
            group.grow(self.tree.n_nodes)
        self._prior.mean = grown(self._prior.mean, self.tree.n_nodes)
        self._prior.covariance = grown(self._prior.covariance, self.tree.n_nodes)
        start = self._start_warm if self.config.warm_children else self._start_empty
        for side, child in zip(self._sides, (children.left, children.right), strict=True):
            start(node, child, side)
        left, right = (max(side.count[node], 1.0) for side in self._sides)
        self.mixture.split(node, self.config.xi, left / (left + right))

    def _start_empty(self, node: int, child: int, side: Statistics) -> None:
        """Alg. 2: the child knows the prior only."""
        self._prior.covariance[child] = self._prior.covariance[0]

    def _start_warm(self, node: int, child: int, side: Statistics) -> None:
        """The child inherits its side's samples; its 2-means starts along its principal axis, or it never separates."""
        side.copy_cell(node, self._statistics, child)
        mean = side.mean[node]
        self._prior.mean[child] = mean
        self._prior.covariance[child] = CHILD_SHAPE * posterior(self._statistics, self._prior, np.array([node]))[1][0]
        axis = self._statistics.principal_axis(child)
        self.tree.seed_centroids(child, mean + axis, mean - axis)

    def _apply(self, receipt: Receipt, sign: int) -> None:
        held = np.flatnonzero(receipt.counted)
        left = receipt.left[held]
        heirs = self._heirs(receipt)
        self._change(self._statistics, np.concatenate([held, heirs]), receipt, sign)
        if self.config.warm_children:
            self._change(self._sides[LEFT], held[left], receipt, sign)
            self._change(self._sides[RIGHT], held[~left], receipt, sign)
        self.tree.change_centroids(held, left, receipt.learned, sign)
        self._estimate(np.concatenate([held, heirs]))

    def _change(self, statistics: Statistics, cells: IntArray, receipt: Receipt, sign: int) -> None:
        change = statistics.remove if sign < 0 else statistics.insert
        change(cells, receipt.learned, receipt.spread)

    def _heirs(self, receipt: Receipt) -> IntArray:
        """Warm children made since then that inherited the side that counted the sample."""
        if not self.config.warm_children:
            return np.zeros(0, np.int64)
        tree, known = self.tree, len(receipt.counted)
        parent = np.where((tree.parent >= 0) & (tree.parent < known), tree.parent, 0)
        same_side = receipt.left[parent] == (tree.side == LEFT)
        return np.flatnonzero(
            (tree.born >= receipt.round_number) & receipt.counted[parent] & same_side & (tree.parent < known)
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        arrays: dict[str, NDArray[Any]] = {
            "progress": np.array([self.n_learned, self.round_number]),
            "pending": np.concatenate([np.zeros((0, self.config.n_features)), *(e.Z for e in self._pending)]),
            "weights": self.weights,
            "mixture": self.mixture.running,
            "prior_mean": self._prior.mean,
            "prior_covariance": self._prior.covariance,
        }
        arrays |= {f"tree_{name}": array for name, array in self.tree.state().items()}
        for group, name in zip((self._statistics, *self._sides), _GROUPS, strict=True):
            arrays |= {f"{name}_{field}": getattr(group, field) for field in Statistics.FIELDS}
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Take over a state; InvalidSnapshot if its arrays do not fit together."""
        self.n_learned, self.round_number = (int(v) for v in take(arrays, "progress", np.int64, (2,)))
        self.tree.load(arrays)
        n, m = self.tree.n_nodes, self.config.n_features
        shape = (m,) if self._statistics.diagonal else (m, m)
        self.mixture.weights = take(arrays, "weights", np.float64, (n,))
        self.mixture.running = take(arrays, "mixture", np.float64, self.mixture.running.shape)
        self._prior.mean = take(arrays, "prior_mean", np.float64, (n, m))
        self._prior.covariance = take(arrays, "prior_covariance", np.float64, (n, *shape))
        for group, name in zip((self._statistics, *self._sides), _GROUPS, strict=True):
            for field, tail in zip(Statistics.FIELDS, ((), (m,), shape), strict=True):
                setattr(group, field, take(arrays, f"{name}_{field}", np.float64, (n, *tail)))
        pending = take(arrays, "pending", np.float64, (-1, m))
        self._pending, self._n_pending = [], len(pending)
        self._check_progress()
        self._check_numbers(pending)
        self._estimate(np.arange(n))
        if len(pending):
            self._pending = [self.examine(pending)]

    def _check_progress(self) -> None:
        """InvalidSnapshot for what no learning leads to; a round without room would never end."""
        ordered = 0 <= self.n_learned < 2**53 and 1 <= self.round_number <= self.n_learned + 1
        born = ((self.tree.born >= 0) & (self.tree.born <= self.round_number)).all()
        if not (ordered and born and self.room > 0 and self.tree.n_nodes <= self.config.max_nodes):
            raise InvalidSnapshot("its progress is not that of a model")

    def _check_numbers(self, pending: FloatArray) -> None:
        """InvalidSnapshot for numbers that would spoil every score."""
        for name, array in self.state().items():
            if (np.abs(array) > _LARGEST.get(name.split("_")[-1], _LARGEST_SAMPLE)).any():
                raise InvalidSnapshot(f"its array {name!r} holds a number that is too large")
        if (np.abs(pending) > _LARGEST_SAMPLE).any() or np.isnan(pending).all(1).any():
            raise InvalidSnapshot("its pending samples are not samples")
        weights = self.weights
        if (weights <= 0).any() or abs(weights.sum() - 1) > 1e-9 or self.mixture.running[0] < 0:
            raise InvalidSnapshot("its weights are not those of a mixture")
        groups = self._statistics, *self._sides
        prior, *scatters = (self._diagonals(a) for a in (self._prior.covariance, *(g.scatter for g in groups)))
        positive = (prior > CHILD_SHAPE * VARIANCE_FLOOR / 2).all() and all((s >= 0).all() for s in scatters)
        if not positive or any((g.count < 0).any() for g in groups):
            raise InvalidSnapshot("its counts or variances are negative")

    def _diagonals(self, matrices: FloatArray) -> FloatArray:
        return matrices if self._statistics.diagonal else np.einsum("nii->ni", matrices)


_GROUPS: Final = ("node", "left", "right")


def _concatenated(parts: list[Examined]) -> Examined:
    return Examined(*(np.concatenate([getattr(p, name) for p in parts]) for name in Examined.__slots__))
