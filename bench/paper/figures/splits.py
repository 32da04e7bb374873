"""Figure: the splits as the tree grows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib import pyplot as plt

from bench.paper.figures.growth import Growth, grow, inside, two_means
from bench.paper.figures.style import BLACK, BLUE, GREY, PALE, VERMILION, label_plane, save
from core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIMITS: Final = (-3.2, 4.2)


def draw(folder: Path) -> Path:
    """One panel a split: samples, those of the node, its two centroids, the old hyperplanes and the new one."""
    splits = grow()[0]
    figure, panels = plt.subplots(2, 3, figsize=(10, 7.4), sharex=True, sharey=True)
    for axes, split in zip(panels.flat, splits, strict=False):
        _panel(axes, split)
    for axes in panels.flat:
        axes.label_outer()
    for axes in panels.flat[len(splits) :]:
        axes.axis("off")
    handles, labels = panels.flat[len(splits) - 1].get_legend_handles_labels()
    panels.flat[-1].legend(handles, labels, loc="center", fontsize=11)
    return save(figure, folder / "splits.png")


def _panel(axes: "Axes", split: Growth) -> None:
    axes.plot(*split.learned.T, "o", ms=2.5, mew=0, color=PALE, label="samples learned")
    axes.plot(*split.seen.T, "o", ms=3, mew=0, color=BLUE, label="of them in the node's 2-means")
    *old, new = split.description["hyperplanes"]
    for k, plane in enumerate(old):
        axes.plot(*_segment(split.description, plane).T, "--", lw=1.3, color=GREY, label="" if k else "old hyperplanes")
    axes.plot(*_segment(split.description, new).T, "-", lw=2.2, color=VERMILION, label="new hyperplane")
    axes.plot(*two_means(split.seen).T, "D", ms=8, mec="white", color=BLACK, label="its two centroids")
    level = next(n["level"] for n in split.description["nodes"] if n["id"] == new["node"])
    axes.set_title(f"after {split.n_learned} samples: node {new['node']}, level {level}")
    axes.set_xlim(*LIMITS)
    axes.set_ylim(*LIMITS)
    label_plane(axes)


def _segment(description: dict[str, Any], plane: dict[str, Any]) -> FloatArray:
    """The part of a hyperplane, a line, that lies in its node: points of it, with gaps."""
    normal = np.array(plane["normal"])
    foot = normal * plane["offset"] / (normal @ normal)
    along = np.linspace(-12, 12, 2001)[:, None] * np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    points: FloatArray = foot + along
    points[~inside(description, plane["node"], points)] = np.nan
    return points
