"""Half-space trees, those of river, which takes dictionaries, one sample at a time."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from app.replay.rivals.rival import Floats
from app.replay.rivals.windows import FilledIn

SEED: Final = 1
TREES_WINDOW: Final = 250
"""The trees score all samples 0 until they have learned so many."""


class RiverModel:
    """A river detector, or a pipeline that ends in one; sign turns its score if low is anomalous."""

    block = 1

    def __init__(self, detector: Any, sign: float = 1.0) -> None:
        self.detector = detector
        self._sign = sign

    def score(self, X: Floats) -> Floats:
        """Score samples (n, m); high = anomalous."""
        return np.array([self._sign * self.detector.score_one(dict(enumerate(row))) for row in X.tolist()])

    def learn(self, X: Floats) -> None:
        """Learn samples (n, m)."""
        for row in X.tolist():
            self.detector.learn_one(dict(enumerate(row)))


def half_space_trees() -> RiverModel:
    """Make HalfSpaceTrees with its defaults, behind the MinMaxScaler that its documentation asks for."""
    scaler = import_module("river.preprocessing").MinMaxScaler()
    trees = import_module("river.anomaly").HalfSpaceTrees(window_size=TREES_WINDOW, seed=SEED)
    return RiverModel(scaler | trees)


class Trees:
    """Half-space trees as a scorer: no score before their first window is full."""

    def __init__(self) -> None:
        self._model = half_space_trees()
        self._filled = FilledIn()
        self._n_learned = 0

    def score(self, X: Floats) -> Floats:
        """Score samples (n, m), each before it is learned."""
        return np.array([self._next(row[None]) for row in self._filled.fill(X)])

    def _next(self, x: Floats) -> float:
        score = float(self._model.score(x)[0]) if self._n_learned >= TREES_WINDOW else np.nan
        self._model.learn(x)
        self._n_learned += 1
        return score
