"""scikit-learn's detectors, refitted on the last 256 learned rows every 32 rows."""

from importlib import import_module
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray

SEED: Final = 1
WINDOW: Final = 256
REFIT_EVERY: Final = 32
NEIGHBOURS: Final = 20


class WindowedModel:
    """A scikit-learn estimator with fit and score_samples (low = anomalous); rows before the first fit score 0.

    Rows are scored 32 at a time: the model stands still in between anyway, and it saves calls, in its favour.
    """

    block = REFIT_EVERY

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.window: FloatArray | None = None

    def score(self, X: FloatArray) -> FloatArray:
        if self.window is None:
            return np.zeros(len(X))
        return -np.asarray(self.estimator.score_samples(X), dtype=float)

    def learn(self, X: FloatArray) -> None:
        past = X if self.window is None else np.concatenate([self.window, X])
        self.window = past[-WINDOW:]
        self.estimator.fit(self.window)


def gaussian_mixture() -> WindowedModel:
    """Four full Gaussians."""
    mixture = import_module("sklearn.mixture").GaussianMixture(4, reg_covar=1e-3, random_state=SEED)
    return WindowedModel(mixture)


def kernel_density() -> WindowedModel:
    """Gaussian kernels, Silverman's bandwidth."""
    return WindowedModel(import_module("sklearn.neighbors").KernelDensity(bandwidth="silverman"))


def local_outlier_factor() -> WindowedModel:
    """LOF of 20 neighbours, on new samples."""
    return WindowedModel(import_module("sklearn.neighbors").LocalOutlierFactor(NEIGHBOURS, novelty=True))


def isolation_forest() -> WindowedModel:
    """A hundred isolation trees."""
    return WindowedModel(import_module("sklearn.ensemble").IsolationForest(random_state=SEED))
