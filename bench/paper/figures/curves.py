"""Figures: loss over t, and ROC curves, of each experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib import pyplot as plt

from bench.paper.experiments import (
    BEST_GAUSSIAN,
    DEFAULT,
    KERNEL,
    ML,
    PAPER_EG,
    PAPER_SOFT_BAYES,
    TRUTH,
    Experiment,
    Trial,
)
from bench.paper.experiments import MIXTURE as WGMM
from bench.paper.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, save
from core.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES: Final = {
    PAPER_EG: (SKY, "-"),
    PAPER_SOFT_BAYES: (BLUE, "-"),
    DEFAULT: (VERMILION, "-"),
    WGMM: (GREEN, "--"),
    KERNEL: (ORANGE, "--"),
    ML: (PURPLE, "-."),
    BEST_GAUSSIAN: (GREY, ":"),
    TRUTH: (BLACK, ":"),
}
FIRST_SHOWN: Final = 20
SHOWN_ROUNDS: Final = (20, 50, 100, 200, 500, 1000)


def draw_losses(experiments: Sequence[Experiment], folder: Path) -> Path:
    """Mean loss so far of the normal rounds, averaged over the data sets."""
    figure, panels = _panels(experiments, 4.2)
    for axes, experiment in zip(panels, experiments, strict=True):
        for model, trials in experiment.trials.items():
            curves = [_running_mean(trial) for trial in trials]
            shortest = min(map(len, curves))
            mean = np.mean([curve[:shortest] for curve in curves], axis=0)
            t = np.arange(1, shortest + 1)[FIRST_SHOWN:]
            color, line = LINES[model]
            axes.plot(t, mean[FIRST_SHOWN:], line, color=color, lw=1.8, label=model)
        axes.set_title(experiment.name.replace("exp.", "Experiment"))
        axes.set_xlabel("normal rounds")
        axes.set_xscale("log")
        axes.set_xticks(SHOWN_ROUNDS, [str(t) for t in SHOWN_ROUNDS])
        axes.minorticks_off()
    panels[0].set_ylabel("mean log-loss so far (nats per normal round)")
    _cut_high(panels, experiments)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return save(figure, folder / "losses.png")


def draw_rocs(experiments: Sequence[Experiment], folder: Path) -> Path:
    """Rankings as lines, Alg. 3's points of 100 costs as dots; of the first data set of each."""
    figure, panels = _panels(experiments, 4.4)
    for axes, experiment in zip(panels, experiments, strict=True):
        for model, trials in experiment.trials.items():
            color, line = LINES[model]
            axes.plot(*_ranking_curve(trials[0].scores, trials[0].anomalous), line, color=color, lw=1.5, label=model)
            axes.plot(*trials[0].roc, "o", ms=3.5, mew=0, alpha=0.7, color=color)
        axes.plot([0, 1], [0, 1], color=GREY, lw=0.7)
        axes.set_title(experiment.name.replace("exp.", "Experiment"))
        axes.set_xlabel("false alarm rate")
        axes.set_aspect("equal")
    panels[0].set_ylabel("detection rate")
    note = "lines: every fixed threshold on the score; dots: Alg. 3's adaptive threshold, one a cost"
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, title=note)
    return save(figure, folder / "rocs.png")


def _panels(experiments: Sequence[Experiment], height: float) -> "tuple[Figure, list[Axes]]":
    figure, panels = plt.subplots(1, len(experiments), figsize=(10, height), squeeze=False)
    return figure, list(panels[0])


def _running_mean(trial: Trial) -> FloatArray:
    loss = trial.scores[~trial.anomalous]
    curve: FloatArray = loss.cumsum() / np.arange(1, len(loss) + 1)
    return curve


def _cut_high(panels: "Sequence[Axes]", experiments: Sequence[Experiment]) -> None:
    """Cut the axis above the worst row that is not windowed: those lose far more on 18 features."""
    for axes, experiment in zip(panels, experiments, strict=True):
        shown = [t.loss.per_normal_round for model in (PAPER_EG, DEFAULT, ML) for t in experiment.trials[model]]
        axes.set_ylim(top=min(axes.get_ylim()[1], 3 * max(shown)))


def _ranking_curve(scores: FloatArray, anomalous: BoolArray) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(-scores, kind="stable")
    last = np.append(scores[order][1:] != scores[order][:-1], True)  # a tie is one point
    rates = [np.append(0.0, (kind[order].cumsum() / kind.sum())[last]) for kind in (~anomalous, anomalous)]
    return rates[0], rates[1]
