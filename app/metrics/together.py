"""Gauges of all streams together."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np
from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily

from app.figures import StreamFigures


def median(values: Sequence[float]) -> float:
    """Give the median, by halves: the sum of two of the largest doubles is infinite."""
    return 2.0 * float(np.median(np.array(values, dtype=float) / 2.0))


class Together(NamedTuple):
    """A gauge made from one figure of every stream: their sum by default; otherwise the figure may be unknown."""

    name: str
    text: str
    figure: str
    join: Callable[[Sequence[float]], float] | None = None


GAUGES: Final = (
    Together("warming_up_streams", "streams that are still warming up", "is_warming_up"),
    Together("nodes", "nodes of the models", "nodes"),
    Together("threshold_nats", "median threshold of the streams", "threshold", median),
    Together(
        "log_loss_nats",
        "median, over streams, of the mean of about the last 100 scores; a score counts at most threshold + 20 nats",
        "log_loss",
        median,
    ),
    Together(
        "log_loss_rise_nats",
        "how far that mean is above its usual value of about the last hour, in the stream where it has risen most",
        "log_loss_rise",
        max,
    ),
    Together("drifted_streams", "streams where it has risen by more than 3 nats", "has_drifted"),
    Together("open_incidents", "incidents that are open now", "is_in_incident"),
    Together("cost", "cost of the decisions that labels have shown to be wrong", "cost"),
    Together("best_fixed_cost", "what the best fixed thresholds would have cost", "best_fixed_cost"),
    Together("snapshot_bytes", "size of the last snapshots", "snapshot_bytes"),
    Together("log_samples", "samples in the logs that can still be labelled", "log_samples"),
    Together("unsaved_events", "logged events that are in no snapshot: a restart replays them", "unsaved_events"),
    Together("replay_seconds", "CPU seconds that a replay of these events would take", "replay_seconds"),
)


def together(streams: Sequence[StreamFigures]) -> Iterable[Metric]:
    """Give the gauges of streams."""
    for name, text, figure, join in GAUGES:
        values = map(attrgetter(figure), streams)
        if join is None:
            value: float | None = float(sum(values))
        else:
            known = [value for value in values if value is not None]
            value = float(join(known)) if known else None
        yield GaugeMetricFamily(f"itan_{name}", f"all streams of this worker: {text}", value)
