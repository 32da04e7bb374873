"""The decision rules in plain loops: the specification of core/threshold/."""

from itertools import pairwise
from math import exp, inf, log, sqrt
from sys import float_info

from core.config import DetectorConfig
from core.config.config import FALSE_SHARE
from core.threshold.hindsight import MOST
from core.threshold.labelled_scores import CAPACITY, HALF_LIFE_LABELS
from core.threshold.ordinary_scores import TOLERANCE
from core.threshold.weighted import (
    CHANCES,
    LEARNING_RATE,
    LEAST_WEIGHT,
    NEAR,
    PRIOR_COUNT,
    RATE_PRIOR_COUNT,
    SPAN,
)
from tests.oracle.naive_ordinary import NaiveOrdinary


class NaiveFixed:
    """The user's number."""

    most = inf

    def __init__(self, config: DetectorConfig, log_volume: float) -> None:
        self.value = config.threshold_value

    def label(self, seq: int, score: float, label: int) -> None:
        pass

    def follow(self, ordinary: NaiveOrdinary, n_seen: int, newest: int) -> None:
        """What follows a fit of the tail, or a call of feedback that changed a label."""


class NaiveGradient(NaiveFixed):
    """Alg. 3 on tau in G, in density of the scaled space."""

    def __init__(self, config: DetectorConfig, log_volume: float) -> None:
        self.low, self.high = config.threshold_range
        self.cost = {1: config.cost_false_negative, -1: config.cost_false_positive}
        self.log_volume, self.t = log_volume, 0
        self.tau = sqrt(self.low * self.high)

    @property
    def value(self) -> float:
        return self.log_volume - log(self.tau)

    def label(self, seq: int, score: float, label: int) -> None:
        """tau <- P_G(tau + alpha_t d C_d / (1 + exp((tau - p) d))), with p clipped to G."""
        if label == 0:
            return
        self.t += 1
        p = self.projected(exp(self.log_volume - score))
        pull = label * self.cost[label] / (1 + exp((self.tau - p) * label))
        self.tau = self.projected(self.tau + self.step_size() * pull)

    def step_size(self) -> float:
        """alpha_t = (1 + e^D)^2 / (t C_min e^D)."""
        e_to_diameter = exp(self.high - self.low)
        return (1 + e_to_diameter) ** 2 / (self.t * min(self.cost.values()) * e_to_diameter)

    def projected(self, value: float) -> float:
        return min(max(value, self.low), self.high)


class NaiveHindsight(NaiveFixed):
    """The threshold that would have cost least on the labelled scores; before any, by the tail of the ordinary ones."""

    def __init__(self, config: DetectorConfig, log_volume: float) -> None:
        self.config = config
        self.cost_anomalous, self.cost_normal = config.cost_false_negative, config.cost_false_positive
        self.labelled: list[tuple[int, float, int, int]] = []
        self.n_labels = 0
        self.value = float_info.max

    def label(self, seq: int, score: float, label: int) -> None:
        """Replace what was said of the sample; 0 only takes it away."""
        self.labelled = [row for row in self.labelled if row[0] != seq]
        if label != 0:
            self.labelled = [*self.labelled, (seq, score, label, self.n_labels)][-CAPACITY:]
            self.n_labels += 1

    def follow(self, ordinary: NaiveOrdinary, n_seen: int, newest: int) -> None:
        self.ordinary, self.n_seen, self.newest = ordinary, n_seen, newest
        self.value = self.best_cut() if self.labelled and ordinary.all else self.start()

    def start(self) -> float:
        """Before any label: by the best chance, but not below what came more often than anomalies are expected."""
        if not self.ordinary.all:
            return float_info.max
        return max(self.ordinary.threshold(self.best_chance()), self.ordinary.quantile(self.most) + TOLERANCE)

    @property
    def most(self) -> float:
        """The share of the samples beyond which scores are ordinary by their number alone."""
        return max(MOST * self.config.expected_anomaly_rate, self.best_chance())

    def least_rate(self) -> float:
        """False alarms wanted for each sample where both errors cost the same."""
        return FALSE_SHARE * self.config.expected_anomaly_rate

    def best_chance(self) -> float:
        """Before any label."""
        return min(0.5, self.least_rate() * self.cost_anomalous / self.cost_normal)

    def best_cut(self) -> float:
        """The middle one of the cuts of least cost."""
        steps = self.steps()
        cuts = self.cuts_between([score for score, _ in steps])
        costs = [self.cost_of(cut, steps) for cut in cuts]
        best = [cut for cut, cost in zip(cuts, costs, strict=True) if cost <= min(costs) + 1e-12]
        return best[len(best) // 2]

    def steps(self) -> list[tuple[float, float]]:
        """Each labelled score, in rising order, with the cost of passing it: +C_1, or -C_-1 saved, aged."""
        steps = []
        for _, score, label, clock in sorted(self.labelled, key=lambda row: row[1]):
            age = 0.5 ** ((self.n_labels - 1 - clock) / HALF_LIFE_LABELS)
            steps.append((score, age * (self.cost_anomalous if label == 1 else -self.cost_normal)))
        return steps

    def cuts_between(self, scores: list[float]) -> list[float]:
        """Just below all, half way between each two, and at the highest."""
        halfway = [(a + b) / 2 for a, b in pairwise(scores)]
        return [scores[0] - 1e-9 * max(1.0, abs(scores[0])), *halfway, scores[-1]]

    def cost_of(self, cut: float, steps: list[tuple[float, float]]) -> float:
        """L(c): flagged is score > c, so a score equal to the cut is passed."""
        return sum(step for score, step in steps if score <= cut)


class NaiveWeighted(NaiveHindsight):
    """The weighted median of all cuts, by exponential weights on their cost and on a prior's."""

    def best_cut(self) -> float:
        steps = self.denoised(self.steps())
        cuts = self.candidates([score for score, _ in steps])
        rate = self.rate()
        costs = [self.cost_of(cut, steps) + self.prior_cost(cut, rate) for cut in cuts]
        effective = self.cost_anomalous * self.cost_normal / (self.cost_anomalous + self.cost_normal)
        weights = [
            self.prior_weight(cut, rate) * exp(-LEARNING_RATE * (cost - min(costs)) / effective)
            for cut, cost in zip(cuts, costs, strict=True)
        ]
        running = 0.0
        for cut, weight in zip(cuts, weights, strict=True):
            running += weight
            if running >= sum(weights) / 2:
                return cut
        raise AssertionError("the weights sum to their sum")

    def denoised(self, steps: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """Natarajan's correction of the normal steps."""
        share = self.false_share(steps)
        factor = (1 + share * self.cost_anomalous / self.cost_normal) / (1 - share)
        return [(score, step * factor if step < 0 else step) for score, step in steps]

    def false_share(self, steps: list[tuple[float, float]]) -> float:
        """The share of normals that are falsely labelled, by the share of anomalies among the lowest quarter."""
        if self.config.labels_trusted or len(steps) <= 20:
            return 0.0
        lowest = steps[: len(steps) // 4]
        wrong = sum(1 for _, step in lowest if step > 0)
        return max(0.0, (wrong - 1) / (len(lowest) + 2))

    def rate(self) -> float:
        """Anomalies that look ordinary, a sample: what is expected, or what the labels prove; at most half."""
        falsely_labelled = self.false_share(self.steps()) * len(self.labelled)
        near = sum(1 for _, score, label, _ in self.labelled if label == 1 and self.ordinary.chance(score) > NEAR)
        first = min(seq for seq, _, _, _ in self.labelled)
        samples = max(self.newest - first + 1, min(self.n_seen, SPAN))
        return min(0.5, max(self.least_rate(), (near - falsely_labelled) / (samples + RATE_PRIOR_COUNT)))

    def candidates(self, scores: list[float]) -> list[float]:
        """Cuts between labelled scores, and at chances among ordinary ones."""
        return sorted([*self.cuts_between(scores), *(self.ordinary.exceeded_by(u) for u in CHANCES.tolist())])

    def prior_weight(self, cut: float, rate: float) -> float:
        """Of a cut before any label: u v / (u + v)^2 at chance u, v the best one."""
        u, v = self.ordinary.chance(cut), min(0.5, rate * self.cost_anomalous / self.cost_normal)
        return max(LEAST_WEIGHT, u * v / (u + v) ** 2)

    def prior_cost(self, cut: float, r: float) -> float:
        """Expected cost of PRIOR_COUNT pseudo-samples, anomalous with chance r / (r + u) where an ordinary one is as
        high with chance u.

        With v the cut's own chance: C_1 times the integral of that over u > v, and C_-1 times the integral of what is
        left of 1 over u < v.
        """
        v = self.ordinary.chance(cut)
        missed = r * log((r + 1) / (r + v))
        falsely_flagged = v - r * log(1 + v / r)
        return PRIOR_COUNT * (self.cost_anomalous * missed + self.cost_normal * falsely_flagged)


NAIVE_THRESHOLDS = {
    "fixed": NaiveFixed,
    "ogd": NaiveGradient,
    "hindsight": NaiveHindsight,
    "weighted": NaiveWeighted,
}
