"""Peers with an interface of their own: rcf3's random cut forest and PySAD's LODA."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray

SEED: Final = 1


class RandomCutForest:
    """rcf3's Forest with its defaults: 50 trees of 256 samples."""

    block = 1

    def __init__(self, n_features: int) -> None:
        self.forest: Any = import_module("rcf3").Forest(n_features, seed=SEED)

    def score(self, X: FloatArray) -> FloatArray:
        return np.array([self.forest.score(row) for row in X.tolist()])

    def learn(self, X: FloatArray) -> None:
        for row in X.tolist():
            self.forest.update(row)

    @property
    def state_bytes(self) -> int:
        return len(self.forest.to_json())


class Loda:
    """PySAD's LODA with its defaults: 100 projections of 10 bins."""

    block = 1

    def __init__(self, n_features: int) -> None:
        self.loda: Any = import_module("pysad.models").LODA(random_state=SEED)

    def score(self, X: FloatArray) -> FloatArray:
        return np.array([self.loda.score_partial(x) for x in X])

    def learn(self, X: FloatArray) -> None:
        for x in X:
            self.loda.fit_partial(x)
