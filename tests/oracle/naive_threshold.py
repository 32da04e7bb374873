"""The decision rules in plain loops: the specification of core/threshold/."""

from itertools import pairwise
from math import atan, exp, log, sqrt
from statistics import median
from sys import float_info

from core.config import DetectorConfig
from core.threshold.hindsight import FIT_SHARE, REFIT_EVERY
from core.threshold.labelled_scores import CAPACITY, HALF_LIFE_LABELS
from core.threshold.recent_scores import EARLY, FENCE, WINDOW
from core.threshold.weighted import LEARNING_RATE, PRIOR_COUNT, RATE_PRIOR_COUNT, TAILS


class NaiveFixed:
    """The user's number."""

    def __init__(self, config: DetectorConfig, log_volume: float) -> None:
        self.value = config.threshold_value

    def see(self, score: float) -> None:
        pass

    def level(self) -> float:
        """From where the next score will be measured."""
        return 0.0

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        pass

    def refit(self) -> None:
        """What follows a call of feedback that changed a label."""


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

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
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
    """The threshold that would have cost least on the labelled scores; before any, a quantile of the last scores.

    Fitted anew after every call of feedback, and at scores that become rarer: every step-th, step the largest power
    of two up to REFIT_EVERY and a FIT_SHARE-th of their number.
    """

    def __init__(self, config: DetectorConfig, log_volume: float) -> None:
        self.config = config
        self.cost_anomalous, self.cost_normal = config.cost_false_negative, config.cost_false_positive
        self.recent: list[float] = []
        self.labelled: list[tuple[int, float, int, int]] = []
        self.n_seen = self.n_labels = 0
        self.value = float_info.max

    def see(self, score: float) -> None:
        self.recent = [*self.recent, score][-WINDOW:]
        self.n_seen += 1
        step = 1
        while 2 * step <= min(self.n_seen // FIT_SHARE, REFIT_EVERY):
            step *= 2
        if self.n_seen % step == 0:
            self.refit()

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        """Replace what was said of the sample; 0 only takes it away."""
        self.labelled = [row for row in self.labelled if row[0] != seq]
        if label != 0:
            self.labelled = [*self.labelled, (seq, score, label, self.n_labels)][-CAPACITY:]
            self.n_labels += 1

    def refit(self) -> None:
        self.value = self.best_cut() if self.labelled else self.start()

    def start(self) -> float:
        """The score exceeded by the share r sqrt(C_1 / C_-1) of recent ones, at most half; at first within a fence."""
        if not self.recent:
            return float_info.max
        value = self.exceeded_by(
            min(0.5, self.config.expected_anomaly_rate * sqrt(self.cost_anomalous / self.cost_normal))
        )
        quartile = self.exceeded_by(0.25)
        fence = quartile + FENCE * max(1, quartile - self.exceeded_by(0.75))
        return min(value, fence) if len(self.recent) < EARLY else value

    def exceeded_by(self, tail: float) -> float:
        """The recent score that a share of them exceeds."""
        n, ordered = len(self.recent), sorted(self.recent)
        position = min(max((1 - tail) * (n + 1) - 1, 0), n - 1)
        below = int(position)
        above = min(below + 1, n - 1)
        return ordered[below] + (position - below) * (ordered[above] - ordered[below])

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
        candidates = self.candidates([score for score, _ in steps])
        rate = self.rate()
        costs = [self.cost_of(cut, steps) + self.prior_cost(cut, rate) for cut, _ in candidates]
        effective = self.cost_anomalous * self.cost_normal / (self.cost_anomalous + self.cost_normal)
        weights = [
            mass * exp(-LEARNING_RATE * (cost - min(costs)) / effective)
            for (_, mass), cost in zip(candidates, costs, strict=True)
        ]
        running = 0.0
        for (cut, _), weight in zip(candidates, weights, strict=True):
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
        """The expected rate of anomalies, or that which the labels prove: known anomalies a sample, at most half."""
        r, seqs = self.config.expected_anomaly_rate, [seq for seq, _, _, _ in self.labelled]
        falsely_labelled = self.false_share(self.steps()) * len(seqs)
        known = max(0.0, sum(1 for _, _, label, _ in self.labelled if label == 1) - falsely_labelled)
        samples = max(seqs) - min(seqs) + 1
        return min(0.5, max(r, (known + r * RATE_PRIOR_COUNT) / (samples + RATE_PRIOR_COUNT)))

    def candidates(self, scores: list[float]) -> list[tuple[float, float]]:
        """Cuts with their prior mass: one each between labelled scores, less as labels come at the tail ranks."""
        ordered, n = sorted(self.recent), len(self.recent)
        mass = PRIOR_COUNT / (PRIOR_COUNT + len(scores))
        at_ranks = [(ordered[int(min(max((1 - u) * (n + 1) - 1, 0), n - 1))], mass) for u in TAILS.tolist()]
        return sorted([*((cut, 1.0) for cut in self.cuts_between(scores)), *at_ranks], key=lambda c: c[0])

    def prior_cost(self, cut: float, r: float) -> float:
        """Expected cost of PRIOR_COUNT pseudo-samples, anomalous with chance 1 / (1 + (u / r)^2) at tail rank u.

        With v the cut's own tail rank: C_1 times the integral of that chance over u > v, and C_-1 times the integral of
        what is left of 1 over u < v.
        """
        n = len(self.recent)
        v = (sum(1 for score in self.recent if score > cut) + 0.5) / (n + 1)
        missed = r * (atan(1 / r) - atan(v / r))
        falsely_flagged = v - r * atan(v / r)
        return PRIOR_COUNT * (self.cost_anomalous * missed + self.cost_normal * falsely_flagged)


class NaiveRelative(NaiveFixed):
    """Another rule on scores less the median of the WINDOW before each; the first, which has none, is left out."""

    def __init__(self, rule: NaiveFixed) -> None:
        self.rule = rule
        self.seen: list[float] = []

    def level(self) -> float:
        return median(self.seen[-WINDOW:]) if self.seen else 0.0

    @property
    def value(self) -> float:
        return min(self.level() + self.rule.value, float_info.max)

    def see(self, score: float) -> None:
        if self.seen:
            self.rule.see(score - self.level())
        self.seen.append(score)

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        self.rule.label(seq, score - level, label)

    def refit(self) -> None:
        self.rule.refit()


NAIVE_THRESHOLDS = {
    "fixed": NaiveFixed,
    "ogd": NaiveGradient,
    "hindsight": NaiveHindsight,
    "weighted": NaiveWeighted,
}


def naive_threshold(config: DetectorConfig, log_volume: float, types: dict[str, type] = NAIVE_THRESHOLDS) -> NaiveFixed:
    """The rule that a config names."""
    if config.drift_relative:
        return NaiveRelative(types[config.threshold](config, 0.0))
    return types[config.threshold](config, log_volume)
