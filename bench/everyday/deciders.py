"""Detectors with decisions: ours, and simple peers with common thresholds."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from scipy.stats import chi2, norm

from bench.peers.forests import RandomCutForest
from bench.peers.river import half_space_trees
from bench.protocol import Model
from core import Detector, DetectorConfig, Records
from core.arrays import BoolArray, FloatArray

RATE: Final = 0.01
"""The share of ordinary samples that a peer flags by its own rule: our expected_anomaly_rate."""
WINDOW: Final = 256
RECENT: Final = 1000


class Decisions(NamedTuple):
    """Scores (n,), high = anomalous and NaN before there is any, and what was flagged (n,)."""

    score: FloatArray
    flagged: BoolArray


class Decider(Protocol):
    """Decides sample by sample, learning each after it was decided."""

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        """Decide samples (n, m) of these times (n,), in seconds, one after the other; NaN is missing."""

    def label(self, rows: Any, said: BoolArray) -> None:
        """Learn labels of rows, counted from the first sample."""


class Itan:
    """Our detector, with its defaults except what a situation sets."""

    def __init__(self, config: DetectorConfig) -> None:
        self.detector = Detector(config)
        self._records: list[Records] = []

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        seen = self.detector.observe(X, times)
        self._records += [seen.records[i : i + 1] for i in range(len(X))]
        return Decisions(seen.score, seen.is_anomaly)

    def label(self, rows: Any, said: BoolArray) -> None:
        told = Records.concatenate([self._records[row] for row in rows])
        after = self.detector.feedback(told, said.tolist()).records
        for place, row in enumerate(rows):
            self._records[row] = after[place : place + 1]


class Windowed:
    """A rule over the last 256 samples; a missing value repeats the one before it."""

    def __init__(self, score: Callable[[FloatArray, FloatArray], float], threshold: float) -> None:
        self._score, self._threshold = score, threshold
        self._seen = FilledIn()
        self._window: list[FloatArray] = []

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        scores = np.array([self._next(x) for x in self._seen.fill(X)])
        return Decisions(scores, scores > self._threshold)

    def _next(self, x: FloatArray) -> float:
        enough = len(self._window) >= 32
        score = self._score(np.array(self._window), x) if enough else np.nan
        self._window = [*self._window[-WINDOW + 1 :], x]
        return score

    def label(self, rows: Any, said: BoolArray) -> None:
        """Nothing: it has no use for labels."""


class Ranked:
    """A model of scores that flags those above the 99 % quantile of its last 1000 scores."""

    def __init__(self, model: Model) -> None:
        self._model, self._seen = model, FilledIn()
        self._quantile: Any = import_module("river.stats").RollingQuantile(1 - RATE, RECENT)

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        filled = self._seen.fill(X)
        scores, flagged = np.empty(len(X)), np.zeros(len(X), bool)
        for i in range(len(X)):
            scores[i] = self._model.score(filled[i : i + 1])[0]
            limit = self._quantile.get()
            flagged[i] = limit is not None and scores[i] > limit
            self._quantile.update(scores[i])
            self._model.learn(filled[i : i + 1])
        return Decisions(scores, flagged)

    def label(self, rows: Any, said: BoolArray) -> None:
        """Nothing: it has no use for labels."""


class FilledIn:
    """Replaces a missing value by the one before it, or by 0 if there is none."""

    def __init__(self) -> None:
        self._last: FloatArray | None = None

    def fill(self, X: FloatArray) -> FloatArray:
        filled = X.copy()
        for x in filled:
            last = np.zeros(len(x)) if self._last is None else self._last
            x[np.isnan(x)] = last[np.isnan(x)]
            self._last = x
        return filled


def z_score(window: FloatArray, x: FloatArray) -> float:
    """The largest distance from the mean, in deviations."""
    return _largest(x - window.mean(0), window.std(0))


def mad(window: FloatArray, x: FloatArray) -> float:
    """The largest distance from the median, in median absolute deviations made comparable with deviations."""
    middle = np.median(window, 0)
    return _largest(x - middle, 1.4826 * np.median(np.abs(window - middle), 0))


def _largest(distance: FloatArray, scale: FloatArray) -> float:
    """The largest share; a feature that has not moved counts as 0 while it stays, as 1e6 when it moves."""
    share = np.abs(distance) / np.where(scale > 0, scale, np.inf)
    return float(np.where((scale == 0) & (distance != 0), 1e6, share).max())


def mahalanobis(window: FloatArray, x: FloatArray) -> float:
    """The squared Mahalanobis distance from the mean, by the window's covariance."""
    distance = x - window.mean(0)
    return float(distance @ np.linalg.pinv(np.atleast_2d(np.cov(window.T)), hermitian=True) @ distance)


class Contender(NamedTuple):
    """A name, how to make a decider for a number of features and a situation's config, and the module that it needs."""

    name: str
    make: Callable[[int, dict[str, Any]], Decider]
    module: str = "core"

    @property
    def present(self) -> bool:
        return find_spec(self.module) is not None


def _ours(n_features: int, config: dict[str, Any]) -> Decider:
    return Itan(DetectorConfig(n_features, **config))


OURS: Final = Contender("ITAN", _ours)
PEERS: Final = (
    Contender("z-score", lambda m, _: Windowed(z_score, float(norm.isf(RATE / (2 * m))))),
    Contender("MAD", lambda m, _: Windowed(mad, float(norm.isf(RATE / (2 * m))))),
    Contender("Mahalanobis", lambda m, _: Windowed(mahalanobis, float(chi2.isf(RATE, m)))),
    Contender("HalfSpaceTrees", lambda _m, _: Ranked(half_space_trees()), "river"),
    Contender("rcf3", lambda m, _: Ranked(RandomCutForest(m)), "rcf3"),
)
