"""Why a sample has its score: what features and labels add to it, which values were expected, and what lies near."""

from dataclasses import dataclass
from sys import float_info

import numpy as np

from core.arrays import BLOCK_ROWS, BoolArray, FloatArray, IntArray
from core.density.model import DensityModel
from core.families.base import NodeDensities
from core.scaling import LIMIT, Scaling
from core.views.description import finite


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why n samples have their scores, in columns; score (n,) are the scores.

    labels_contribution (n,), in nats, is what labels added to the score, eq. (36); nearest_anomaly (n,) is the seq of
    the nearest sample that is labelled anomalous, 0 while labels add nothing. The rest of the score is -log p.

    contribution (n, m), in nats, is -log p minus -log p with this feature integrated out; NaN for missing ones,
    which are integrated out of both, and for context, which is not scored. Correlated features share what they explain,
    so contributions need not sum to the score. Both are in units of each feature's spread: in the user's a feature
    would also count the log of its unit, and bytes would outweigh seconds. With a single feature what is left without
    it is 0.

    expected (n, m) is the mean of each feature given the others, in the user's units; for kinds with a coordinate of
    their own, the value at the mean coordinate. path lists the nodes from the root to the one of highest
    responsibility.
    """

    score: FloatArray
    contribution: FloatArray
    expected: FloatArray
    path: list[list[int]]
    labels_contribution: FloatArray
    nearest_anomaly: IntArray

    @classmethod
    def empty(cls, n_features: int) -> "Explanation":
        """Explain no samples."""
        none = np.zeros((0, n_features))
        return cls(np.zeros(0), none, none, [], np.zeros(0), np.zeros(0, np.int64))

    @staticmethod
    def concatenate(parts: "list[Explanation]") -> "Explanation":
        """Join several explanations."""
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("score", "contribution", "expected", "labels_contribution", "nearest_anomaly")
        }
        return Explanation(path=[path for part in parts for path in part.path], **columns)


def explanation_of(
    model: DensityModel, scaling: Scaling, Z: FloatArray, score: FloatArray, added: FloatArray, nearest: IntArray
) -> Explanation:
    """Explain the scores (n,) of scaled samples Z (n, columns), to which labels added so much (n,). Pure.

    nearest (n,) are the nearest known anomalies, by seq. Of the columns the first are the features.
    """
    contribution, expected, node = _by_columns(model, Z)
    contribution[np.abs(Z) >= LIMIT] = float_info.max
    contribution[:, model.nodes.context] = np.nan
    contribution, expected = (of_each[:, : model.config.n_features] for of_each in (contribution, expected))
    values = finite(np.stack([scaling.values(feature, column) for feature, column in enumerate(expected.T)], 1))
    return Explanation(score, contribution, values, [_path(model, i) for i in node.tolist()], added, nearest)


def _by_columns(model: DensityModel, Z: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Contribution and scaled expected (n, m) of each column of n samples, and the nearest nodes (n,)."""
    missing = np.isnan(Z)
    contribution, expected = np.full(Z.shape, np.nan), np.empty(Z.shape)
    nearest = np.zeros(len(Z), np.int64)
    for pattern in np.unique(missing, axis=0):
        alike = np.flatnonzero((missing == pattern).all(1))
        known = np.flatnonzero(~pattern)
        densities = model.densities.marginal(known.tolist()) if pattern.any() else model.densities
        for rows in np.split(alike, range(BLOCK_ROWS, len(alike), BLOCK_ROWS)):
            cells = np.ix_(rows, known)
            log_density = densities.log_density(Z[cells])
            contribution[cells], expected[cells] = _without_each(model, densities, Z[cells], log_density)
            contribution[cells] -= np.log(model.nodes.spread[known])
            if pattern.any():
                expected[np.ix_(rows, pattern)] = _filled_in(model, Z[rows], pattern)
            nearest[rows] = (log_density + model.log_weights).argmax(1)
    return contribution, expected, nearest


def _without_each(
    model: DensityModel, densities: NodeDensities, Z: FloatArray, log_density: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Contributions and scaled expectations (n, m) of features that are all known."""
    left = densities.left_out(Z)
    log_rest = model.log_p(left.log_density.reshape(Z.size, -1)).reshape(Z.shape)
    share = np.exp(left.log_density + model.log_weights - log_rest[:, :, None])
    contribution = log_rest - model.log_p(log_density)[:, None]
    return contribution, (share * left.mean).sum(2)


def _filled_in(model: DensityModel, Z: FloatArray, missing: BoolArray) -> FloatArray:
    """Scaled expectations (n, k) of the features that are missing."""
    given = model.densities.conditional(Z, missing)
    share = np.exp(given.known + model.log_weights - model.log_p(given.known)[:, None])
    expected: FloatArray = (share[:, :, None] * given.mean).sum(1)
    return expected


def _path(model: DensityModel, node: int) -> list[int]:
    path = [node]
    while path[-1]:
        path.append(int(model.tree.parent[path[-1]]))
    return path[::-1]
