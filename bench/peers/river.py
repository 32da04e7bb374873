"""river's detectors. They take dictionaries, one sample at a time; high = anomalous."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray

SEED: Final = 1
WINDOW: Final = 256


class RiverModel:
    """A river detector, or a pipeline that ends in one; sign turns its score if low is anomalous."""

    block = 1

    def __init__(self, detector: Any, sign: float = 1.0) -> None:
        self.detector = detector
        self._sign = sign

    def score(self, X: FloatArray) -> FloatArray:
        return np.array([self._sign * self.detector.score_one(dict(enumerate(row))) for row in X.tolist()])

    def learn(self, X: FloatArray) -> None:
        for row in X.tolist():
            self.detector.learn_one(dict(enumerate(row)))


def half_space_trees() -> RiverModel:
    """HalfSpaceTrees with its defaults, behind the MinMaxScaler that its documentation asks for."""
    scaler = import_module("river.preprocessing").MinMaxScaler()
    return RiverModel(scaler | import_module("river.anomaly").HalfSpaceTrees(seed=SEED))


def local_outlier_factor() -> RiverModel:
    """LocalOutlierFactor of 20 neighbours in a window of 256."""
    distance = import_module("river.utils").math._euclidean_distance
    engine = import_module("river.neighbors").LazySearch(window_size=WINDOW, dist_func=distance)
    return RiverModel(import_module("river.anomaly").LocalOutlierFactor(n_neighbors=20, engine=engine))


def one_class_svm(n_features: int) -> RiverModel:
    """OneClassSVM on random Fourier features, gamma 1 / m. Its score falls with distance, so its sign is turned."""
    features = import_module("river.feature_extraction").RBFSampler(gamma=1 / n_features, n_components=100, seed=SEED)
    return RiverModel(features | import_module("river.anomaly").OneClassSVM(nu=0.1), sign=-1.0)
