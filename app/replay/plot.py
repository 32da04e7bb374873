"""Draw a replay: scores, threshold, flags and labels, and values in front of the band that was expected."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    with quiet():
        figure_of(outcome, signals, title).savefig(path, dpi=120)


def figure_of(outcome: Outcome, signals: Sequence[Signal], title: str = "") -> Any:
    """Give scores, threshold, flags and labels above one picture for each signal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5 + 3 * len(signals)), layout="constrained")
    axes = figure.subplots(1 + len(signals), squeeze=False)
    _draw_scores(axes[0, 0], outcome, title)
    for part, signal in zip(axes[1:, 0], signals, strict=True):
        _draw_signal(part, signal, np.array(outcome.flag, dtype=np.bool_))
    return figure


@contextmanager
def quiet() -> Iterator[None]:
    """Draw names in letters that the font lacks without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        yield


def plain(name: str) -> str:
    """Give a name as matplotlib takes it: what is between dollars would be a formula."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in name[:60])
    return shown.replace("$", r"\$")


def _draw_scores(axes: Any, outcome: Outcome, title: str) -> None:
    at, place = _axis(outcome)
    score, threshold = (np.array(column, dtype=np.float64) for column in (outcome.score, outcome.threshold))
    flag = np.array(outcome.flag, dtype=np.bool_)
    anomalous = np.array([label is True for label in outcome.label], dtype=np.bool_)
    shown = score.clip(-EDGE, EDGE)
    axes.plot(at, shown, ".", markersize=3, color="0.6", label="score", rasterized=True)
    axes.plot(at, threshold.clip(-EDGE, EDGE), color="tab:blue", linewidth=1.5, label="threshold", rasterized=True)
    rings = {"markersize": 6, "markerfacecolor": "none", "color": "tab:red", "label": "labelled anomalous"}
    axes.plot(at[anomalous], shown[anomalous], "o", **rings, rasterized=True)
    axes.plot(at[flag], shown[flag], "x", markersize=4, color="tab:orange", label="flagged", rasterized=True)
    axes.set(title=plain(title), xlabel=place, ylabel="score (nats, high = anomalous)")
    # linear for the usual scores, then by powers of ten: one gross outlier would flatten everything else
    axes.set_yscale("symlog", linthresh=_usual(score))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)


def _axis(outcome: Outcome) -> tuple[Any, str]:
    """Give where the samples stand: at their times if these are known and rise, else at their seqs."""
    times = outcome.times
    if times is None or (np.diff(times) < 0).any():
        return np.array(outcome.seq), "seq"
    return _dates(times), "time (UTC)"


def _draw_signal(axes: Any, signal: Signal, flag: NDArray[np.bool_]) -> None:
    """Draw the values of a feature in front of its band; those beyond the frame are drawn at its edge."""
    x, band_x = (_dates(at) if signal.by_time else at for at in (signal.x, signal.band_x))
    low, high = _frame(signal)
    values = signal.values.clip(low, high)
    axes.fill_between(
        band_x, signal.low.clip(low, high), signal.high.clip(low, high), color="tab:green", alpha=0.25, label=EXPECTED
    )
    axes.plot(band_x, signal.middle.clip(low, high), color="tab:green", linewidth=0.8)
    axes.plot(x, values, ".", markersize=3, color="0.4", label="value", rasterized=True)
    axes.plot(x[flag], values[flag], "x", markersize=4, color="tab:orange", label="flagged", rasterized=True)
    axes.set(xlabel="time (UTC)" if signal.by_time else "seq", ylabel="value", rasterized=True)
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
