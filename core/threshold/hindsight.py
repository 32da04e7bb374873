"""The threshold that would have cost least on the labelled scores."""

from math import sqrt
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.base import Threshold
from core.threshold.cuts import cost_of_cuts, cuts_between
from core.threshold.labelled_scores import LabelledScores
from core.threshold.recent_scores import WINDOW, RecentScores, check_ring

REFIT_EVERY: Final = 64
FIT_SHARE: Final = 16
"""A threshold without labels is fitted anew after n / FIT_SHARE scores, REFIT_EVERY at most. Chosen by hand."""


class HindsightThreshold(Threshold):
    """The threshold of least cost on the labelled scores, eq. (26); before any label a quantile of the recent scores.

    The quantile has the tail of eq. (31). Before the first score the threshold is the largest double: nothing is
    flagged. Of several cheapest thresholds it takes the middle one.
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


def next_fit(n_seen: int) -> int:
    """The number of scores at which a threshold is fitted next, after n_seen: ever rarer, at last each REFIT_EVERY.

    >>> [next_fit(n) for n in (0, 1, 31, 32, 33, 5000)]
    [1, 2, 32, 34, 34, 5056]
    """
    step = _fit_step(n_seen)
    due = n_seen - n_seen % step + step
    return due if due % _fit_step(due) == 0 else due + step


def _fit_step(n_seen: int) -> int:
    """How far apart two fits are: a power of two, so that multiples of a longer step are multiples of a shorter one."""
    return int(min(1 << max((n_seen // FIT_SHARE).bit_length() - 1, 0), REFIT_EVERY))
