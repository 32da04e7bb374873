"""A tree as it grows: the paper profile on experiment 1, seen through the Detector's description."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from bench.detectors import ItanModel
from bench.paper.experiments import itan_config
from bench.paper.streams import three_gaussians
from core.arrays import FloatArray

BETA: Final = 3.5
"""The paper's own figure has eleven nodes after its run, its splits a factor of about 3.8 apart."""
SEED: Final = 0


@dataclass(frozen=True, slots=True)
class Growth:
    """One split: how many samples were learned, the node, those of its samples that its 2-means saw, its hyperplane."""

    n_learned: int
    description: dict[str, Any]
    seen: FloatArray
    learned: FloatArray

    @property
    def hyperplane(self) -> dict[str, Any]:
        """The new one."""
        new: dict[str, Any] = self.description["hyperplanes"][-1]
        return new


@cache
def grow() -> tuple[list[Growth], ItanModel]:
    """Every split of one run over the normals of one data set, and the model at its end."""
    X, anomalous = three_gaussians(SEED)
    normals = X[~anomalous]
    model = ItanModel(itan_config(2, profile="paper", mixture="soft_bayes", beta=BETA))
    born: dict[int, int] = {0: 0}
    splits: list[Growth] = []
    for t, x in enumerate(normals):
        model.score(x[None])
        model.learn(x[None])
        description = model.detector.describe()
        if len(description["hyperplanes"]) > len(splits):
            new = description["hyperplanes"][-1]
            since = normals[born[new["node"]] : t + 1]
            splits.append(Growth(t + 1, description, since[inside(description, new["node"], since)], normals[: t + 1]))
            born |= {new["left"]: t + 1, new["right"]: t + 1}
    return splits, model


def inside(description: dict[str, Any], node: int, X: FloatArray) -> Any:
    """Which samples (n, m) the subspace of a node holds: on its side of every hyperplane above it."""
    held = np.ones(len(X), bool)
    while node:
        plane = next(h for h in description["hyperplanes"] if node in (h["left"], h["right"]))
        left = X @ np.array(plane["normal"]) >= plane["offset"]
        held &= left if node == plane["left"] else ~left
        node = plane["node"]
    return held


def two_means(X: FloatArray) -> FloatArray:
    """Alg. 2's sequential 2-means over samples (n, m): both centroids (2, m); counts start at 1, ties go left."""
    count, total = np.ones(2), np.zeros((2, X.shape[1]))
    for x in X:
        gaps = np.linalg.norm(total / count[:, None] - x, axis=1)
        side = int(gaps[1] < gaps[0])
        count[side] += 1
        total[side] += x
    centroids: FloatArray = total / count[:, None]
    return centroids
