"""Gauges of single streams, by name."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily

from app.metrics.figures import StreamFigures
from app.metrics.known import CELLS
from app.metrics.source import Named


class OfStream(NamedTuple):
    """A gauge of a stream; missing while its figure is unknown."""

    name: str
    text: str
    read: Callable[[StreamFigures], float | None]


GAUGES: Final = (
    OfStream("samples", "samples seen", lambda f: f.samples),
    OfStream("samples_needed", "samples that the warm-up still needs", lambda f: f.samples_needed),
    OfStream("score_nats", "score of the newest sample", lambda f: f.score),
    OfStream("threshold_nats", "threshold that the next score will meet", lambda f: f.threshold),
    OfStream("flag_rate", "share of the last 1000 samples or so that were flagged", lambda f: f.flag_rate.mean),
    OfStream("expected_flag_rate", "its expected_anomaly_rate", lambda f: f.expected_flag_rate),
    OfStream("log_loss_nats", "mean of the last 100 scores or so, as in itan_log_loss_nats", lambda f: f.log_loss),
    OfStream("usual_log_loss_nats", "that mean over the last hour or so", lambda f: f.usual_log_loss),
    OfStream("nodes", "nodes of the model", lambda f: f.nodes),
    OfStream("cost", "cost of the wrong decisions that labels have shown", lambda f: f.cost),
    OfStream("best_fixed_cost", "what the best fixed threshold would have cost", lambda f: f.best_fixed_cost),
    OfStream("snapshot_bytes", "size of the last snapshot", lambda f: f.snapshot_bytes),
    OfStream("log_samples", "samples in the log that can still be labelled", lambda f: f.log_samples),
    OfStream("unsaved_events", "logged events that no snapshot holds", lambda f: f.unsaved_events),
)


def by_stream(shown: Sequence[Named]) -> Iterable[Metric]:
    """Give the gauges of these streams."""
    for name, text, read in GAUGES:
        metric = GaugeMetricFamily(f"itan_stream_{name}", f"of one stream: {text}", labels=["stream"])
        for stream, figures in shown:
            if (value := read(figures)) is not None:
                metric.add_metric([stream], value)
        yield metric
    yield confusion(shown)


def confusion(shown: Sequence[Named]) -> Metric:
    """Give the decisions on labelled samples, right and wrong."""
    text = "of one stream: labelled samples by decision and truth; fp are false alarms, fn misses"
    metric = GaugeMetricFamily("itan_stream_confusion", text, labels=["stream", "cell"])
    for stream, figures in shown:
        for cell, count in zip(CELLS, figures.confusion, strict=True):
            metric.add_metric([stream, cell], count)
    return metric
