"""Samples that a model of a few nodes makes something of."""

import numpy as np
import numpy.typing as npt

CENTRES = np.array([[0.3, 20.0, 5.0], [0.6, 35.0, 9.0], [0.8, 28.0, 20.0]])
SPREAD = np.array([0.05, 3.0, 1.5])
ODD = np.array([0.4, 25.0, 15.0])
NAMES = ("cpu", "latency_ms", "queue")


def clusters(n: int, seed: int = 0, odd_share: float = 0.03) -> list[dict[str, float]]:
    """Make samples of three clusters, some of them far out."""
    rng = np.random.default_rng(seed)
    X = CENTRES[rng.integers(0, len(CENTRES), n)] + rng.normal(size=(n, 3)) * SPREAD
    odd = rng.random(n) < odd_share
    X[odd] += rng.normal(size=(odd.sum(), 3)) * ODD
    return named(X)


def named(X: npt.NDArray[np.float64]) -> list[dict[str, float]]:
    """Give rows as samples with names."""
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
