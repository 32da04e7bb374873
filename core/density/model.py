"""The density estimate: a tree of subspaces, a density per node, their mixture, and when they learn (Alg. 2).

Learning goes by rounds. Inside a round the model is frozen: every sample is scored by it, and what will be learned of
the sample is known when it is scored. At the round's end all its samples are learned at once. Rounds end by the number
of learned samples alone, never by how a caller cut its batches; a round of one sample is the paper's algorithm.
"""

from math import isnan, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray
from core.config import DetectorConfig
from core.density.forgetting import Forgetting
from core.density.receipt import Groups, Learned, Receipt
from core.density.round import Examined, Round
from core.errors import InvalidSnapshot
from core.families.base import NodeDensities
from core.families.statistics import moments_of
from core.feedback.labelled import LabelledSamples
from core.mixture import Mixture
from core.mixture.log_sum import LEAST_WEIGHT, log_sum_exp
from core.scaling import LIMIT
from core.sizes import LARGEST_SAMPLE
from core.snapshot import Arrays, take
from core.tree.evidence.growth import EvidenceGrowth
from core.tree.growth import Growth
from core.tree.nodes import Nodes
from core.tree.schedule.growth import ScheduledGrowth
from core.tree.subspaces import SubspaceTree

REACH: Final = 5.0
"""Samples are learned drawn in to sqrt(m) + REACH deviations of the root: what is learned can be subtracted again, and
one outlier of 1e15 does not blind the model."""


class DensityModel:
    """Density over scaled samples Z (n, m); NaN stands for a missing feature."""

    def __init__(self, config: DetectorConfig) -> None:
        self.config = config
        self.n_learned = 0
        self.nodes = Nodes(config)
        self._forgetting = Forgetting(config)
        self._growth: Growth = (
            ScheduledGrowth(config, self.nodes)
            if config.profile == "paper"
            else EvidenceGrowth(config, self.nodes, self._forgetting)
        )
        self._reach = sqrt(config.n_features) + REACH if config.profile != "paper" else None
        self._round = Round()
        self._labelled: LabelledSamples | None = None
        self._log_weights: FloatArray | None = None

    @property
    def tree(self) -> SubspaceTree:
        """The subspaces."""
        return self.nodes.tree

    @property
    def mixture(self) -> Mixture:
        """The weights."""
        return self.nodes.mixture

    @property
    def densities(self) -> NodeDensities:
        """The frozen densities of the nodes."""
        self.nodes.refresh()
        return self.nodes.densities

    @property
    def weights(self) -> FloatArray:
        """alpha, (N,), summing to one."""
        return self.mixture.weights

    @property
    def log_weights(self) -> FloatArray:
        """Logs of the weights that score, (N,): alpha, times how likely a node's samples are normal, normalised."""
        if self._log_weights is None:
            self._log_weights = self.mixture.log_weights
            if self._labelled is not None:
                weights = self.weights * self._labelled.normality(self.tree, self.counts)
                self._log_weights = np.log(np.maximum(weights / weights.sum(), LEAST_WEIGHT))
        return self._log_weights

    def weigh_normality(self, labelled: LabelledSamples) -> None:
        """Score by the density of normals, as far as labels and rarity tell it; call when labels change."""
        self._labelled, self._log_weights = labelled, None

    def log_p(self, log_density: FloatArray) -> FloatArray:
        """log p, (n,), from the nodes' log densities (n, N): ITAN eq. mixture by the weights that score."""
        return log_sum_exp(log_density + self.log_weights)

    @property
    def counts(self) -> FloatArray:
        """What each node has counted, (N,)."""
        return self.nodes.statistics.count

    @property
    def room(self) -> int:
        """How many more samples the present round takes, at least one."""
        return self._round_size(self.n_learned) - self._round.n

    def _round_size(self, n_learned: int) -> int:
        size = int(self._forgetting.memory(n_learned) * self.config.round_growth)
        return min(max(size, 1), self.config.max_round)

    @property
    def newest_time(self) -> float:
        """The newest timestamp among what was learned or waits for it; -inf without one. In seconds if its clock is."""
        return max(self._forgetting.now, self._round.newest)

    @property
    def next_ordinal(self) -> int:
        """The number, among the learned samples, of the next one."""
        return self.n_learned + self._round.n + 1

    def log_density(self, Z: FloatArray) -> FloatArray:
        """log p of each sample, (n,): ITAN eq. mixture in the log domain. Pure."""
        return self.log_p(self._impute(Z)[0])

    def examine(self, Z: FloatArray, time: FloatArray) -> Examined:
        """Score samples by the frozen model, and see how it would learn them. Pure."""
        log_density, filled, spread = self._impute(Z)
        learned = filled if self._reach is None else self.densities.drawn_in(filled, log_density, self._reach)
        if filled is not Z:
            self._bound(spread)
        return Examined(Z, log_density, time, learned, spread, self._growth.sides(learned))

    def learn(self, examined: Examined) -> None:
        """Take samples, at most as many as there is room for, into the round; learn it when it is full."""
        size = self._round_size(self.n_learned)
        self._round.add(examined, size)
        if self._round.n >= size:
            self.end_round()

    def end_round(self) -> None:
        """Learn what is pending: weights first, by the densities before, then statistics and splits."""
        batch, self._round = self._round.samples, Round()
        if batch is None:
            return
        shares = self.mixture.shares(batch.log_density)
        self._growth.weigh(shares)
        self.mixture.learn(shares)
        before, self.n_learned = self.n_learned, self.n_learned + len(batch.Z)
        self._count(self._learned(batch, before))
        self._growth.grow(before, self.n_learned)
        self._log_weights = None

    def retract(self, receipt: Receipt) -> None:
        """Take a sample out of every node and side that counted it, and of the children that inherited that side.

        The statistics become those of a run that never saw it; tree and weights stay. Ends the round first.
        """
        self._change(receipt, -1)

    def restore(self, receipt: Receipt) -> None:
        """Undo a retraction. Ends the round first."""
        self._change(receipt, +1)

    def _change(self, receipt: Receipt, sign: int) -> None:
        self.end_round()
        weight = float(self._forgetting.weight(np.array([receipt.moment]))[0])
        if weight > 0:
            self.nodes.change(receipt, sign, weight)
        self._growth.change(receipt, sign, weight)
        self._log_weights = None

    def moments(self, ordinals: FloatArray, time: FloatArray) -> FloatArray:
        """When samples learned as these numbers, with these timestamps, happen on the clock of forgetting: (n,)."""
        return self._forgetting.moments(ordinals, time)

    def _learned(self, batch: Examined, before: int) -> Learned:
        """The round as the statistics take it in, after what they hold has faded to its end."""
        ordinal = np.arange(before + 1, before + 1 + len(batch.Z))
        moment = self.moments(ordinal.astype(float), batch.time)
        factor = self._forgetting.advance(float(moment.max()))
        self.nodes.fade(factor)
        self._growth.fade(factor)
        weight = self._forgetting.weight(moment)
        return Learned(batch.learned, batch.spread, ordinal, moment, batch.left, weight)

    def _count(self, learned: Learned) -> None:
        held = self.tree.membership(learned.x)
        groups = Groups.by(self._growth.keys(learned.x, held))
        rows = learned.sorted(groups.order)
        diagonal = self.nodes.statistics.diagonal
        x, spread = self.nodes.layout.columns(rows.x, rows.spread)
        moments = moments_of(x, spread, rows.weight, groups.first, diagonal=diagonal)
        self.nodes.count(groups.sample(held), moments)
        self._growth.count(learned, held, groups, moments)

    def _impute(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Expected log densities (n, N), and samples with what is missing filled in, and the variance of that."""
        if not isnan(np.vdot(Z, Z)):  # one missing feature is enough to make it so
            return self.densities.log_density(Z), Z, np.zeros(Z.shape)
        missing = np.isnan(Z)
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

    def _bound(self, spread: FloatArray) -> None:
        """Keep the variance of what was imputed to the reach too: beside a known 1e15 it would be 1e28."""
        if self._reach is not None:
            root = self.nodes.covariance(np.zeros(1, np.int64))[0]
            block = self.nodes.layout.block
            most = self._reach**2 * (root if root.ndim == 1 else np.diag(root))
            spread[:, block] = np.minimum(spread[:, block], most)

    def _fill(self, Z: FloatArray, pattern: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Expected log densities; mean and variance, under the mixture, of what is missing given the rest."""
        given = self.densities.conditional(Z, pattern)
        log_p = self.mixture.log_p(given.known)
        share = np.exp(given.known + self.mixture.log_weights - log_p[:, None])[:, :, None]
        # a line through nodes leads on from a huge value to a huger one: no further than a sample itself may lie
        expected = np.clip(given.mean, -LIMIT, LIMIT)
        mean = (share * expected).sum(1)
        variance = (share * (given.variance + (expected - mean[:, None]) ** 2)).sum(1)
        return given.log_density, mean, variance

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name; how pending samples are learned only if not as they are."""
        arrays = {"progress": np.array([self.n_learned]), "clock": np.array([self._forgetting.state()])}
        return arrays | self._round.state(self.config.n_features) | self.nodes.state() | self._growth.state()

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if no history leads to a state; one that passes can be loaded, and goes on."""
        n_learned = int(take(arrays, "progress", np.int64, (1,))[0])
        times_cut = self.nodes.check(arrays)
        self._growth.check(arrays, times_cut, n_learned)
        if not 0 <= n_learned < 2**53 or len(times_cut) > self.config.max_nodes:
            raise InvalidSnapshot("its progress is not that of a model")
        self._check_pending(arrays, self._round_size(n_learned))
        self._forgetting.check(float(take(arrays, "clock", np.float64, (1,))[0]), n_learned)

    def _check_pending(self, arrays: Arrays, room: int) -> None:
        """InvalidSnapshot if a round has no room, and so would never end, or what lies in it is not samples."""
        m = self.config.n_features
        pending = take(arrays, "pending", np.float64, (-1, m))
        time = take(arrays, "pending_time", np.float64, (len(pending),))
        told = [take(arrays, name, np.float64, (-1, m)) for name in _told(arrays)]
        if len(pending) >= room or not {len(part) for part in told} <= {0, len(pending)}:
            raise InvalidSnapshot("its pending samples are not a round")
        if (np.abs(pending) > LARGEST_SAMPLE).any() or np.isnan(pending).all(1).any():
            raise InvalidSnapshot("its pending samples are not samples")
        if told and (
            len(told[0]) != len(told[1]) or (told[1] < 0).any() or (np.isnan(pending).any() and not told[0].size)
        ):
            raise InvalidSnapshot("how its pending samples are learned does not fit them")
        self.check_times(time)

    def check_times(self, time: FloatArray) -> None:
        """InvalidSnapshot if samples cannot have these times (n,), NaN for none."""
        self._forgetting.check_times(time)

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.n_learned = int(arrays["progress"][0])
        self._forgetting.load(float(arrays["clock"][0]))
        self.nodes.load(arrays)
        self._growth.load(arrays)
        self._log_weights = None
        self._round = Round()
        if len(arrays["pending"]):
            self._round.add(self._pending(arrays), self._round_size(self.n_learned))

    def _pending(self, arrays: Arrays) -> Examined:
        """The samples of a round as they were: what will be learned of one may be another model's to say."""
        pending = self.examine(arrays["pending"], arrays["pending_time"])
        if _told(arrays):
            learned, spread = (arrays[name] for name in _TOLD)
            pending.learned = learned if len(learned) else pending.Z
            pending.spread = spread if len(spread) else np.zeros_like(pending.Z)
            pending.left = self._growth.sides(pending.learned)
        return pending


_TOLD: Final = ("pending_learned", "pending_spread")


def _told(arrays: Arrays) -> tuple[str, ...]:
    """The arrays that say how pending samples are learned; none in a snapshot of version 2, which looks anew."""
    return _TOLD if set(_TOLD) & arrays.keys() else ()
