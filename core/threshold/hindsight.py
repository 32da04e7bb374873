"""The threshold that would have cost least on the labelled scores."""

from collections.abc import Callable
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.config import DetectorConfig
from core.snapshot import Arrays, take
from core.threshold.base import Threshold
from core.threshold.cuts import cost_of_cuts, cuts_between
from core.threshold.labelled_scores import LabelledScores
from core.threshold.ordinary_scores import TOLERANCE, OrdinaryScores

MOST: Final = 1.5
"""Scores that are reached more often than so many times the expected anomalies are ordinary. Chosen by hand."""


class HindsightThreshold(Threshold):
    """The threshold of least cost on the labelled scores, eq. (26); before any label by the tail of the ordinary ones.

    That is the score beyond which ordinary ones have the chance of eq. (33), but not below those that came more often
    than anomalies are expected. Of several cheapest thresholds it takes the middle one.
    """

    follows = True

    def __init__(self, config: DetectorConfig) -> None:
        self.cost_anomalous, self.cost_normal = config.cost_false_negative, config.cost_false_positive
        self.chance = config.false_alarm_rate
        self.most = max(MOST * config.expected_anomaly_rate, self.chance)
        self.labelled = LabelledScores()
        self.value = float_info.max

    def follow(self, ordinary: OrdinaryScores, n_seen: int, age: Callable[[int], int]) -> None:
        fits = bool(self.labelled) and ordinary.n > 0
        self.value = self._fit(ordinary, n_seen, age) if fits else self._start(ordinary)

    def _start(self, ordinary: OrdinaryScores) -> float:
        return max(ordinary.threshold(self.chance), ordinary.quantile(self.most) + TOLERANCE)

    def adopt(self, other: Threshold) -> None:
        """Go on with the labelled scores of a rule that keeps them."""
        if isinstance(other, HindsightThreshold):
            self.labelled = other.labelled

    def label(self, seq: int, score: float, label: int) -> None:
        self.labelled.put(seq, score, label)

    def renumber(self, shift: int) -> None:
        self.labelled.renumber(shift)

    def _fit(self, ordinary: OrdinaryScores, n_seen: int, age: Callable[[int], int]) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        cuts = cuts_between(score)
        cost = cost_of_cuts(cuts, score, step)
        best = np.flatnonzero(cost <= cost.min() + 1e-12)
        return float(cuts[best[len(best) // 2]])

    def state(self) -> dict[str, NDArray[Any]]:
        labels, score = self.labelled.table()
        return super().state() | {
            "threshold_labels": labels,
            "threshold_scores": score,
            "threshold_clock": np.array([self.labelled.n_labels]),
        }

    def check(self, arrays: Arrays) -> None:
        super().check(arrays)
        score = take(arrays, "threshold_scores", np.float64, (-1,))
        labels = take(arrays, "threshold_labels", np.int64, (3, len(score)))
        self.labelled.check(labels, score, int(take(arrays, "threshold_clock", np.int64, (1,))[0]))

    def load(self, arrays: Arrays) -> None:
        super().load(arrays)
        self.labelled.load(arrays["threshold_labels"], arrays["threshold_scores"], int(arrays["threshold_clock"][0]))
