"""Draw a replay: scores, threshold, flags and labels, and values in front of the band that was expected."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.replay.feed import Outcome
from app.replay.signals import Signal

# a score can be the largest double, which no axis can hold
EDGE = 1e15
EXPECTED = "expected, 5 to 95 %"


def draw(outcome: Outcome, signals: Sequence[Signal], title: str, path: Path) -> None:
    """Write a picture; ModuleNotFoundError if matplotlib is not installed."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    size = (12, 5 + 3 * len(signals))
    figure, axes = pyplot.subplots(1 + len(signals), figsize=size, layout="constrained", squeeze=False)
    _draw_scores(axes[0, 0], outcome, title)
    for part, signal in zip(axes[1:, 0], signals, strict=True):
        _draw_signal(part, signal, np.array(outcome.flag, dtype=np.bool_))
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_scores(axes: Any, outcome: Outcome, title: str) -> None:
    seq, score = np.array(outcome.seq), np.array(outcome.score, dtype=np.float64)
    threshold, flag = np.array(outcome.threshold, dtype=np.float64), np.array(outcome.flag, dtype=np.bool_)
    anomalous = np.array([label is True for label in outcome.label], dtype=np.bool_)
    shown = score.clip(-EDGE, EDGE)
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


def _draw_signal(axes: Any, signal: Signal, flag: NDArray[np.bool_]) -> None:
    """Draw the values of a feature in front of its band; those beyond the frame are drawn at its edge."""
    x, band_x = (_dates(at) if signal.by_time else at for at in (signal.x, signal.band_x))
    low, high = _frame(signal)
    values = signal.values.clip(low, high)
    axes.fill_between(
        band_x, signal.low.clip(low, high), signal.high.clip(low, high), color="tab:green", alpha=0.25, label=EXPECTED
    )
    axes.plot(band_x, signal.middle.clip(low, high), color="tab:green", linewidth=0.8)
    axes.plot(x, values, ".", markersize=3, color="0.4", label=signal.feature)
    axes.plot(x[flag], values[flag], "x", markersize=4, color="tab:orange", label="flagged")
    axes.set(xlabel="time (UTC)" if signal.by_time else "seq", ylabel=signal.feature)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _frame(signal: Signal) -> tuple[float, float]:
    """Give the range that holds nearly all values and nearly all of the band, with some room."""
    known = np.concatenate([signal.values[np.isfinite(signal.values)], signal.low, signal.high]).clip(-EDGE, EDGE)
    if not known.size:
        return -1.0, 1.0
    low, high = np.quantile(known, [0.002, 0.998]).tolist()
    margin = 0.1 * (high - low) or 1.0
    return low - margin, high + margin


def _dates(seconds: NDArray[np.float64]) -> NDArray[np.datetime64]:
    return (seconds * 1000).astype("datetime64[ms]")


def _usual(score: NDArray[np.float64]) -> float:
    """Give a level above nearly all scores."""
    known = np.abs(score[np.isfinite(score)])
    return max(float(np.quantile(known, 0.99)), 1.0) if known.size else 1.0
