"""The decision rule: a sample is flagged when its score is above a threshold that the labels move.

Scores are -log p in the user's units. Costs are those of a missed anomaly, C_1, and of a false alarm, C_-1.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from math import atan, exp, log, sqrt
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

WINDOW: Final = 1000
CAPACITY: Final = 512
HALF_LIFE_LABELS: Final = 300
REFIT_EVERY: Final = 64
EARLY: Final = 100
FENCE: Final = 6.0
LEARNING_RATE: Final = 0.4
PRIOR_COUNT: Final = 10.0
TAILS: Final = np.exp(np.linspace(log(0.5), log(0.5 / WINDOW), 48))


class Threshold(ABC):
    """Gives each score its threshold, and moves by labels; value is the one for the next score."""

    value: float

    @abstractmethod
    def pass_by(self, scores: FloatArray) -> FloatArray:
        """The threshold that each score (n,) met, which it cannot have moved itself; then take note of the scores."""

    @abstractmethod
    def label(self, seq: int, score: float, label: int) -> None:
        """Learn that the sample of this score is anomalous (+1) or normal (-1), or that its label is void (0)."""

    def settle(self) -> None:
        """Bring value up to date with the labels; called before it is read."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {"threshold": np.array([self.value])}

    def load(self, arrays: Arrays) -> None:
        """Take over a state; InvalidSnapshot if it does not fit."""
        self.value = float(take(arrays, "threshold", np.float64, (1,))[0])


class FixedThreshold(Threshold):
    """The user's number, whatever the labels say."""

    def __init__(self, value: float) -> None:
        self.value = value

    def pass_by(self, scores: FloatArray) -> FloatArray:
        return np.full(len(scores), self.value)

    def label(self, seq: int, score: float, label: int) -> None:
        pass


class GradientThreshold(Threshold):
    """Alg. 3: online gradient descent on C_d log(1 + exp((p - tau) d)), tau held in G = [low, high].

    tau <- P_G(tau + a_t d C_d / (1 + exp((tau - p) d))), a_t = (1 + e^D)^2 / (t C_min e^D), D = high - low, t counting
    labels (Theorem 2). p is the density of the scaled space at decision time, clipped to G, where the theorem needs it;
    log_volume is the Jacobian, in nats, between that and a score. A label that is revised takes a step of its own; one
    that is withdrawn cannot: a step is not undone. tau starts at G's geometric middle.
    """

    def __init__(
        self, low: float, high: float, cost_anomalous: float, cost_normal: float, *, log_volume: float = 0.0
    ) -> None:
        self.low, self.high, self.log_volume = low, high, log_volume
        self.cost = {1: cost_anomalous, -1: cost_normal}
        self.n_labels = 0
        self.tau = sqrt(low) * sqrt(high)

    @property
    def value(self) -> float:  # type: ignore[override]
        """-log tau, in the user's units."""
        return self.log_volume - log(self.tau)

    def pass_by(self, scores: FloatArray) -> FloatArray:
        return np.full(len(scores), self.value)

    def label(self, seq: int, score: float, label: int) -> None:
        if label == 0:
            return
        self.n_labels += 1
        p = exp(-min(max(score - self.log_volume, -log(self.high)), -log(self.low)))
        pull = label * self.cost[label] * float(expit((p - self.tau) * label))
        self.tau = min(max(self.tau + self._step_size() * pull, self.low), self.high)

    def _step_size(self) -> float:
        """a_t, in logs: e^D overflows from D = 709 on."""
        diameter = self.high - self.low
        log_step = 2 * float(np.logaddexp(0.0, diameter)) - diameter - log(self.n_labels) - log(min(self.cost.values()))
        return exp(min(log_step, 700.0))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"threshold": np.array([self.tau]), "threshold_labels": np.array([self.n_labels])}

    def load(self, arrays: Arrays) -> None:
        self.tau = float(take(arrays, "threshold", np.float64, (1,))[0])
        self.n_labels = int(take(arrays, "threshold_labels", np.int64, (1,))[0])
        if not self.low <= self.tau <= self.high or self.n_labels < 0:
            raise InvalidSnapshot(f"its threshold {self.tau!r} lies outside of its range")


class RecentScores:
    """The last WINDOW scores, also in order."""

    def __init__(self) -> None:
        self.ring: list[float] = []
        self.oldest = 0
        self.ordered: list[float] = []

    def add(self, score: float) -> None:
        """Take a score in and, once full, the oldest out."""
        if len(self.ring) < WINDOW:
            self.ring.append(score)
        else:
            del self.ordered[bisect_left(self.ordered, self.ring[self.oldest])]
            self.ring[self.oldest] = score
            self.oldest = (self.oldest + 1) % WINDOW
        insort(self.ordered, score)

    def quantile(self, tail: float) -> float:
        """The score that the share tail of them exceeds, interpolated; the largest double if there are none.

        Few scores know no far tail: their largest may be the very anomaly behind which the next one would hide. While
        there are fewer than EARLY it is held to FENCE quartile ranges above the upper quartile.
        """
        n = len(self.ordered)
        if n == 0:
            return float_info.max
        value = self._interpolated(tail)
        return min(value, self._fence()) if n < EARLY else value

    def _fence(self) -> float:
        lower, upper = self._interpolated(0.75), self._interpolated(0.25)
        return upper + FENCE * max(upper - lower, 1.0)

    def _interpolated(self, tail: float) -> float:
        n = len(self.ordered)
        position = min(max((1 - tail) * (n + 1) - 1, 0.0), n - 1.0)
        below = int(position)
        above, share = min(below + 1, n - 1), position - below
        return self.ordered[below] * (1 - share) + self.ordered[above] * share


class LabelledScores:
    """The last CAPACITY labelled scores: seq, score, label and age in labels, in order of labelling."""

    def __init__(self) -> None:
        self.seq = np.zeros(0, np.int64)
        self.score = np.zeros(0)
        self.label = np.zeros(0, np.int64)
        self.clock = np.zeros(0, np.int64)
        self.n_labels = 0

    def put(self, seq: int, score: float, label: int) -> None:
        """Set the label of a sample; 0 takes it away."""
        others = self.seq != seq
        new = {"seq": seq, "score": score, "label": label, "clock": self.n_labels}
        for name, value in new.items():
            kept = getattr(self, name)[others]
            setattr(self, name, kept if label == 0 else np.append(kept[-(CAPACITY - 1) :], value))
        self.n_labels += label != 0

    def steps(self, cost_anomalous: float, cost_normal: float) -> tuple[FloatArray, FloatArray]:
        """Scores in rising order, and what the cost rises by when the threshold passes each: +C_1 or -C_-1, aged."""
        order = np.argsort(self.score, kind="stable")
        age = 0.5 ** ((self.n_labels - 1 - self.clock) / HALF_LIFE_LABELS)
        step = np.where(self.label > 0, cost_anomalous, -cost_normal) * age
        return self.score[order], step[order]


class HindsightThreshold(Threshold):
    """The threshold that would have cost least on the labelled scores; before any label a quantile of all scores.

    L(c) = sum over labelled s_i <= c of (+C_1 if anomalous, -C_-1 if normal), halved every HALF_LIFE_LABELS labels. The
    quantile's tail is expected_anomaly_rate sqrt(C_1 / C_-1).
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.cost_anomalous, self.cost_normal = config.cost_false_negative, config.cost_false_positive
        self.rate, self.labels_trusted = config.expected_anomaly_rate, config.labels_trusted
        self.start_tail = min(0.5, self.rate * sqrt(self.cost_anomalous / self.cost_normal))
        self.recent, self.labelled = RecentScores(), LabelledScores()
        self.n_seen = 0
        self.value = float_info.max
        self._stale = False

    def pass_by(self, scores: FloatArray) -> FloatArray:
        met = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            self.settle()
            met[i] = self.value
            self.recent.add(score)
            self.n_seen += 1
            self._stale = self.labelled.seq.size == 0 or self.n_seen % REFIT_EVERY == 0
        self.settle()
        return met

    def label(self, seq: int, score: float, label: int) -> None:
        self.labelled.put(seq, score, label)
        self._stale = True

    def settle(self) -> None:
        if self._stale:
            self._stale = False
            self.value = self._fit() if self.labelled.seq.size else self.recent.quantile(self.start_tail)

    def _fit(self) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        cuts = cuts_between(score)
        cost = cost_of_cuts(cuts, score, step)
        best = np.flatnonzero(cost <= cost.min() + 1e-12)
        return float(cuts[best[len(best) // 2]])

    def state(self) -> dict[str, NDArray[Any]]:
        self.settle()
        labelled = self.labelled
        return super().state() | {
            "threshold_recent": np.array(self.recent.ring, float),
            "threshold_progress": np.array([self.n_seen, self.recent.oldest, labelled.n_labels]),
            "threshold_labels": np.stack([labelled.seq, labelled.label, labelled.clock]),
            "threshold_scores": labelled.score,
        }

    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        ring = take(arrays, "threshold_recent", np.float64, (-1,))
        self.n_seen, oldest, n_labels = (int(v) for v in take(arrays, "threshold_progress", np.int64, (3,)))
        score = take(arrays, "threshold_scores", np.float64, (-1,))
        labels = take(arrays, "threshold_labels", np.int64, (3, len(score)))
        if len(ring) > WINDOW or not 0 <= oldest < max(len(ring), 1) or len(score) > CAPACITY:
            raise InvalidSnapshot("its recent scores or labels are more than it can hold")
        label, clock = labels[1], labels[2]
        aged = (clock >= 0).all() and (clock < n_labels).all() and n_labels < 2**53
        if not (aged and np.isin(label, (-1, 1)).all() and 0 <= self.n_seen < 2**62):
            raise InvalidSnapshot("its labels are not in order")
        self.recent.ring, self.recent.oldest, self.recent.ordered = ring.tolist(), oldest, np.sort(ring).tolist()
        self.labelled.seq, self.labelled.label, self.labelled.clock = labels
        self.labelled.score, self.labelled.n_labels = score, n_labels
        self._stale = False


class WeightedThreshold(HindsightThreshold):
    """The weighted median of all thresholds, weights exp(-LEARNING_RATE L(c) / c_eff): exponential weights, real cost.

    c_eff = C_1 C_-1 / (C_1 + C_-1). PRIOR_COUNT pseudo-samples, anomalous with chance 1 / (1 + (u / r)^2) at tail rank
    u of the recent scores (r = expected_anomaly_rate), keep it from going blind when only what was flagged gets
    labelled.
    """

    def _fit(self) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        if not self.labels_trusted:
            step = self._denoised(step)
        cuts, mass = self._candidates(score)
        cost = cost_of_cuts(cuts, score, step) + self._prior_cost(cuts)
        effective = self.cost_anomalous * self.cost_normal / (self.cost_anomalous + self.cost_normal)
        weight = np.cumsum(mass * np.exp(-LEARNING_RATE / effective * (cost - cost.min())))
        return float(cuts[min(int(weight.searchsorted(weight[-1] / 2)), len(cuts) - 1)])

    def _denoised(self, step: FloatArray) -> FloatArray:
        """Steps that are right on average when a share of the normals is falsely labelled anomalous.

        The share is that of 'anomalous' among the lowest quarter of the scores (Natarajan et al. 2013).
        """
        if len(step) <= 20:
            return step
        lowest = step[: len(step) // 4]
        share = max(0.0, (np.count_nonzero(lowest > 0) - 1) / (len(lowest) + 2))
        return np.where(step < 0, step * (1 + share * self.cost_anomalous / self.cost_normal) / (1 - share), step)

    def _candidates(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cuts between the labelled scores and at tail ranks of the recent ones, in order, with their prior mass."""
        between = cuts_between(score)
        recent = self.recent.ordered
        ranks = np.clip((1 - TAILS) * (len(recent) + 1) - 1, 0, max(len(recent) - 1, 0)).astype(int)
        at_ranks = np.array(recent)[ranks] if recent else np.zeros(0)
        prior_mass = PRIOR_COUNT / (PRIOR_COUNT + len(score))
        cuts = np.concatenate([between, at_ranks])
        mass = np.concatenate([np.ones(len(between)), np.full(len(at_ranks), prior_mass)])
        order = cuts.argsort(kind="stable")
        return cuts[order], mass[order]

    def _prior_cost(self, cuts: FloatArray) -> FloatArray:
        """Expected cost of the pseudo-samples, least at tail rank r sqrt(C_1 / C_-1)."""
        recent = np.array(self.recent.ordered)
        rank = (len(recent) - recent.searchsorted(cuts, "right") + 0.5) / (len(recent) + 1)
        angle = np.arctan(rank / self.rate)
        missed = self.cost_anomalous * self.rate * (atan(1 / self.rate) - angle)
        cost: FloatArray = PRIOR_COUNT * (missed + self.cost_normal * (rank - self.rate * angle))
        return cost


def cuts_between(score: FloatArray) -> FloatArray:
    """Thresholds that tell n ordered scores apart: below all, between each two, above all: (n + 1,).

    >>> cuts_between(np.array([1.0, 3.0]))
    array([1., 2., 3.])
    """
    halfway = score[:-1] / 2 + score[1:] / 2
    below = score[0] - 1e-9 * max(1.0, abs(score[0]))
    return np.concatenate([[below], halfway, score[-1:]])


def cost_of_cuts(cuts: FloatArray, score: FloatArray, step: FloatArray) -> FloatArray:
    """Cost of each cut, up to a constant: flagged is score > cut, so a score equal to the cut is passed."""
    total = np.concatenate([[0.0], np.cumsum(step)])
    cost: FloatArray = total[score.searchsorted(cuts, "right")]
    return cost


def threshold_of(config: DetectorConfig, log_volume: float) -> Threshold:
    """The rule that a config names, for a scaling of this log volume."""
    match config.threshold:
        case "fixed":
            assert config.threshold_value is not None
            return FixedThreshold(config.threshold_value)
        case "ogd":
            costs = config.cost_false_negative, config.cost_false_positive
            return GradientThreshold(*config.threshold_range, *costs, log_volume=log_volume)
        case "hindsight":
            return HindsightThreshold(config)
    return WeightedThreshold(config)
