"""Figure: the samples of both synthetic experiments."""

from pathlib import Path

from matplotlib import pyplot as plt

from bench.paper.figures.style import BLUE, VERMILION, label_plane, save
from bench.paper.streams import SYNTHETIC

TITLES = {"exp. 1": "Experiment 1: three Gaussians", "exp. 2": "Experiment 2: sine and cosine bands"}


def draw(folder: Path) -> Path:
    """One data set of each, normals and anomalies."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.2))
    for axes, (name, make) in zip(panels, SYNTHETIC.items(), strict=True):
        X, anomalous = make(0)
        axes.plot(*X[~anomalous].T, "o", ms=3, mew=0, alpha=0.6, color=BLUE, label=f"normal ({(~anomalous).sum()})")
        axes.plot(*X[anomalous].T, "x", ms=5, mew=1.2, color=VERMILION, label=f"anomalous ({anomalous.sum()})")
        axes.set_title(TITLES[name])
        label_plane(axes)
    for axes in panels:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return save(figure, folder / "samples.png")
