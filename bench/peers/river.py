"""More of river's detectors, beside its half-space trees."""

from importlib import import_module
from typing import Final

from app.replay.rivals.trees import SEED, RiverModel

WINDOW: Final = 256


def local_outlier_factor() -> RiverModel:
    """LocalOutlierFactor of 20 neighbours in a window of 256."""
    distance = import_module("river.utils").math._euclidean_distance
    engine = import_module("river.neighbors").LazySearch(window_size=WINDOW, dist_func=distance)
    return RiverModel(import_module("river.anomaly").LocalOutlierFactor(n_neighbors=20, engine=engine))


def one_class_svm(n_features: int) -> RiverModel:
    """OneClassSVM on random Fourier features, gamma 1 / m. Its score falls with distance, so its sign is turned."""
    features = import_module("river.feature_extraction").RBFSampler(gamma=1 / n_features, n_components=100, seed=SEED)
    return RiverModel(features | import_module("river.anomaly").OneClassSVM(nu=0.1), sign=-1.0)
