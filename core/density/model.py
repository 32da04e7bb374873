"""The density estimate: a tree of subspaces, a density for each node, their mixture, and when they learn.

Learning goes by rounds. During a round the model is frozen: it scores every sample, and how a sample will be learned is
known when it is scored. At the end of the round all its samples are learned at once. When a round ends depends on the
number of learned samples alone, never on how a caller cuts its batches. A round of one sample is the paper's Alg. 2.
"""

from math import isnan, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.density.context import of_context, of_whole
from core.density.imputation import impute
from core.density.round import Batch, Round, check_pending, learned_as
from core.density.spread import RecentSpread
from core.errors import InvalidSnapshot
from core.families.base import NodeDensities
from core.families.statistics import moments_of
from core.families.student_nodes import StudentNodes
from core.families.student_stack import row_width
from core.forgetting import Forgetting
from core.growth.base import Growth
from core.growth.evidence.growth import EvidenceGrowth
from core.growth.schedule.growth import ScheduledGrowth
from core.mixture import Mixture
from core.mixture.learned import Groups, LearnedBatch, LearnedSample
from core.mixture.log_sum import LEAST_WEIGHT, log_sum_exp
from core.mixture.nodes import Nodes
from core.snapshot import Arrays, take
from core.tree.subspaces import SubspaceTree

RARITY: Final = 0.2
"""A node that holds this share of all samples is as likely anomalous as normal. Chosen by hand."""
REACH: Final = 5.0
"""Samples are learned drawn in to sqrt(m) + REACH deviations of the root, eq. (18): an outlier of 1e15 does not blind
the model, and can be subtracted again. Chosen by hand; section 10 of docs/method.md has the loss without it."""

WIDEST: Final = 8192
"""Numbers of a model that is stacked: to copy a larger one takes longer than to call numpy for it alone."""


class DensityModel:
    """A density over scaled samples Z (n, m): of the values given the context. NaN stands for a missing feature.

    Deviations from the paper, under the default profile: rounds, samples drawn in by eq. (18), forgetting, and weights
    that mistrust rare nodes, eq. (34). followed turns true when the spread of some feature has followed the samples.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.config = config
        self.n_learned = 0
        self.nodes = Nodes(config)
        self.forgetting = Forgetting(config)
        self.growth: Growth = (
            ScheduledGrowth(config, self.nodes)
            if config.profile == "paper"
            else EvidenceGrowth(config, self.nodes, self.forgetting)
        )
        self._reach = sqrt(config.n_columns) + REACH if config.profile != "paper" else None
        self._spread = RecentSpread(config.kinds) if config.follows_spread else None
        self.followed = False
        self._is_context = np.isin(np.arange(config.n_columns), config.context)
        densities = self.nodes.densities
        are_plain = self._reach is not None and not self.nodes.context.size and not self.growth.most_sides
        # lognormal features are scaled by their logarithms, which a stack does not take
        are_plain = are_plain and {*config.kinds} == {"gaussian"}
        self._students = densities if are_plain and isinstance(densities, StudentNodes) else None
        self._round = Round()
        self._size = self._round_size(0)
        self._log_weights: FloatArray | None = None

    @property
    def tree(self) -> SubspaceTree:
        """The subspaces of the nodes."""
        return self.nodes.tree

    @property
    def mixture(self) -> Mixture:
        """The weights of the nodes."""
        return self.nodes.mixture

    @property
    def densities(self) -> NodeDensities:
        """The frozen densities of the nodes."""
        self.nodes.refresh()
        return self.nodes.densities

    @property
    def stack_shape(self) -> tuple[int, int] | None:
        """Nodes and features of a model that evaluate_each can stack; None if it cannot."""
        if self._students is None:
            return None
        self.nodes.refresh()
        n_nodes, m = self._students.mean.shape
        return (n_nodes, m) if row_width(n_nodes, m) <= WIDEST else None

    @property
    def row(self) -> FloatArray:
        """The frozen densities as a row of numbers, for a model that has a stack_shape."""
        assert self._students is not None
        assert self._reach is not None
        self.nodes.refresh()
        return self._students.row(self._reach)

    @property
    def weights(self) -> FloatArray:
        """alpha, (N,), summing to one."""
        return self.mixture.weights

    @property
    def log_weights(self) -> FloatArray:
        """Logs (N,) of the weights that score: alpha times each node's chance of being normal, eq. (34), normalised."""
        if self._log_weights is None:
            self._log_weights = self.mixture.log_weights
            if self.config.corrects_scores:
                weights = self.weights * normality(self.counts)
                self._log_weights = np.log(np.maximum(weights / weights.sum(), LEAST_WEIGHT))
        return self._log_weights

    def log_p(self, log_density: FloatArray) -> FloatArray:
        """The log density (n,) of the mixture, eq. (10), by the weights that score, from those of the nodes (n, N)."""
        return log_sum_exp(log_density + self.log_weights)

    @property
    def counts(self) -> FloatArray:
        """The weight of the samples that each node has counted, (N,)."""
        return self.nodes.statistics.count

    @property
    def room(self) -> int:
        """How many more samples this round takes, at least one."""
        return self._size - self._round.n

    def _round_size(self, n_learned: int) -> int:
        size = int(self.forgetting.memory(n_learned) * self.config.round_growth)
        return min(max(size, 1), self.config.max_round)

    @property
    def newest_time(self) -> float:
        """The newest moment of the clock, or timestamp of a waiting sample; -inf without one."""
        return max(self.forgetting.now, self._round.newest)

    @property
    def next_ordinal(self) -> int:
        """The ordinal of the next sample to be learned, from 1."""
        return self.n_learned + self._round.n + 1

    def log_density(self, Z: FloatArray) -> FloatArray:
        """The log density (n,) of samples (n, m), given their context, in nats of the scaled space. Pure."""
        return self._log_p_given(Z, impute(Z, self.densities, self.mixture)[0])

    def _log_p_given(self, Z: FloatArray, log_density: FloatArray) -> FloatArray:
        """The log density (n,) of samples (n, m) given their context, eq. (37), from those of the nodes (n, N)."""
        if not self.nodes.context.size:
            return self.log_p(log_density)
        C, densities = Z[:, self.nodes.context], self.nodes.of_context
        if not isnan(np.vdot(C, C)):
            return self.log_p(log_density) - self.log_p(densities.log_density(C))
        whole = of_whole(Z, log_density, self.densities, self._is_context)
        return self.log_p(whole) - self.log_p(of_context(C, densities, self.tree.n_nodes))

    def evaluate(self, Z: FloatArray, time: FloatArray) -> Batch:
        """Score samples (n, m) with timestamps (n,) by the frozen model, and say how it would learn them. Pure."""
        log_density, filled, spread = impute(Z, self.densities, self.mixture)
        learned = filled if self._reach is None else self.densities.drawn_in(filled, log_density, self._reach)
        if filled is not Z:
            self._bound(spread)
        log_p = self._log_p_given(Z, log_density)
        return Batch(Z, log_density, log_p, time, learned, spread, self.growth.sides(learned))

    def learn(self, batch: Batch) -> None:
        """Add samples to the round, no more than there is room for; learn the round when it is full."""
        self._round.add(batch, self._size)
        if self._round.n >= self._size:
            self.end_round()

    def learn_one(self, batch: Batch, row: int) -> None:
        """Learn one sample of a batch, as it came."""
        self._round.add_one(batch, row, self._size)
        if self._round.n >= self._size:
            self.end_round()

    def end_round(self) -> None:
        """Learn the samples of the round: weights first, by the densities before, then statistics, then splits."""
        batch, self._round = self._round.samples, Round()
        if batch is None:
            return
        shares = self.mixture.shares(batch.log_density)
        self.growth.weigh(shares)
        self.mixture.learn(shares)
        before, self.n_learned = self.n_learned, self.n_learned + len(batch.Z)
        self._count(self._learned(batch, before))
        if self._spread is not None and self._spread.add(batch.Z[:, : self.config.n_features], before):
            self._follow_recent(self._spread)
        self.growth.grow(before, self.n_learned)
        self._size = self._round_size(self.n_learned)
        self._log_weights = None

    def _follow_recent(self, recent: RecentSpread) -> None:
        """Let spreads follow the recent samples."""
        if moved := recent.moved(self.nodes.spread, self.nodes.most_spread, self.nodes.coarse):
            self.nodes.follow(moved)
            self._expect_again()

    def tell(self, told: dict[int, tuple[float, bool]]) -> None:
        """Take the spread of some features, by number, as Nodes.tell does. Ends the round first."""
        self.end_round()
        if self.nodes.tell(told):
            self._expect_again()

    def _expect_again(self) -> None:
        self.growth.follow()
        self._log_weights, self.followed = None, True

    def begin_warm(self, n_samples: int) -> None:
        """Let all that was learned count n_samples at most, none of which can be taken out again. The round is over."""
        factor = min(1.0, n_samples / max(float(self.counts[0]), 1.0))
        self.nodes.fade(factor)
        self.growth.fade(factor)
        self.n_learned = min(n_samples, self.n_learned)
        self.tree.since[:] = 0
        self.growth.begin_warm(self.n_learned)
        self.forgetting.begin_warm(self.n_learned)
        self._log_weights = None

    def retract(self, sample: LearnedSample) -> None:
        """Take a learned sample out of every node and candidate side that counted it. Ends the round first.

        The statistics become those of a run that never saw it, up to rounding; tree and weights stay.
        """
        self._change(sample, -1)

    def restore(self, sample: LearnedSample) -> None:
        """Learn a retracted sample again, with the weight that it has by now. Ends the round first."""
        self._change(sample, +1)

    def _change(self, sample: LearnedSample, sign: int) -> None:
        self.end_round()
        weight = float(self.forgetting.weight(np.array([sample.moment]))[0])
        if weight > 0:
            self.nodes.change(sample, sign, weight)
        self.growth.change(sample, sign, weight)
        self._log_weights = None

    def moments(self, ordinals: FloatArray, time: FloatArray) -> FloatArray:
        """The moments (n,) on the clock of forgetting of samples with these ordinals and timestamps (n,)."""
        return self.forgetting.moments(ordinals, time)

    def _learned(self, batch: Batch, before: int) -> LearnedBatch:
        """The samples of a round with their weights at its end; everything learned before fades to that moment."""
        ordinal = np.arange(before + 1, before + 1 + len(batch.Z))
        moment = self.moments(ordinal.astype(float), batch.time)
        factor = self.forgetting.advance(float(moment.max()))
        self.nodes.fade(factor)
        self.growth.fade(factor)
        weight = self.forgetting.weight(moment)
        return LearnedBatch(batch.learned, batch.spread, ordinal, moment, batch.left, weight)

    def _count(self, learned: LearnedBatch) -> None:
        held = self.tree.membership(learned.x)
        groups = Groups.by(self.growth.keys(learned.x, held))
        rows = learned.sorted(groups.order)
        diagonal = self.nodes.statistics.diagonal
        x, spread = self.nodes.layout.columns(rows.x, rows.spread)
        moments = moments_of(x, spread, rows.weight, groups.first, diagonal=diagonal)
        self.nodes.count(groups.sample(held), moments)
        self.growth.count(learned, held, groups, moments)

    def _bound(self, spread: FloatArray) -> None:
        """Bound the variance of filled values by the reach as well: beside a known 1e15 it would be 1e28."""
        if self._reach is not None:
            root = self.nodes.covariance(np.zeros(1, np.int64))[0]
            block = self.nodes.layout.block
            most = self._reach**2 * (root if root.ndim == 1 else np.diag(root))
            spread[:, block] = np.minimum(spread[:, block], most)

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        arrays = {"progress": np.array([self.n_learned])} | self.forgetting.state()
        if self._spread is not None:
            arrays |= self._spread.state()
        return arrays | self._round.state(self.config.n_columns) | self.nodes.state() | self.growth.state()

    def check(self, arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no history could have produced this state. Changes nothing."""
        n_learned = int(take(arrays, "progress", np.int64, (1,))[0])
        times_cut = self.nodes.check(arrays)
        self.growth.check(arrays, times_cut, n_learned)
        if not 0 <= n_learned < 2**53 or len(times_cut) > self.config.max_nodes:
            raise InvalidSnapshot("its progress is not that of a model")
        check_pending(arrays, self.config.n_columns, self._round_size(n_learned))
        self.check_times(arrays["pending_time"])
        if self._spread is not None:
            self._spread.check(arrays)
        self.forgetting.check(arrays, n_learned)

    def check_times(self, time: FloatArray) -> None:
        """Raise InvalidSnapshot if samples cannot have these timestamps (n,), NaN for none."""
        self.forgetting.check_times(time)

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.n_learned = int(arrays["progress"][0])
        self.forgetting.load(arrays)
        self.nodes.load(arrays)
        self.growth.load(arrays)
        if self._spread is not None:
            self._spread.load(arrays)
        self._log_weights = None
        self._round, self._size = Round(), self._round_size(self.n_learned)
        if len(arrays["pending"]):
            self._round.add(self._pending(arrays), self._size)

    def _pending(self, arrays: Arrays) -> Batch:
        """The waiting samples, evaluated again; the state says how they are learned, as another model may decide."""
        pending = self.evaluate(arrays["pending"], arrays["pending_time"])
        if (told := learned_as(arrays)) is not None:
            pending.learned, pending.spread = told
            pending.left = self.growth.sides(pending.learned)
        return pending


def normality(counts: FloatArray) -> FloatArray:
    """The chance (N,) that a sample of each node is normal, above 0, eq. (34), by the nodes' counts (N,).

    >>> normality(np.array([999.0, 199.0, 0.0])).round(3).tolist()
    [0.833, 0.5, 0.005]
    """
    chance: FloatArray = (counts + 1.0) / (counts + 1.0 + RARITY * (counts[0] + 1.0))
    return chance
