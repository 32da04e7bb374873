"""The decision rule: a sample is flagged when its score is above a threshold that the labels move.

Scores are -log p in the user's units. Costs are those of a missed anomaly, C_1, and of a false alarm, C_-1.
"""

from abc import ABC, abstractmethod
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
from core.threshold.windows import WINDOW, LabelledScores, RecentScores, check_ring

REFIT_EVERY: Final = 64
FIT_SHARE: Final = 16
LEARNING_RATE: Final = 0.4
PRIOR_COUNT: Final = 10.0
RATE_PRIOR_COUNT: Final = 20.0
ROUNDINGS: Final = 4 * float_info.epsilon
TAILS: Final = np.exp(np.linspace(log(0.5), log(0.5 / WINDOW), 48))


class Threshold(ABC):
    """Gives each score its threshold, and moves by labels; value is the one for the next score."""

    value: float

    @abstractmethod
    def pass_by(self, scores: FloatArray) -> FloatArray:
        """The threshold that each score (n,) met, which it cannot have moved itself; then take note of the scores."""

    def levels(self, scores: FloatArray) -> FloatArray:
        """The level (n,) from which each score (n,) will be measured if they come next, for label; changes nothing."""
        return np.zeros(len(scores))

    @abstractmethod
    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        """Learn that a sample is anomalous (+1) or normal (-1), or that its label is void (0).

        score and level are those of the decision.
        """

    def settle(self) -> None:
        """Bring value up to date with the labels; called before it is read."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {"threshold": np.array([self.value])}

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if a state does not fit."""
        take(arrays, "threshold", np.float64, (1,))

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.value = float(arrays["threshold"][0])


class FixedThreshold(Threshold):
    """The user's number, whatever the labels say."""

    def check(self, arrays: Arrays) -> None:
        if take(arrays, "threshold", np.float64, (1,))[0] != self.value:
            raise InvalidSnapshot("its threshold is not its config's")

    def __init__(self, value: float) -> None:
        self.value = value

    def pass_by(self, scores: FloatArray) -> FloatArray:
        return np.full(len(scores), self.value)

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
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

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
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

    def check(self, arrays: Arrays) -> None:
        tau = float(take(arrays, "threshold", np.float64, (1,))[0])
        if not self.low <= tau <= self.high:
            raise InvalidSnapshot(f"its threshold {tau!r} lies outside of its range")
        if not 0 <= take(arrays, "threshold_labels", np.int64, (1,))[0] < 2**53:
            raise InvalidSnapshot("its count of labels is out of range")

    def load(self, arrays: Arrays) -> None:
        self.tau, self.n_labels = float(arrays["threshold"][0]), int(arrays["threshold_labels"][0])


def next_fit(n_seen: int) -> int:
    """The number of scores at which a threshold is fitted next: rarer as they become more, REFIT_EVERY apart at last.

    >>> [next_fit(n) for n in (0, 1, 31, 32, 33, 5000)]
    [1, 2, 32, 34, 34, 5056]
    """
    step = _fit_step(n_seen)
    due = n_seen - n_seen % step + step
    return due if due % _fit_step(due) == 0 else due + step


def _fit_step(n_seen: int) -> int:
    """A power of two, so that the points of a longer step are points of the shorter one."""
    return int(min(1 << max((n_seen // FIT_SHARE).bit_length() - 1, 0), REFIT_EVERY))


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
        self.n_seen, self._next_fit = 0, next_fit(0)
        self.value = float_info.max
        self._stale = False

    def pass_by(self, scores: FloatArray) -> FloatArray:
        self.settle()
        met = np.empty(len(scores))
        for i, score in enumerate(scores.tolist()):
            met[i] = self.value
            self.recent.add(score)
            self.n_seen += 1
            if self.n_seen == self._next_fit:
                self._next_fit = next_fit(self.n_seen)
                self._stale = True
                self.settle()
        return met

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        self.labelled.put(seq, score, label)
        self._stale = True

    def settle(self) -> None:
        if self._stale:
            self._stale = False
            self.value = self._fit() if self.labelled else self.recent.quantile(self.start_tail)

    def _fit(self) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        cuts = cuts_between(score)
        cost = cost_of_cuts(cuts, score, step)
        best = np.flatnonzero(cost <= cost.min() + 1e-12)
        return float(cuts[best[len(best) // 2]])

    def state(self) -> dict[str, NDArray[Any]]:
        self.settle()
        labels, score = self.labelled.table()
        return super().state() | {
            "threshold_recent": np.array(self.recent.ring, float),
            "threshold_progress": np.array([self.n_seen, self.recent.oldest, self.labelled.n_labels]),
            "threshold_labels": labels,
            "threshold_scores": score,
        }

    def check(self, arrays: Arrays) -> None:
        super().check(arrays)
        n_seen, oldest, n_labels = take(arrays, "threshold_progress", np.int64, (3,)).tolist()
        ring = take(arrays, "threshold_recent", np.float64, (-1,))
        check_ring(ring, oldest)
        expected = n_seen % WINDOW if n_seen >= WINDOW else 0
        if (len(ring), oldest) != (min(n_seen, WINDOW), expected) or not n_seen < 2**53:
            raise InvalidSnapshot("its recent scores are not as many as it has seen")
        score = take(arrays, "threshold_scores", np.float64, (-1,))
        self.labelled.check(take(arrays, "threshold_labels", np.int64, (3, len(score))), score, n_labels)

    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        self.n_seen, oldest, n_labels = arrays["threshold_progress"].tolist()
        self._next_fit = next_fit(self.n_seen)
        self.recent.load(arrays["threshold_recent"], oldest)
        self.labelled.load(arrays["threshold_labels"], arrays["threshold_scores"], n_labels)
        self._stale = False


class WeightedThreshold(HindsightThreshold):
    """The weighted median of all thresholds, weights exp(-LEARNING_RATE L(c) / c_eff): exponential weights, real cost.

    c_eff = C_1 C_-1 / (C_1 + C_-1). PRIOR_COUNT pseudo-samples, anomalous with chance 1 / (1 + (u / r)^2) at tail rank
    u of the recent scores, keep it from going blind when only what was flagged gets labelled; r is
    expected_anomaly_rate, or the rate that the labels prove if that is more.
    """

    def _fit(self) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        false_share = 0.0 if self.labels_trusted else _false_share(step)
        denoised = (1 + false_share * self.cost_anomalous / self.cost_normal) / (1 - false_share)
        step = np.where(step < 0, step * denoised, step)
        proven = self.labelled.anomaly_rate(self.rate, RATE_PRIOR_COUNT, false_share)
        recent = np.array(self.recent.ordered)
        cuts, mass = _candidates(score, recent)
        cost = cost_of_cuts(cuts, score, step) + self._prior_cost(cuts, recent, min(max(self.rate, proven), 0.5))
        effective = self.cost_anomalous * self.cost_normal / (self.cost_anomalous + self.cost_normal)
        weight = np.cumsum(mass * np.exp(-LEARNING_RATE / effective * (cost - cost.min())))
        return float(cuts[min(int(weight.searchsorted(weight[-1] / 2)), len(cuts) - 1)])

    def _prior_cost(self, cuts: FloatArray, recent: FloatArray, rate: float) -> FloatArray:
        """Expected cost of the pseudo-samples, least at tail rank rate sqrt(C_1 / C_-1)."""
        rank = (len(recent) - recent.searchsorted(cuts, "right") + 0.5) / (len(recent) + 1)
        angle = np.arctan(rank / rate)
        missed = self.cost_anomalous * rate * (atan(1 / rate) - angle)
        cost: FloatArray = PRIOR_COUNT * (missed + self.cost_normal * (rank - rate * angle))
        return cost


class RelativeThreshold(Threshold):
    """Another rule, on how far scores lie above their level: for streams whose scores all rise and fall together.

    The level of a score is the median of the WINDOW scores before it. The first score has none: the rule never sees it.
    """

    def __init__(self, rule: Threshold) -> None:
        self.rule, self._recent = rule, RecentScores()

    @property
    def value(self) -> float:  # type: ignore[override]
        """The level of the next score and the rule's threshold above it, in the user's units."""
        return float(_raised(np.array(self.rule.value), np.array(self._recent.median)))

    def levels(self, scores: FloatArray) -> FloatArray:
        return self._recent.copy().levels(scores)

    def pass_by(self, scores: FloatArray) -> FloatArray:
        first = scores[: 0 if self._recent.ring else 1]
        levels = self._recent.levels(scores)
        above = _bounded_difference(scores, levels)[len(first) :]
        met = np.concatenate([np.full(len(first), self.rule.value), self.rule.pass_by(above)])
        return _raised(met, levels)

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        self.rule.label(seq, float(_bounded_difference(np.array(score), np.array(level))), label)

    def settle(self) -> None:
        self.rule.settle()

    def state(self) -> dict[str, NDArray[Any]]:
        levels = {"level_recent": np.array(self._recent.ring, float), "level_oldest": np.array([self._recent.oldest])}
        return self.rule.state() | levels

    def check(self, arrays: Arrays) -> None:
        self.rule.check(arrays)
        oldest = int(take(arrays, "level_oldest", np.int64, (1,))[0])
        check_ring(take(arrays, "level_recent", np.float64, (-1,)), oldest)

    def load(self, arrays: Arrays) -> None:
        self.rule.load(arrays)
        self._recent.load(arrays["level_recent"], int(arrays["level_oldest"][0]))


def _bounded_difference(score: FloatArray, level: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # scores saturate at the largest double, on either side
        return np.clip(score - level, -float_info.max, float_info.max)


def _raised(threshold: FloatArray, level: FloatArray) -> FloatArray:
    """Thresholds above the level as scores, a few roundings higher: who equals one above the level passes here too."""
    with np.errstate(over="ignore"):  # before any score the rule's threshold is the largest double
        slack = ROUNDINGS * np.abs(threshold) + ROUNDINGS * np.abs(level)
        return np.clip(threshold + level + slack, -float_info.max, float_info.max)


def _false_share(step: FloatArray) -> float:
    """What share of the normals is falsely labelled anomalous, by the share of 'anomalous' in the lowest quarter.

    Steps of normals are then right on average if multiplied by (1 + share C_1 / C_-1) / (1 - share) (Natarajan et al.
    2013).
    """
    if len(step) <= 20:
        return 0.0
    lowest = step[: len(step) // 4]
    return max(0.0, (np.count_nonzero(lowest > 0) - 1) / (len(lowest) + 2))


def _candidates(score: FloatArray, recent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cuts between the labelled scores and at tail ranks of the recent ones, in order, with their prior mass."""
    between = cuts_between(score)
    ranks = np.clip((1 - TAILS) * (len(recent) + 1) - 1, 0, max(len(recent) - 1, 0)).astype(int)
    at_ranks = recent[ranks] if len(recent) else recent
    prior_mass = PRIOR_COUNT / (PRIOR_COUNT + len(score))
    cuts = np.concatenate([between, at_ranks])
    mass = np.concatenate([np.ones(len(between)), np.full(len(at_ranks), prior_mass)])
    order = cuts.argsort(kind="stable")
    return cuts[order], mass[order]


def cuts_between(score: FloatArray) -> FloatArray:
    """Thresholds that tell n ordered scores apart: below all, between each two, above all: (n + 1,).

    >>> cuts_between(np.array([1.0, 3.0]))
    array([1., 2., 3.])
    """
    halfway = score[:-1] / 2 + score[1:] / 2
    least = float(score[0])
    below = max(least - 1e-9 * max(1.0, abs(least)), -float_info.max)  # a score may itself be the lowest double
    return np.concatenate([[below], halfway, score[-1:]])


def cost_of_cuts(cuts: FloatArray, score: FloatArray, step: FloatArray) -> FloatArray:
    """Cost of each cut, up to a constant: flagged is score > cut, so a score equal to the cut is passed."""
    total = np.concatenate([[0.0], np.cumsum(step)])
    cost: FloatArray = total[score.searchsorted(cuts, "right")]
    return cost


def threshold_of(config: DetectorConfig, log_volume: float) -> Threshold:
    """The rule that a config names, for a scaling of this log volume."""
    if config.drift_relative:
        return RelativeThreshold(_rule(config, 0.0))  # the Jacobian is in score and level alike
    return _rule(config, log_volume)


def _rule(config: DetectorConfig, log_volume: float) -> Threshold:
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
