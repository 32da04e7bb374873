"""Figure: measured regret beside the bounds of Theorems 1 and 2, over the number of rounds."""

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import pyplot as plt

from bench.paper.figures.growth import grow
from bench.paper.figures.style import BLACK, BLUE, VERMILION, save
from bench.paper.regrets import (
    ROUNDS,
    node_log_densities,
    random_stream,
    scored_stream,
    threshold_regret,
    weights_regret,
)
from core.mixture.exponentiated_gradient import ExponentiatedGradient
from core.mixture.soft_bayes import SoftBayes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(folder: Path, rounds: int = ROUNDS) -> Path:
    """Left the weights of a fixed tree's nodes, right Alg. 3's threshold."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4))
    _draw_weights(left, rounds)
    _draw_threshold(right, rounds)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("rounds T")
        axes.legend(loc="upper left", fontsize=9)
    return save(figure, folder / "regrets.png")


def _draw_weights(axes: "Axes", rounds: int) -> None:
    log_density = node_log_densities(grow()[1], rounds)
    eg = weights_regret(ExponentiatedGradient, log_density)
    soft = weights_regret(SoftBayes, log_density)
    axes.plot(eg.rounds, eg.bound, "--", color=BLACK, label="Theorem 1's bound, with its factor")
    axes.plot(eg.rounds, eg.measured, "-o", ms=3, color=VERMILION, label="exponentiated gradient")
    axes.plot(soft.rounds, soft.measured, "-s", ms=3, color=BLUE, label="soft-Bayes")
    axes.set_title(f"weights of {log_density.shape[1]} fixed nodes, exp. 1")
    axes.set_ylabel("log-loss beyond the best fixed weights (nats)")
    axes.set_yscale("symlog", linthresh=1)


def _draw_threshold(axes: "Axes", rounds: int) -> None:
    cases = {
        "exp. 1": (scored_stream(rounds), VERMILION, "o"),
        "labels at random": (random_stream(rounds), BLUE, "s"),
    }
    for name, (stream, color, mark) in cases.items():
        regret = threshold_regret(*stream, 1.0, 1.0)
        axes.plot(regret.rounds, regret.measured, f"-{mark}", ms=3, color=color, label=f"Alg. 3, {name}")
    axes.plot(regret.rounds, regret.bound, "--", color=BLACK, label="Theorem 2's bound")
    axes.set_ylim(top=1.6 * float(regret.bound.max()))
    axes.set_title("threshold, $C_1 = C_{-1} = 1$")
    axes.set_ylabel("surrogate cost beyond the best fixed threshold")
