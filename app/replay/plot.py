"""Draw a replay: scores, threshold, flags and labels over time."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.replay.feed import Outcome

# a score can be the largest double, which no axis can hold
EDGE = 1e15


def draw(outcome: Outcome, title: str, path: Path) -> None:
    """Write a picture; ModuleNotFoundError if matplotlib is not installed."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    seq, score = np.array(outcome.seq), np.array(outcome.score, dtype=np.float64)
    threshold, flag = np.array(outcome.threshold, dtype=np.float64), np.array(outcome.flag, dtype=np.bool_)
    anomalous = np.array([label is True for label in outcome.label], dtype=np.bool_)
    shown = score.clip(-EDGE, EDGE)
    figure, axes = pyplot.subplots(figsize=(12, 5), layout="constrained")
    axes.plot(seq, shown, ".", markersize=3, color="0.6", label="score")
    axes.plot(seq, threshold.clip(-EDGE, EDGE), color="tab:blue", linewidth=1.5, label="threshold")
    axes.plot(
        seq[anomalous], shown[anomalous], "o", markersize=6, markerfacecolor="none", color="tab:red", label="anomalous"
    )
    axes.plot(seq[flag], shown[flag], "x", markersize=4, color="tab:orange", label="flagged")
    axes.set(title=title, xlabel="seq", ylabel="score (nats, high = anomalous)")
    # linear for the usual scores, then by powers of ten: one gross outlier would flatten everything else
    axes.set_yscale("symlog", linthresh=_usual(score))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _usual(score: NDArray[np.float64]) -> float:
    """Give a level above nearly all scores."""
    known = np.abs(score[np.isfinite(score)])
    return max(float(np.quantile(known, 0.99)), 1.0) if known.size else 1.0
