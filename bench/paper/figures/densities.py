"""Figure: the true density, every node's with its weight in the layout of the tree, and the mixture's."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D

from bench.paper.figures.growth import grow
from bench.paper.figures.style import BLUE, GREY, label_plane, save
from bench.paper.opponents import gaussian_log_density
from bench.paper.streams import three_gaussians_score
from core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

AXIS: Final = np.linspace(-3.2, 4.2, 121)
GRID: Final = np.stack(np.meshgrid(AXIS, AXIS), -1).reshape(-1, 2)
LEVELS: Final = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3)
"""Densities whose contours are drawn, per unit of area."""


def draw(folder: Path) -> Path:
    """Two large panels above, the tree below: a row a level, children under their parent."""
    model = grow()[1]
    description = model.detector.describe()
    nodes = description["nodes"]
    depth = max(node["level"] for node in nodes)
    figure = plt.figure(figsize=(10, 4.3 + 1.6 * (depth + 1)))
    top, tree = figure.subfigures(2, 1, squeeze=False, height_ratios=[4.3, 1.6 * (depth + 1)])[:, 0]
    panels = top.subplots(1, 2, sharey=True)
    _contours(panels[0], np.exp(-three_gaussians_score(GRID)), "true density of the normals")
    title = f"mixture of {len(nodes)} nodes after {description['n_learned']} samples"
    _contours(panels[1], model.density(GRID), title)
    for axes in panels:
        label_plane(axes)
    levels = ", ".join(f"{level:g}" for level in LEVELS)
    top.supxlabel(f"contours at densities {levels}; below: each node's own density and its weight", fontsize=10)
    _draw_tree(tree, nodes, depth)
    return save(figure, folder / "densities.png")


def _contours(axes: "Axes", density: FloatArray, title: str) -> None:
    axes.contour(AXIS, AXIS, density.reshape(len(AXIS), -1), LEVELS, cmap="viridis_r", linewidths=1.2)
    axes.set_title(title)


def _draw_tree(figure: "SubFigure", nodes: list[dict[str, Any]], depth: int) -> None:
    place, slots = _places(nodes)
    width, height = 0.96 / slots, 1 / (depth + 1)
    size = min(0.86 * width, 0.2)
    for node in nodes:
        x, y = 0.02 + place[node["id"]] * width, 1 - (node["level"] + 1) * height
        axes = figure.add_axes((x - size / 2, y + 0.06 * height, size, 0.7 * height))
        log_density = gaussian_log_density(GRID, np.array(node["mean"]), np.array(node["covariance"]))
        _contours(axes, np.exp(log_density), "")
        axes.set_title(f"{node['id']}:  $\\alpha$ = {node['weight']:.3f}", fontsize=9, pad=2)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(True)
            spine.set_color(BLUE if node["leaf"] else GREY)
        if node["parent"] is not None:
            above = 0.02 + place[node["parent"]] * width
            line = Line2D([x, above], [y + 0.9 * height, y + 1.05 * height], color=GREY, lw=1)
            figure.add_artist(line)


def _places(nodes: list[dict[str, Any]]) -> tuple[dict[int, float], int]:
    """Where each node stands, in slots from the left, and how many slots there are: one a leaf."""
    children: dict[int, list[int]] = {node["id"]: [] for node in nodes}
    for node in nodes[1:]:
        children[node["parent"]].append(node["id"])
    waiting, order = [0], []
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(children[order[-1]])
    leaves = [node for node in order if not children[node]]
    place = {leaf: slot + 0.5 for slot, leaf in enumerate(leaves)}
    for inner in reversed(order):
        if children[inner]:
            place[inner] = float(np.mean([place[child] for child in children[inner]]))
    return place, len(leaves)
