"""ITAN in plain loops, one sample at a time: the specification of core, as far as section 8 of docs/method.md says."""

from copy import copy, deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import cos, floor, inf, isnan, log, nan, nextafter, pi, sin
from zoneinfo import ZoneInfo

import numpy as np

from core.config import AffineScaling, DetectorConfig
from core.engine.scales import RESCORED
from core.threshold.ordinary_scores import ENOUGH
from tests.oracle.naive_decision import NaiveDecision
from tests.oracle.naive_density import NaiveDensity, Sample, Vector
from tests.oracle.naive_evidence import NaiveEvidence
from tests.oracle.naive_resemblance import NaiveResemblance
from tests.oracle.naive_scales import NaiveFeature
from tests.oracle.naive_threshold import NAIVE_THRESHOLDS


@dataclass
class Row:
    """What is known of one sample: what was said of it, its label, and how it was learned."""

    seq: int
    x: Vector
    score: float = nan
    threshold: float = nan
    is_anomaly: bool = False
    ready: bool = False
    label: int = 0
    learned: Sample | None = None
    time: float = nan
    level: float = 0.0
    severity: float = nan
    incident: int = 0
    event: int = 0
    ordinary: bool = True


class NaiveDetector:
    """Scaling, density and threshold; scores and thresholds in the user's units."""

    paper_density: type[NaiveDensity] = NaiveDensity
    feature_type = NaiveFeature
    default_density: type[NaiveEvidence] = NaiveEvidence
    threshold_types = NAIVE_THRESHOLDS
    decision: type[NaiveDecision] = NaiveDecision
    resemblance_type: type[NaiveResemblance] = NaiveResemblance

    def __init__(self, config: DetectorConfig) -> None:
        self.config, self.m = config, config.n_features
        self.density = (self.paper_density if config.profile == "paper" else self.default_density)(config)
        self.resemblance = self.resemblance_type(config)
        self.rows: list[Row] = []
        self.ready = False
        self.features: list[NaiveFeature] = []
        if isinstance(config.scaling, AffineScaling):
            self.begin(np.array(config.scaling.location), np.array(config.scaling.scale))
        elif config.scaling == "none":
            self.begin(np.zeros(self.m), np.ones(self.m))

    def begin(self, location: Vector, scale: Vector) -> None:
        self.ready, self.location, self.scale = True, location, scale
        self.rule = self.decision(self.config, self.log_volume(), self.threshold_types)

    def log_volume(self) -> float:
        """Of the values: context is not scored."""
        return sum(log(self.scale[j]) for j in self.config.values)

    def scaled(self, x: Vector, time: float) -> Vector:
        """What the model sees: the features, scaled, and the calendar."""
        return np.concatenate([(x - self.location) / self.scale, self.calendar(time)])

    def calendar(self, time: float) -> Vector:
        """Two circles of radius 2 for each period, once and twice round."""
        chosen, columns = self.config.calendar, []
        for period in chosen.periods if chosen else ():
            share = self.share_of(period, chosen.timezone, time)
            columns += [2 * f(2 * pi * k * share) for k in (1, 2) for f in (sin, cos)]
        return np.array(columns)

    def share_of(self, period: str | float, timezone: str, time: float) -> float:
        """How much of a period has gone: since midnight or Monday by the local clock, or since 1970."""
        if isnan(time):
            return nan
        if not isinstance(period, str):
            return time % period / period
        local = datetime.fromtimestamp(floor(time), ZoneInfo(timezone)).replace(tzinfo=None)
        days = 1 if period == "day" else 7
        start = datetime.combine(local.date(), datetime.min.time()) - timedelta(local.weekday() if days == 7 else 0)
        return ((local - start).total_seconds() + time - floor(time)) / (days * 86_400)

    def observe(self, x: Vector, time: float = nan) -> Row:
        """Score, decide, and only then learn; during the warm-up only keep."""
        row = Row(len(self.rows) + 1, x, time=time)
        self.rows.append(row)
        if self.ready:
            self.wake(x)
            self.pass_by(row, decide=True)
            for feature, value in zip(self.features, x, strict=False):
                feature.show(float(value))
            self.settle()
        elif len(self.rows) == self.config.warmup:
            self.begin(*estimated_scaling([r.x for r in self.rows]))
            self.watch()
            for kept in self.rows:
                self.pass_by(kept, decide=False)
                self.remember(kept)
        return row

    def hold_out(self, x: Vector, time: float = nan) -> Row:
        """What would be said of the sample if it came next, by copies of all that would change; it gets no number."""
        row = Row(0, x, time=time)
        if self.ready:
            ahead = copy(self)
            ahead.location, ahead.scale = self.location.copy(), self.scale.copy()
            ahead.features, ahead.rule = deepcopy((self.features, self.rule))
            ahead.wake(x)
            row.score = ahead.score_of(ahead.density.examine(ahead.scaled(x, time), time))
            decided = ahead.rule.decide(len(self.rows) + 1, x[list(self.config.values)], row.score, time)
            row.ready, row.is_anomaly = True, decided.is_anomaly
            row.threshold, row.severity = decided.threshold, decided.severity
        return row

    def watch(self) -> None:
        """See which scales the warm-up has not told."""
        if self.config.profile == "paper":
            return
        rate = self.config.expected_anomaly_rate
        columns = np.array([row.x for row in self.rows]).T.tolist()
        told = zip(columns, self.location, self.scale, strict=True)
        self.features = [self.feature_type(*each, rate) for each in told]
        self.settle()

    def wake(self, x: Vector) -> None:
        """A feature that has never moved gets a unit by its first step; all scores change by its log."""
        for j, feature in enumerate(self.features):
            if feature.wake(float(x[j])):
                self.rule.base += (log(feature.scale) - log(self.scale[j])) * (j in self.config.values)
                self.location[j], self.scale[j] = feature.location, feature.scale

    def settle(self) -> None:
        """Where a spread has changed, the newest samples' scores by today's model are the ordinary ones."""
        for j, feature in enumerate(self.features):
            if feature.spread is not None:
                self.density.tell(j, *feature.spread)
            feature.spread = None
        if self.density.followed:
            self.density.followed = False
            newest = self.density.newest(RESCORED)
            scores = [self.score_of(self.density.examine(z)) for z in newest]
            if len(scores) >= ENOUGH:
                self.rule.begin_again(scores)

    def score_of(self, sample: Sample) -> float:
        return self.log_volume() - sample.log_p + self.resemblance.added(sample.value)

    def pass_by(self, row: Row, *, decide: bool) -> None:
        sample = self.density.examine(self.scaled(row.x, row.time), row.time)
        score, values = self.log_volume() - sample.log_p, row.x[list(self.config.values)]
        raised = score + self.resemblance.added(sample.value)
        if decide:
            row.score, row.ready = raised, True
            vars(row).update(vars(self.rule.decide(row.seq, values, raised, row.time)))
        else:
            self.rule.warm_up(row.seq, values, raised)
        if row.ordinary:
            self.resemblance.samples.append((sample.value, score - self.rule.base))
        if self.is_wanted(row):
            self.learn(row, sample)

    def learn(self, row: Row, sample: Sample) -> None:
        row.learned = sample
        self.density.learn(sample)

    def is_wanted(self, row: Row) -> bool:
        """Whether learn_from wants this sample in the density, by its label and its decision."""
        if self.config.learn_from == "all":
            return row.label == -1 or (row.label == 0 and row.ordinary)
        if self.config.learn_from == "decided_normal":
            return row.label == -1 or (row.label == 0 and not row.is_anomaly)
        return row.label == -1

    def feedback(self, pairs: list[tuple[int, bool | None]]) -> list[str]:
        """The labels of one call: each moves threshold and density in turn, then the threshold is fitted."""
        self.threshold_moved = False
        before = self.rule.open_incident() if self.ready else 0
        outcome = [self.relabel(seq, label) for seq, label in pairs]
        if self.threshold_moved:
            self.rule.follow()
        self.accepted = [before] if before and not self.rule.open_incident() else []
        return outcome

    def relabel(self, seq: int, label: bool | None) -> str:
        """A label, or None to withdraw it: moves the threshold, and takes the sample out of or into the density."""
        row = self.rows[seq - 1]
        old, row.label = row.label, 0 if label is None else 1 if label else -1
        if row.label == old:
            return "duplicate"
        if self.ready:
            if row.ready:
                self.rule.label(row.seq, *self.telling(row), row.label)
                self.threshold_moved = True
            self.move_in_density(row)
            self.remember(row, withdrawn=True)
            self.settle()
            self.rule.label_incident(row.seq, row.label)
        if row.label == 0:
            return "withdrawn"
        return "applied" if old == 0 else "revised"

    def telling(self, row: Row) -> tuple[float, float]:
        """The score that the threshold is told, and its level: today's for a normal that has become less rare."""
        level = self.rule.level()
        if row.label != -1 or self.config.threshold not in ("weighted", "hindsight"):
            return row.score, row.level
        if row.score - row.level <= self.rule.ordinary.start:
            return row.score, row.level
        today = self.score_of(self.density.examine(self.scaled(row.x, row.time), row.time))
        return min((row.score, row.level), (today, level), key=lambda pair: pair[0] - pair[1])

    def move_in_density(self, row: Row) -> None:
        if row.learned is None:
            if self.is_wanted(row):
                self.learn(row, self.density.examine(self.scaled(row.x, row.time), row.time))
        elif row.learned.void == self.is_wanted(row):
            (self.density.restore if row.learned.void else self.density.retract)(row.learned)

    def remember(self, row: Row, *, withdrawn: bool = False) -> None:
        """Let the scores know a label, by the sample as it was learned, or as it would be learned now."""
        if row.label != 0 or withdrawn:
            sample = row.learned or self.density.examine(self.scaled(row.x, row.time), row.time)
            self.resemblance.label(row.seq, row.label, sample.value)

    def costs(self) -> tuple[int, int, int, int, float, float, float | None]:
        """True alarms, false alarms, misses, true passes, their cost, and the least cost of any fixed threshold."""
        labelled = [row for row in self.rows if row.ready and row.label != 0]
        alarms = [row.label for row in labelled if row.is_anomaly]
        passes = [row.label for row in labelled if not row.is_anomaly]
        scores = sorted(row.score for row in labelled)
        best_cost, best = 0.0, None
        for cut in [nextafter(scores[0], -inf), *scores] if scores else []:
            cost = self.cost_of_fixed(cut, labelled)
            if best is None or cost < best_cost:
                best_cost, best = cost, cut
        cost = passes.count(1) * self.config.cost_false_negative + alarms.count(-1) * self.config.cost_false_positive
        return alarms.count(1), alarms.count(-1), passes.count(1), passes.count(-1), cost, best_cost, best

    def cost_of_fixed(self, cut: float, labelled: list[Row]) -> float:
        misses = sum(1 for row in labelled if row.label == 1 and row.score <= cut)
        false_alarms = sum(1 for row in labelled if row.label == -1 and row.score > cut)
        return misses * self.config.cost_false_negative + false_alarms * self.config.cost_false_positive


def estimated_scaling(samples: list[Vector]) -> tuple[Vector, Vector]:
    """Median, and quartile range over 1.349, of each feature of the warm-up; NaN is left out."""
    location, scale = [], []
    for j in range(len(samples[0])):
        column = sorted(x[j] for x in samples if not np.isnan(x[j]))
        location.append(column[(len(column) - 1) // 2] if column else 0.0)
        scale.append(spread_of(column, location[-1]))
    return np.array(location), np.array(scale)


def spread_of(column: list[float], location: float) -> float:
    """For a feature that is mostly one value, the median size of the others."""
    n = len(column)
    quartiles = column[3 * n // 4] - column[n // 4] if n else 0.0
    if quartiles > 0:
        return quartiles / 1.349
    others = sorted(abs(value - location) for value in column if value != location)
    return others[(len(others) - 1) // 2] if others else 1.0
