"""Gauges of all streams together."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily

from app.metrics.figures import StreamFigures


class Together(NamedTuple):
    """A gauge made of one figure of every stream that has it; without any it is 0 if it adds up, and missing if not."""

    name: str
    text: str
    read: Callable[[StreamFigures], float | None]
    join: Callable[[Sequence[float]], float] = sum


GAUGES: Final = (
    Together("warming_up_streams", "streams whose warm-up is not over", lambda f: f.samples_needed > 0),
    Together("nodes", "nodes of the models", lambda f: f.nodes),
    Together("threshold_nats", "median threshold of the streams", lambda f: f.threshold, median),
    Together(
        "log_loss_nats",
        "median, over streams, of the mean of the last 100 scores or so; none counts beyond its threshold + 20 nats",
        lambda f: f.log_loss,
        median,
    ),
    Together(
        "log_loss_rise_nats",
        "how far that mean lies above the usual one of the last hour or so, in the stream where it lies highest",
        lambda f: f.log_loss_rise,
        max,
    ),
    Together("cost", "cost of the wrong decisions that labels have shown", lambda f: f.cost),
    Together("best_fixed_cost", "what the best fixed thresholds would have cost", lambda f: f.best_fixed_cost),
    Together("snapshot_bytes", "size of the last snapshots", lambda f: f.snapshot_bytes),
    Together("log_samples", "samples in the logs that can still be labelled", lambda f: f.log_samples),
    Together(
        "unsaved_events", "logged events that no snapshot holds: a restart replays them", lambda f: f.unsaved_events
    ),
)


def together(streams: Sequence[StreamFigures]) -> Iterable[Metric]:
    """Give the gauges of streams."""
    for name, text, read, join in GAUGES:
        known = [value for value in map(read, streams) if value is not None]
        value = float(join(known)) if known or join is sum else None
        yield GaugeMetricFamily(f"itan_{name}", f"of all streams written here: {text}", value)
