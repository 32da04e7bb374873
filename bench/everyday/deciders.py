"""Detectors with decisions: ours, and simple peers with common thresholds."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from scipy.stats import chi2, norm

from app.replay.rivals.rival import Decisions
from app.replay.rivals.trees import half_space_trees
from app.replay.rivals.windows import FilledIn, Windowed, largest, z_score
from bench.peers.forests import RandomCutForest
from bench.protocol import Model
from core import Detector, DetectorConfig, Records
from core.arrays import BoolArray, FloatArray

RATE: Final = 0.01
"""The share of ordinary samples that a peer flags by its own rule: our expected_anomaly_rate."""
RECENT: Final = 1000


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


class Limited:
    """A rule over the last 256 samples, with a fixed threshold."""

    def __init__(self, rule: Callable[[FloatArray, FloatArray], float], threshold: float) -> None:
        self._windowed = Windowed(rule)
        self._threshold = threshold

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        scores = self._windowed.score(X)
        return Decisions(scores, scores > self._threshold)

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


def mad(window: FloatArray, x: FloatArray) -> float:
    """The largest distance from the median, in median absolute deviations made comparable with deviations."""
    middle = np.median(window, 0)
    return largest(x - middle, 1.4826 * np.median(np.abs(window - middle), 0))


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
    Contender("z-score", lambda m, _: Limited(z_score, float(norm.isf(RATE / (2 * m))))),
    Contender("MAD", lambda m, _: Limited(mad, float(norm.isf(RATE / (2 * m))))),
    Contender("Mahalanobis", lambda m, _: Limited(mahalanobis, float(chi2.isf(RATE, m)))),
    Contender("HalfSpaceTrees", lambda _m, _: Ranked(half_space_trees()), "river"),
    Contender("rcf3", lambda m, _: Ranked(RandomCutForest(m)), "rcf3"),
)
