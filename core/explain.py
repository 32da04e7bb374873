"""The model as people can look at it, in the user's units."""

from sys import float_info
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray, IntArray
from core.density import DensityModel
from core.mixture import log_mixture
from core.scaling import Scaling

GRID_DEVIATIONS: Final = 3.0
LEAST_SHOWN_WEIGHT: Final = 1e-3


def describe(model: DensityModel, scaling: Scaling | None) -> dict[str, Any]:
    """Nodes, weights, means, covariances and hyperplanes as JSON-able values; no nodes before the scaling is known.

    With degrees_of_freedom a node is a Student t and its covariance the scale matrix; without, a Gaussian.
    """
    summary: dict[str, Any] = {"n_learned": model.n_learned, "scaling": None, "nodes": [], "hyperplanes": []}
    if scaling is not None:
        summary["scaling"] = {"location": scaling.location.tolist(), "scale": scaling.scale.tolist()}
        summary["nodes"] = _nodes(model, scaling)
        summary["hyperplanes"] = _hyperplanes(model, scaling)
    return summary


def density_grid(
    model: DensityModel, scaling: Scaling, i: int, j: int, size: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The marginal log density of features i and j on a grid that holds every node of some weight."""
    mean, covariance = model.densities.moments()
    shown = model.weights >= min(LEAST_SHOWN_WEIGHT, float(model.weights.max()))
    axes = []
    for feature in (i, j):
        reach = GRID_DEVIATIONS * np.sqrt(covariance[shown, feature, feature])
        axes.append(np.linspace((mean[shown, feature] - reach).min(), (mean[shown, feature] + reach).max(), size))
    points = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
    log_density = log_mixture(model.densities.marginal([i, j]).log_density(points), model.weights)
    pair = [i, j]
    x, y = (_finite(axis * scaling.scale[f] + scaling.location[f]) for axis, f in zip(axes, pair, strict=True))
    return x, y, log_density.reshape(size, size) - np.log(scaling.scale[pair]).sum()


def _nodes(model: DensityModel, scaling: Scaling) -> list[dict[str, Any]]:
    mean, covariance = model.densities.moments()
    with np.errstate(over="ignore"):
        mean = _finite(mean * scaling.scale + scaling.location)
        covariance = _finite(covariance * scaling.scale[:, None] * scaling.scale)
    tree, leaves, freedom = model.tree, model.tree.leaves(), model.densities.freedom
    return [
        {
            "id": node,
            "parent": int(tree.parent[node]) if node else None,
            "level": int(tree.level[node]),
            "leaf": bool(leaves[node]),
            "count": float(model.counts[node]),
            "weight": float(model.weights[node]),
            "mean": mean[node].tolist(),
            "covariance": covariance[node].tolist(),
            "degrees_of_freedom": None if freedom is None else float(freedom[node]),
        }
        for node in range(tree.n_nodes)
    ]


def _hyperplanes(model: DensityModel, scaling: Scaling) -> list[dict[str, Any]]:
    """Each with its unit-free normal and offset in the user's units: left where normal . x >= offset."""
    tree = model.tree
    with np.errstate(over="ignore"):
        normal = _finite(tree.normal / scaling.scale)
        offset = _finite(tree.offset + _finite(normal * scaling.location).sum(1))
    return [
        {
            "node": int(tree.parent[left]),
            "normal": normal[k].tolist(),
            "offset": float(offset[k]),
            "left": left,
            "right": right,
        }
        for k, (left, right) in enumerate(_children(tree.cut))
    ]


def _children(cut: IntArray) -> list[tuple[int, int]]:
    left = [int(np.flatnonzero(cut == k)[0]) for k in range(int(cut.max()) + 1)]
    return [(node, node + 1) for node in left]


def _finite(values: FloatArray) -> FloatArray:
    """JSON knows no infinity: a variance of 1e400 is shown as the largest double."""
    return np.clip(values, -float_info.max, float_info.max)
