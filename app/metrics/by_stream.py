"""Gauges of single streams, by name."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily

from app.figures import StreamFigures
from app.metrics.known import CELLS


class OfStream(NamedTuple):
    """A gauge of a stream; missing while its figure is unknown."""

    name: str
    text: str
    figure: str


GAUGES: Final = (
    OfStream("samples", "samples seen", "samples"),
    OfStream("samples_needed", "samples that the warm-up still needs", "samples_needed"),
    OfStream("score_nats", "score of the newest sample", "score"),
    OfStream(
        "severity",
        "-log10 of the chance that an ordinary sample scores as high as the newest: 2 is one in a hundred",
        "severity",
    ),
    OfStream("threshold_nats", "threshold that the next score will meet", "threshold"),
    OfStream("flag_rate", "share of about the last 1000 samples that was flagged", "flag_rate"),
    OfStream("expected_flag_rate", "the share to expect by its config", "expected_flag_rate"),
    OfStream("open_incidents", "1 while an incident is open, else 0", "is_in_incident"),
    OfStream("incidents", "incidents opened since the stream began", "incidents"),
    OfStream("log_loss_nats", "mean of about the last 100 scores, as in itan_log_loss_nats", "log_loss"),
    OfStream("usual_log_loss_nats", "that mean over about the last hour", "usual_log_loss"),
    OfStream("nodes", "nodes of the model", "nodes"),
    OfStream("cost", "cost of the decisions that labels have shown to be wrong", "cost"),
    OfStream("best_fixed_cost", "what the best fixed threshold would have cost", "best_fixed_cost"),
    OfStream("snapshot_bytes", "size of the last snapshot", "snapshot_bytes"),
    OfStream("log_samples", "samples in the log that can still be labelled", "log_samples"),
    OfStream("unsaved_events", "logged events that are in no snapshot", "unsaved_events"),
)


def by_stream(shown: Sequence[StreamFigures]) -> Iterable[Metric]:
    """Give the gauges of these streams."""
    for name, text, figure in GAUGES:
        read = attrgetter(figure)
        metric = GaugeMetricFamily(f"itan_stream_{name}", f"one stream: {text}", labels=["stream"])
        for figures in shown:
            if (value := read(figures)) is not None:
                metric.add_metric([figures.stream], value)
        yield metric
    yield confusion(shown)


def confusion(shown: Sequence[StreamFigures]) -> Metric:
    """Give the decisions on labelled samples, right and wrong."""
    text = "one stream: labelled samples by decision and truth; fp are false alarms, fn are misses"
    metric = GaugeMetricFamily("itan_stream_confusion", text, labels=["stream", "cell"])
    for figures in shown:
        for cell, count in zip(CELLS, figures.confusion, strict=True):
            metric.add_metric([figures.stream, cell], count)
    return metric
