"""What is decided of each score: whether it is flagged, how rare it is, and to which incident its sample belongs.

The order, for each sample: its threshold; the decision; the incident; then, if the sample is ordinary, its score joins
those by which the next one is decided.
"""

from collections.abc import Sequence
from copy import deepcopy
from sys import float_info
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.config import DetectorConfig
from core.decision.held_out import HeldOut
from core.decision.incidents import ACCEPTED, NOTHING, Incidents
from core.decision.settling import Settling
from core.decision.stillness import Stillness
from core.snapshot import Arrays, take
from core.threshold import Threshold, threshold_of
from core.threshold.ordinary_scores import ENOUGH, OrdinaryScores, finite
from core.threshold.recent_scores import WINDOW, RecentScores, check_ring
from core.threshold.sample_scores import NO_SAMPLE, SampleScores

ROUNDINGS: Final = 4 * float_info.epsilon


class Decision(NamedTuple):
    """What was decided of a sample.

    level is what the score was measured from; ordinary tells whether the sample counts as ordinary.
    """

    threshold: float
    severity: float
    is_anomaly: bool
    level: float
    incident: int
    event: int
    ordinary: bool


class Decisions(NamedTuple):
    """What was decided of n samples, the fields of a Decision as columns (n,)."""

    threshold: FloatArray
    severity: FloatArray
    is_anomaly: BoolArray
    level: FloatArray
    incident: IntArray
    event: NDArray[np.int8]
    ordinary: BoolArray

    @classmethod
    def of(cls, decided: Sequence[Decision]) -> "Decisions":
        """Put decisions together, at least one."""
        return cls(*(np.array(column, kind) for column, kind in zip(zip(*decided, strict=True), KINDS, strict=True)))


KINDS: Final = (np.float64, np.float64, np.bool_, np.float64, np.int64, np.int8, np.bool_)
"""The types of the columns of Decisions."""


class DecisionRule:
    """The threshold that a config names, over the scores of ordinary samples, and the incidents.

    With drift_relative all of it works on how far scores lie above their level, the median of the scores before; the
    first score has no level, and nothing is decided by it.

    base, in nats, is what the units of features that moved late have added to all scores: it is a part of the level.
    held_out says which samples do not count.
    """

    def __init__(self, config: DetectorConfig, log_volume: float, held_out: HeldOut | None = None) -> None:
        # the Jacobian is in score and level alike
        self.threshold: Threshold = threshold_of(config, 0.0 if config.drift_relative else log_volume)
        self.ordinary = OrdinaryScores()
        self.incidents = Incidents(config)
        self._n_seen, self._newest, self._stale = 0, 0, False
        self._held_out = HeldOut() if held_out is None else held_out
        self._settling, self._stillness = Settling(), Stillness(len(config.values))
        self._recent = RecentScores() if config.drift_relative else None
        self._n_values = len(config.values)
        self.base = 0.0
        self._in_user_units = config.threshold == "fixed" and not config.drift_relative

    def begin_warm(self, other: "DecisionRule", n_samples: int, newest: int) -> None:
        """Begin with the newest n_samples ordinary scores of another rule; there are no labels and no incident yet."""
        self.ordinary = OrdinaryScores.of(SampleScores.of(other.ordinary.newest(n_samples)))
        self._stillness, self._recent, self.base = other._stillness, other._recent, other.base
        self._newest = newest
        self._follow()

    def adopt(self, other: "DecisionRule") -> None:
        """Go on from the rule of another config, which is not used any more; that config measures scores as this one.

        The ordinary scores and the labelled ones stay; what the new config makes of them holds from the next sample on.
        """
        self.ordinary, self._settling, self._stillness = other.ordinary, other._settling, other._stillness
        self._recent, self.base = other._recent, other.base
        self._n_seen, self._newest = other._n_seen, other._newest
        self.incidents.adopt(other.incidents)
        self.threshold.adopt(other.threshold)
        self._follow()

    @property
    def value(self) -> float:
        """The threshold that the next score will meet, in the user's units; the largest double if it has no level."""
        rule = self._ahead()
        value = max(rule.threshold.value, rule._settling.floor)
        if rule._recent is not None:
            return _raised(value, rule._recent.median + rule.base) if rule._recent.ring else float_info.max
        return value if rule._in_user_units else finite(value + rule.base)

    @property
    def level(self) -> float | None:
        """From where the next score is measured, in the user's units; None if there is nothing before it."""
        if self._recent is None:
            return self.base
        return self._recent.median + self.base if self._recent.ring else None

    def looks_rare(self, above: float) -> bool:
        """Whether a score so far above its level lies in the tail by which a threshold follows the ordinary ones."""
        return self.threshold.follows and above > self.ordinary.start

    @property
    def incident(self) -> int:
        """The incident that is open for the next sample, 0 if there is none."""
        return 0 if self.incidents.is_dismissed else self.incidents.id

    def warm_up(self, seq: int, X: FloatArray, scores: FloatArray) -> None:
        """Take note of values (n, m) of the warm-up and of the scores (n,) that they would have had."""
        self._stillness.allow(self._stillness.lasting(X))
        for i, score in enumerate(scores.tolist()):
            level = self._next_level(score)
            self._n_seen, self._newest = self._n_seen + 1, seq + i
            if level is not None:
                self._count(seq + i, finite(score - level))

    def decide(self, seq: int, X: FloatArray, scores: FloatArray, times: FloatArray) -> Decisions:
        """Decide samples of these values (n, m), the first one number seq, one after the other."""
        self._end_dismissed()
        lasting, decided = self._stillness.lasting(X), []
        allowed = 0
        for i, (score, time) in enumerate(zip(scores.tolist(), times.tolist(), strict=True)):
            threshold = self.value
            if score > threshold:
                self._stillness.allow(lasting[allowed:i])
                allowed = i + 1
            decided.append(self._decide(seq + i, score, threshold, time, lasting[i]))
        self._stillness.allow(lasting[allowed:])
        return Decisions.of(decided)

    def decide_one(self, seq: int, x: Sequence[float], score: float, time: float) -> Decision:
        """Decide one sample of these values (m,): what decide does, without arrays."""
        self._end_dismissed()
        lasting = self._stillness.next(x)
        decided = self._decide(seq, score, self.value, time, lasting)
        if not decided.is_anomaly:
            self._stillness.allow_next(lasting)
        return decided

    def _decide(
        self, seq: int, score: float, threshold: float, time: float, lasting: Sequence[int] | IntArray
    ) -> Decision:
        """Decide a sample whose values have stood so long (m,)."""
        level = self._next_level(score)
        self._n_seen, self._newest = self._n_seen + 1, seq
        if level is None:
            return Decision(threshold, 0.0, False, 0.0, 0, NOTHING, True)
        above = finite(score - level)
        severity = self.ordinary.severity(above)
        if score > threshold:
            return Decision(threshold, severity, True, level, *self._flag(above, time, lasting))
        return Decision(threshold, severity, False, level, *self._pass(above, time), True)

    def severities(self, scores: FloatArray) -> FloatArray:
        """How rare scores (n,) are if they come next, each (n,); nothing takes note of them."""
        rule = self._ahead()
        if (level := rule.level) is None:
            return np.zeros(len(scores))
        return np.array([rule.ordinary.severity(finite(score - level)) for score in scores.tolist()], float)

    def _ahead(self) -> "DecisionRule":
        """The rule as the next sample will find it."""
        if not self.incidents.is_dismissed:
            return self
        ahead = deepcopy(self)
        ahead._dismiss()
        return ahead

    def _flag(self, above: float, time: float, lasting: Sequence[int] | IntArray) -> tuple[int, int, bool]:
        """A sample whose values have stood so long (m,) is flagged: its incident, the event, whether it is ordinary."""
        self.incidents.expire(time)
        age = self._age(self.incidents.id) if self.incidents.id else 0
        still = self._stillness.unusual(lasting, age)
        event = self.incidents.flag(self._newest, above, time, still=still)
        incident, ordinary = self.incidents.id, self.incidents.counts_as_ordinary(still=still)
        if ordinary and not (self.incidents.is_short and self._would_lift(self.incidents.n_ordinary)):
            self._count(self._newest, above)
        if event == ACCEPTED:
            self._accept()
        return incident, event, ordinary

    def _would_lift(self, n: int) -> bool:
        """Whether so many scores would lift the threshold by their number alone, since the stream is young."""
        return n + 1 > self.threshold.most * (max(self._n_seen, self.ordinary.n) + 2)

    def _pass(self, above: float, time: float) -> tuple[int, int]:
        """A sample is not flagged: the incident that it belongs to, and the event."""
        incident, event = self.incidents.id, self.incidents.pass_by(time)
        self._count(self._newest, above)
        if (gathered := self._settling.pass_by(self._newest, above, self.threshold.value)) is not None:
            self._restart(gathered)
        return incident, event

    def _next_level(self, score: float) -> float | None:
        """From where a score is measured, which then counts for those after it; None if there is nothing before it."""
        level = self.level
        if self._recent is not None:
            self._recent.add(finite(score - self.base))
        return level

    def _count(self, seq: int, above: float) -> None:
        """Let the score of an ordinary sample join those by which the next ones are decided."""
        if self.ordinary.add(seq, above):
            self._follow()

    def _follow(self) -> None:
        """Bring the threshold up to date."""
        self.threshold.follow(self.ordinary, self._n_seen, self._age)

    def _age(self, seq: int) -> int:
        """How many samples have come since this one, with both ends, but for those that were held out."""
        return self._newest - seq + 1 - self._held_out.after(seq)

    def hold_out(self, newest: int) -> None:
        """Samples were held out, up to the one of this seq."""
        self._newest = newest

    def _accept(self) -> None:
        """Take what the open incident shows as the new normal."""
        peak, scores = self.incidents.peak, self.incidents.accept()
        if len(scores) >= ENOUGH:
            self._restart(scores)
        elif self.threshold.follows:
            self._settling.begin(peak, scores, self.ordinary)

    def _end_dismissed(self) -> None:
        if self.incidents.is_dismissed:
            self._dismiss()

    def _dismiss(self) -> None:
        """End the open incident by its labels: one flagged sample was a false alarm, more of them are the new normal.

        This waits for the next sample, so that all labels that come before it count, in any order.
        """
        if self.incidents.n_flagged > 1:
            self._accept()
        else:
            self.incidents.accept()

    def _restart(self, scores: SampleScores) -> None:
        self._settling.end()
        self.ordinary = OrdinaryScores.of(scores)
        self._follow()

    def begin_again(self, scores: FloatArray) -> None:
        """Take these scores (n,) for those of ordinary samples so far, since the densities have changed at once."""
        level = self.base
        if self._recent is not None and len(scores):
            self._recent = RecentScores()
            self._recent.load(scores[-WINDOW:] - level, 0)
            level += self._recent.median
        self._restart(SampleScores((NO_SAMPLE, finite(score - level)) for score in scores.tolist()))

    def label(self, seq: int, score: float, level: float, label: int) -> None:
        """Learn that a sample, its score and level given, is anomalous (+1), normal (-1) or unknown again (0).

        The score and level are those by which the threshold moves. Where the sample counts, its score then is set aside
        if it is anomalous.
        """
        self.threshold.label(seq, finite(score - level), label)
        self.ordinary.label(seq, anomalous=label > 0)
        for waiting in (self.incidents.scores, self._settling.scores):
            waiting.label(seq, anomalous=label > 0)
        self._stale = True

    def follow_labels(self) -> None:
        """Bring the threshold up to date with the labels; called before it is read."""
        if self._stale:
            self._stale = False
            self._follow()

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        self._newest += shift
        self.incidents.renumber(shift)
        self.threshold.renumber(shift)
        self.ordinary.renumber(shift)
        self._settling.scores.renumber(shift)

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        arrays = self.threshold.state() | self.ordinary.state() | self.incidents.state()
        arrays |= self._settling.state() | self._stillness.state() | {"level_base": np.array([self.base])}
        if self._recent is not None:
            arrays["level_recent"] = np.array(self._recent.ring, float)
            arrays["level_oldest"] = np.array([self._recent.oldest])
        return arrays

    def check(self, arrays: Arrays, next_seq: int) -> None:
        """InvalidSnapshot if a state does not fit."""
        self.threshold.check(arrays)
        self.ordinary.check(arrays, next_seq)
        self.incidents.check(arrays, next_seq)
        self._settling.check(arrays, next_seq)
        self._stillness.check(arrays, self._n_values)
        take(arrays, "level_base", np.float64, (1,))
        if self._recent is not None:
            oldest = int(take(arrays, "level_oldest", np.int64, (1,))[0])
            check_ring(take(arrays, "level_recent", np.float64, (-1,)), oldest)

    def load(self, arrays: Arrays, first_seq: int, next_seq: int) -> None:
        """Take over a state, of a stream whose samples have these numbers."""
        self._n_seen, self._newest = next_seq - first_seq - self._held_out.n, next_seq - 1
        for part in (self.threshold, self.ordinary, self.incidents, self._settling, self._stillness):
            part.load(arrays)
        self.base = float(arrays["level_base"][0])
        if self._recent is not None:
            self._recent.load(arrays["level_recent"], int(arrays["level_oldest"][0]))


def _raised(threshold: float, level: float) -> float:
    """A threshold above the level as a score, a few roundings higher: who equals it above the level passes here too."""
    slack = ROUNDINGS * abs(threshold) + ROUNDINGS * abs(level)
    return finite(threshold + level + slack)
