"""A rule applied to how far scores lie above their level."""

from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.snapshot import Arrays, take
from core.threshold.base import Threshold
from core.threshold.recent_scores import RecentScores, check_ring

ROUNDINGS: Final = 4 * float_info.epsilon
"""How much higher a threshold is told than computed: level and difference round twice each, and equal scores pass."""


class RelativeThreshold(Threshold):
    """Another rule, on how far scores lie above their level: for streams whose scores all rise and fall together.

    The level of a score is the median of the WINDOW scores before it. The first score has none, so the rule never sees
    it. The paper has no such rule.
    """

    def __init__(self, rule: Threshold) -> None:
        self.rule, self._recent = rule, RecentScores()

    @property
    def value(self) -> float:  # type: ignore[override]
        """The level of the next score plus the rule's threshold above it, in nats."""
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
    """How far scores lie above their levels, within the doubles."""
    with np.errstate(over="ignore"):  # scores saturate at the largest double, on either side
        return np.clip(score - level, -float_info.max, float_info.max)


def _raised(threshold: FloatArray, level: FloatArray) -> FloatArray:
    """Thresholds above the level as scores, a few roundings higher: a score that equals one must pass."""
    with np.errstate(over="ignore"):  # before any score the rule's threshold is the largest double
        slack = ROUNDINGS * np.abs(threshold) + ROUNDINGS * np.abs(level)
        return np.clip(threshold + level + slack, -float_info.max, float_info.max)
