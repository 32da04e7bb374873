"""The benchmark's scoring, profile `standard`: the worth of a flag by its place, and the best threshold of all.

Source: Lavin and Ahmad, "Evaluating Real-time Anomaly Detection Algorithms" (2015), and the repository's own sweeper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.nab.corpus import Series
from core.arrays import BoolArray, FloatArray

FALSE_ALARM: Final = 0.11
"""Cost of a false alarm, if a missed window costs 1 and a window found at its start earns 1."""
PROBATION: Final = 0.15
PROBATION_ROWS: Final = 750
"""The first rows of a series do not count: this share of them, but no more than this number."""
FAR_BEHIND: Final = 3.0
"""A false alarm this many widths after a window has the full cost."""


@dataclass(frozen=True, slots=True)
class Worth:
    """The worth of a flag at each counted row of a series, (k,), and the window of the row or -1, (k,)."""

    rows: slice
    value: FloatArray
    window: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The score (100: all windows found at their first row, 0: no flag), the threshold, and its results."""

    score: float
    threshold: float
    windows: int
    found: int
    false_alarms: int


def worth(series: Series) -> Worth:
    """The worth of the flags of a series."""
    n = len(series.values)
    place = np.arange(n, dtype=float)
    value, window = np.full(n, -FALSE_ALARM), np.full(n, -1)
    for k, (first, last) in enumerate(series.windows):
        width = last - first + 1
        inside, behind = slice(first, last + 1), slice(last + 1, n)
        value[inside] = _sigmoid((place[inside] - last - 1) / width) / _sigmoid(-1.0)
        distance = (place[behind] - last) / max(width - 1, 1)
        value[behind] = FALSE_ALARM * np.where(distance > FAR_BEHIND, -1.0, _sigmoid(distance))
        window[inside] = k
    counted = slice(min(int(PROBATION * n), PROBATION_ROWS), n)
    return Worth(counted, value[counted], window[counted])


def _sigmoid(position: float | FloatArray) -> FloatArray:
    """From nearly 1 at position -1, a window's left edge, through 0 at its right edge, to nearly -1 after it."""
    return np.asarray(2 / (1 + np.exp(5 * np.asarray(position))) - 1)


def best_outcome(corpus: Sequence[Series], scores: Mapping[str, FloatArray]) -> Outcome:
    """Flag rows by the best threshold for all series together (score >= threshold).

    scores: by series, (n,) each, high = anomalous; NaN is never flagged.
    """
    pooled = _Pooled(corpus, scores)
    totals = pooled.totals()
    best = int(totals.argmax())
    return pooled.outcome(best, float(totals[best]))


def outcome_at(corpus: Sequence[Series], scores: Mapping[str, FloatArray], threshold: float) -> Outcome:
    """Flag rows by a given threshold."""
    pooled = _Pooled(corpus, scores)
    cut = int(np.count_nonzero(pooled.score >= threshold))
    return pooled.outcome(cut, float(pooled.running(cut)[-1]) if cut else pooled.missed)


def flags_outcome(corpus: Sequence[Series], flags: Mapping[str, BoolArray]) -> Outcome:
    """Score decisions."""
    return outcome_at(corpus, {name: np.where(flag, 1.0, np.nan) for name, flag in flags.items()}, 1.0)


class _Pooled:
    """The counted rows of all series that can be flagged, those with the highest scores first."""

    def __init__(self, corpus: Sequence[Series], scores: Mapping[str, FloatArray]) -> None:
        worths = [worth(series) for series in corpus]
        score = np.concatenate([scores[s.name][w.rows] for s, w in zip(corpus, worths, strict=True)])
        value, window = np.concatenate([w.value for w in worths]), self._numbered(worths)
        self.windows = len(np.unique(window[window >= 0]))
        order = np.argsort(-score, kind="stable")[: np.count_nonzero(~np.isnan(score))]
        self.score, self.value, self.window = score[order], value[order], window[order]

    @staticmethod
    def _numbered(worths: Sequence[Worth]) -> NDArray[np.int64]:
        """The window of each row, by a number of its own over all series."""
        counts = [int(w.window.max(initial=-1)) + 1 for w in worths]
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        return np.concatenate([np.where(w.window < 0, -1, w.window + s) for w, s in zip(worths, starts, strict=True)])

    @property
    def missed(self) -> float:
        """The sum if nothing is flagged."""
        return -float(self.windows)

    def running(self, cut: int) -> FloatArray:
        """The sum after each of the first rows: false alarms add up, and only the best row of a window counts."""
        best: dict[int, float] = {}
        gains = self.value[:cut].copy()
        for i in np.flatnonzero(self.window[:cut] >= 0):
            k, value = int(self.window[i]), float(self.value[i])
            gains[i] = max(value - best.get(k, -1.0), 0.0)
            best[k] = max(value, best.get(k, -1.0))
        total: FloatArray = self.missed + np.cumsum(gains)
        return total

    def totals(self) -> FloatArray:
        """The sum without a flag, and after each row; -inf between rows of equal score, which no threshold parts."""
        running = self.running(len(self.score))
        is_last = np.append(self.score[:-1] != self.score[1:], True)[: len(self.score)]
        return np.concatenate([[self.missed], np.where(is_last, running, -np.inf)])

    def outcome(self, cut: int, total: float) -> Outcome:
        window = self.window[:cut]
        return Outcome(
            score=100 * (total + self.windows) / (2 * self.windows),
            threshold=float(self.score[cut - 1]) if cut else float("inf"),
            windows=self.windows,
            found=len(np.unique(window[window >= 0])),
            false_alarms=int(np.count_nonzero(window < 0)),
        )
