"""Why a sample has its score: what each feature adds to it, which value was expected, and the nearest node."""

from collections.abc import Sequence
from dataclasses import dataclass
from sys import float_info

import numpy as np

from core.arrays import BLOCK_ROWS, BoolArray, FloatArray
from core.density.model import DensityModel
from core.families.base import NodeDensities
from core.scaling import LIMIT, Scaling
from core.views.description import finite


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why n samples have their scores, in columns; score (n,) are the scores.

    contribution (n, m), in nats, is the score minus the score with this feature integrated out; NaN for missing ones,
    which are integrated out of both. Correlated features share what they explain, so contributions need not sum to the
    score. Both scores are those of the scaled space: in the user's units a feature would also count the log of its
    unit, and bytes would outweigh seconds. With a single feature the score without it is 0.

    expected (n, m) is the mean of each feature given the others, in the user's units; for kinds with a coordinate of
    their own, the value at the mean coordinate. path lists the nodes from the root to the one of highest
    responsibility.
    """

    score: FloatArray
    contribution: FloatArray
    expected: FloatArray
    path: list[list[int]]

    @classmethod
    def empty(cls, n_features: int) -> "Explanation":
        """Explain no samples."""
        return cls(np.zeros(0), np.zeros((0, n_features)), np.zeros((0, n_features)), [])

    @staticmethod
    def concatenate(parts: "list[Explanation]") -> "Explanation":
        """Join several explanations."""
        score, contribution, expected = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("score", "contribution", "expected")
        )
        return Explanation(score, contribution, expected, [path for part in parts for path in part.path])


def explanation_of(
    models: Sequence[tuple[float, DensityModel]], scaling: Scaling, Z: FloatArray, score: FloatArray
) -> Explanation:
    """Explain the scores (n,) of scaled samples Z (n, m), which are means of the models' scores by these shares. Pure.

    Contributions and expected values are means by the same shares; the path is that of the first model's tree.
    """
    views = [(share, _view(model, Z)) for share, model in models if share > 0]
    contribution = sum((share * view.contribution for share, view in views), np.zeros(Z.shape))
    expected = sum((share * view.expected for share, view in views), np.zeros(Z.shape))
    contribution[np.abs(Z) >= LIMIT] = float_info.max
    values = finite(np.stack([scaling.values(feature, column) for feature, column in enumerate(expected.T)], 1))
    return Explanation(score, contribution, values, [_path(models[0][1], node) for node in views[0][1].nearest])


@dataclass(frozen=True, slots=True)
class _View:
    """What one model says of n samples: contribution and scaled expected (n, m), and the nearest nodes."""

    contribution: FloatArray
    expected: FloatArray
    nearest: list[int]


def _view(model: DensityModel, Z: FloatArray) -> _View:
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
            if pattern.any():
                expected[np.ix_(rows, pattern)] = _filled_in(model, Z[rows], pattern)
            nearest[rows] = (log_density + model.log_weights).argmax(1)
    return _View(contribution, expected, nearest.tolist())


def _without_each(
    model: DensityModel, densities: NodeDensities, Z: FloatArray, log_density: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Contributions and scaled expectations (n, m) of features that are all known."""
    left = densities.left_out(Z)
    log_rest = model.log_p(left.log_density.reshape(Z.size, -1)).reshape(Z.shape)
    share = np.exp(left.log_density + model.log_weights - log_rest[:, :, None])
    return log_rest - model.log_p(log_density)[:, None], (share * left.mean).sum(2)


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
