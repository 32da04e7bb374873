"""The model for people, in the user's units: its nodes and hyperplanes, and grids of its density."""

from copy import deepcopy
from sys import float_info
from typing import Any, Final

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.density.model import DensityModel
from core.families.product import ProductNodes
from core.mixture.log_sum import log_sum_exp
from core.scaling import Scaling

GRID_DEVIATIONS: Final = 3.0
LEAST_SHOWN_WEIGHT: Final = 1e-3
"""A grid reaches so many deviations around every node of at least this weight. Chosen by hand."""


def describe(model: DensityModel, scaling: Scaling | None) -> dict[str, Any]:
    """Describe nodes, weights, means, covariances and hyperplanes as JSON-able values; without a scaling no nodes.

    For features of other kinds than gaussian, means, covariances and hyperplanes are those of their coordinates
    (core.kinds), and each node lists the parameters of its factors. A node with degrees_of_freedom is a Student t, and
    its covariance is the scale matrix; without, it is a Gaussian. What a calendar adds is left out, but for the part
    calendar of a hyperplane's normal.
    """
    summary: dict[str, Any] = {"n_learned": model.n_learned, "roles": _roles(model.config)}
    summary |= {"scaling": None, "nodes": [], "hyperplanes": []}
    if scaling is not None:
        summary["scaling"] = {
            "location": scaling.location.tolist(),
            "scale": (scaling.scale * model.nodes.spread[: len(scaling.scale)]).tolist(),
        }
        summary["nodes"] = _nodes(model, scaling)
        summary["hyperplanes"] = _hyperplanes(model, scaling)
    return summary


def _roles(config: DetectorConfig) -> list[str]:
    return ["value" if feature in config.values else "context" for feature in range(config.n_features)]


class DensityGrid:
    """The marginal log density of features i and j on a grid of size x size points, x (size,) by y (size,).

    The grid reaches GRID_DEVIATIONS deviations round the mean of every node with a weight that shows. Points are
    numbered row by row, y along the rows. The model is copied: it may learn on while the grid is computed in parts.
    """

    def __init__(self, model: DensityModel, scaling: Scaling, i: int, j: int, size: int) -> None:
        pair = [i, j]
        self.size = size
        self._densities = deepcopy(model.densities.marginal(pair))
        self._log_weights = model.log_weights.copy()
        self._scaling = scaling.part(pair)
        mean, covariance = self._densities.moments()
        self.n_nodes = len(mean)
        weights = np.exp(self._log_weights)
        shown = weights >= min(LEAST_SHOWN_WEIGHT, float(weights.max()))
        axes = []
        for place, feature in enumerate(pair):
            reach = GRID_DEVIATIONS * np.sqrt(covariance[shown, place, place])
            low, high = (mean[shown, place] - reach).min(), (mean[shown, place] + reach).max()
            axes.append(scaling.axis(feature, float(low), float(high), size))
        (x, self._x), (y, self._y) = axes
        self.x, self.y = finite(x), finite(y)

    def log_density(self, part: slice) -> FloatArray:
        """Compute the log density, in nats of the user's units, of a part of the size * size points."""
        row, column = np.divmod(np.arange(*part.indices(self.size**2)), self.size)
        points = np.stack([self._x[column], self._y[row]], -1)
        log_density = log_sum_exp(self._densities.log_density(points) + self._log_weights)
        return -self._scaling.score(points, log_density)


def _nodes(model: DensityModel, scaling: Scaling) -> list[dict[str, Any]]:
    m = model.config.n_features
    mean, covariance = model.densities.moments()
    mean, covariance = mean[:, :m], covariance[:, :m, :m]
    with np.errstate(over="ignore"):
        mean = finite(mean * scaling.scale + scaling.location)
        covariance = finite(covariance * scaling.scale[:, None] * scaling.scale)
    tree, freedom, weights = model.tree, model.densities.freedom, np.exp(model.log_weights)
    return [
        {
            "id": node,
            "parent": int(tree.parent[node]) if node else None,
            "level": int(tree.level[node]),
            "leaf": bool(tree.leaf[node]),
            "count": float(model.counts[node]),
            "weight": float(weights[node]),
            "mean": mean[node].tolist(),
            "covariance": covariance[node].tolist(),
            "degrees_of_freedom": None if freedom is None else float(freedom[node]),
        }
        | (
            {"factors": model.densities.describe(node, scaling.units)}
            if isinstance(model.densities, ProductNodes)
            else {}
        )
        for node in range(tree.n_nodes)
    ]


def _hyperplanes(model: DensityModel, scaling: Scaling) -> list[dict[str, Any]]:
    """Each hyperplane with normal and offset in the user's units: left where normal . x >= offset.

    With a calendar, calendar . y is added to normal . x, where y are its columns.
    """
    tree, m = model.tree, model.config.n_features
    with np.errstate(over="ignore"):
        normal = finite(tree.normal[:, :m] / scaling.scale)
        offset = finite(tree.offset + finite(normal * scaling.location).sum(1))
    return [
        {
            "node": pair.node,
            "normal": normal[pair.cut].tolist(),
            "offset": float(offset[pair.cut]),
            "left": pair.left,
            "right": pair.right,
        }
        | ({} if model.config.calendar is None else {"calendar": tree.normal[pair.cut, m:].tolist()})
        for pair in tree.pairs()
    ]


def finite(values: FloatArray) -> FloatArray:
    """Clip values to finite doubles, since JSON has no infinity: 1e400 becomes the largest double."""
    return np.clip(values, -float_info.max, float_info.max)
