"""What is decided of each score in plain loops: the specification of core/decision/."""

from copy import deepcopy
from dataclasses import dataclass
from math import inf, isqrt
from statistics import median
from sys import float_info

import numpy as np

from core.config import DetectorConfig
from core.decision.incidents import ACCEPTED, CLOSED, MOVING, NOTHING, OPENED, OUTVOTED
from core.decision.settling import CALM, ROOM
from core.threshold.ordinary_scores import ENOUGH
from core.threshold.recent_scores import WINDOW
from tests.oracle.naive_ordinary import NaiveOrdinary
from tests.oracle.naive_threshold import NAIVE_THRESHOLDS


@dataclass
class Decided:
    """What was decided of one sample."""

    threshold: float
    severity: float = 0.0
    is_anomaly: bool = False
    level: float = 0.0
    incident: int = 0
    event: int = NOTHING
    ordinary: bool = True


@dataclass
class Seen:
    """A sample of the open incident."""

    above: float
    time: float
    is_anomaly: bool
    still: bool
    label: int = 0


class NaiveDecision:
    """Keeps all samples of the open incident, and counts them anew each time."""

    ordinary_type = NaiveOrdinary

    def __init__(self, config: DetectorConfig, log_volume: float, types: dict[str, type] = NAIVE_THRESHOLDS) -> None:
        self.config = config
        self.threshold = types[config.threshold](config, 0.0 if config.drift_relative else log_volume)
        self.anomalous: set[int] = set()
        self.ordinary = self.ordinary_type(self.anomalous)
        self.n_seen = self.newest = 0
        self.scores: list[float] = []
        self.x: list[np.ndarray] = []
        self.unflagged_lasting: list[list[int]] = []
        self.n_incidents, self.incident = 0, 0
        self.samples: dict[int, Seen] = {}
        self.settling: list[tuple[int, float]] | None = None
        self.floor, self.calm = -inf, 0
        self.base = 0.0

    def level(self) -> float | None:
        """From where the next score is measured: the median of the WINDOW before it, if any; None without any."""
        if not self.config.drift_relative:
            return self.base
        return median(self.scores[-WINDOW:]) + self.base if self.scores else None

    @property
    def value(self) -> float:
        """The threshold of the next sample: the open incident ends before it if labels dismiss it."""
        ahead = self
        if self.is_dismissed():
            ahead = deepcopy(self)
            ahead.dismiss()
        if (level := ahead.level()) is None:
            return float_info.max
        if self.config.threshold == "fixed" and not self.config.drift_relative:
            level = 0.0  # the user's number, in the user's units
        return min(level + max(ahead.threshold.value, ahead.floor), float_info.max)

    def lasting(self) -> list[int]:
        """For how many samples each value of the newest one has been there; a missing one for 1."""
        lengths = []
        for j, value in enumerate(self.x[-1]):
            length = 1
            while length < len(self.x) and self.x[-1 - length][j] == value:
                length += 1
            lengths.append(length)
        return lengths

    def stands_still(self) -> bool:
        """Whether a value of the newest sample has been there, since the incident opened, longer than any ever was in
        a sample that was not flagged.
        """
        age = self.newest - self.incident + 1 if self.incident else 0
        longest = [max([1, *column]) for column in zip(*self.unflagged_lasting, strict=True)] or [1] * len(self.x[-1])
        return any(min(now, age) > most for now, most in zip(self.lasting(), longest, strict=True))

    def warm_up(self, seq: int, x: np.ndarray, score: float) -> None:
        self.see(seq, x)
        self.unflagged_lasting.append(self.lasting())
        if (level := self.level()) is not None:
            self.count(seq, score - level)
        self.scores.append(score - self.base)

    def see(self, seq: int, x: np.ndarray) -> None:
        self.x.append(x)
        self.n_seen, self.newest = self.n_seen + 1, seq

    def count(self, seq: int, above: float) -> None:
        if self.ordinary.add(seq, above):
            self.follow()

    def follow(self) -> None:
        self.threshold.follow(self.ordinary, self.n_seen, self.newest)

    def decide(self, seq: int, x: np.ndarray, score: float, time: float) -> Decided:
        if self.is_dismissed():
            self.dismiss()
        decided = Decided(self.value)
        level = self.level()
        self.see(seq, x)
        self.scores.append(score - self.base)
        if level is None:
            self.unflagged_lasting.append(self.lasting())
            return decided
        above = score - level
        decided.level, decided.severity = level, self.ordinary.severity(above)
        decided.is_anomaly = score > decided.threshold and not self.equals(score, level, decided.threshold)
        if decided.is_anomaly:
            self.flag(decided, seq, above, time)
        else:
            self.unflagged_lasting.append(self.lasting())
            self.pass_by(decided, seq, above, time)
        return decided

    def equals(self, score: float, level: float, threshold: float) -> bool:
        """Whether a score is the threshold above the level, but for what adding and subtracting a level rounds off."""
        return bool(level) and score - threshold <= 1e-14 * (abs(level) + abs(score))

    def flag(self, decided: Decided, seq: int, above: float, time: float) -> None:
        if self.incident and self.is_long_ago(time):
            self.end()
        still = self.stands_still()
        if not self.incident:
            self.incident, decided.event = seq, OPENED
            self.n_incidents += 1
        decided.incident = self.incident
        self.samples[seq] = Seen(above, time, is_anomaly=True, still=still)
        moving = [s for s in self.flagged() if not s.still]
        decided.ordinary = not self.samples[seq].still and self.counts(len(moving))
        progress = MOVING * len(moving) + len(self.flagged()) - len(moving)
        is_long = progress >= MOVING * self.config.incident_accept_samples
        if decided.ordinary and (is_long or not self.would_lift(isqrt(len(moving)))):
            self.count(seq, above)
        if is_long and not self.is_confirmed():
            decided.event = ACCEPTED
            self.accept()

    def counts(self, n_moving: int) -> bool:
        """Whether that flagged sample of an incident counts as ordinary: the squares do."""
        return isqrt(n_moving) ** 2 == n_moving

    def would_lift(self, n: int) -> bool:
        """Whether so many scores would lift the threshold by their number alone, since the stream is young."""
        return n + 1 > self.threshold.most * (max(self.n_seen, len(self.ordinary.all)) + 2)

    def pass_by(self, decided: Decided, seq: int, above: float, time: float) -> None:
        decided.incident = self.incident
        if self.incident:
            self.samples[seq] = Seen(above, time, is_anomaly=False, still=False)
            passed = seq - max(s for s, sample in self.samples.items() if sample.is_anomaly)
            if passed >= self.config.incident_close_samples or self.is_long_ago(time):
                decided.event = CLOSED
                self.end()
        self.count(seq, above)
        self.settle(seq, above)

    def settle(self, seq: int, above: float) -> None:
        """Gather scores of what was accepted, until there are enough, or CALM samples in a row need no floor."""
        if self.settling is None:
            return
        if above > self.threshold.value:
            self.settling.append((seq, above))
        self.calm = 0 if above > self.threshold.value else self.calm + 1
        if len(self.settling) >= ENOUGH:
            self.restart(self.settling)
        elif self.calm >= CALM:
            self.settling, self.floor = None, -inf

    def flagged(self) -> list[Seen]:
        return [sample for sample in self.samples.values() if sample.is_anomaly]

    def is_confirmed(self) -> bool:
        return self.votes_against() > 0

    def is_dismissed(self) -> bool:
        """Whether labels say that the open incident is normal."""
        return self.votes_for() > OUTVOTED * self.votes_against()

    def open_incident(self) -> int:
        """The incident that is open for the next sample."""
        return 0 if self.is_dismissed() else self.incident

    def votes_for(self) -> int:
        return sum(1 for sample in self.flagged() if sample.label < 0)

    def votes_against(self) -> int:
        return sum(1 for sample in self.samples.values() if sample.label > 0)

    def is_long_ago(self, time: float) -> bool:
        most = self.config.incident_close_seconds
        return most is not None and time - self.flagged()[-1].time > most

    def end(self) -> None:
        self.incident, self.samples = 0, {}

    def accept(self) -> None:
        scores = [(seq, sample.above) for seq, sample in self.samples.items() if sample.is_anomaly]
        self.end()
        if len(scores) >= ENOUGH:
            self.restart(scores[-ENOUGH:])
        elif self.config.threshold in ("weighted", "hindsight"):
            self.settling, self.calm = scores, 0
            self.floor = max(above for _, above in scores) + ROOM * self.ordinary.scale

    def restart(self, scores: list[tuple[int, float]]) -> None:
        self.settling, self.floor = None, -inf
        self.ordinary = self.ordinary_type(self.anomalous)
        for seq, score in scores:
            self.ordinary.add(seq, score)
        self.follow()

    def begin_again(self, scores: list[float]) -> None:
        """The ordinary scores are these, each as if as many had gone before as must for it to be kept."""
        level = self.base
        if self.config.drift_relative:
            self.scores = [score - level for score in scores]
            level += median(self.scores)
        self.settling, self.floor = None, -inf
        self.ordinary = self.ordinary_type(self.anomalous)
        self.ordinary.begin([score - level for score in scores])
        self.follow()

    def label(self, seq: int, score: float, level: float, label: int) -> None:
        self.threshold.label(seq, score - level, label)
        self.ordinary.label(seq, label)

    def label_incident(self, seq: int, label: int) -> None:
        """A sample gets a label: it counts if the sample is one of the open incident."""
        if seq in self.samples:
            self.samples[seq].label = label

    def dismiss(self) -> None:
        if len(self.flagged()) > 1:
            self.accept()
        else:
            self.end()
