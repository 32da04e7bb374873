"""Prometheus remote write 1.0: each value of a series is a record."""

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from app.sources.errors import InvalidMessage, InvalidRecord
from app.streams.errors import InvalidSamples

MOST_BYTES: Final = 4_194_304
MOST_LABELS: Final = 256
MOST_CHARACTERS: Final = 1_000
NAME: Final = "__name__"
FORM: Final = "a prometheus.WriteRequest in protobuf"
FINITE: Final = "a finite number, or NaN for a missing one"


class Value(NamedTuple):
    """A value of a series at a time, in milliseconds."""

    labels: dict[str, str]
    n_labels: int
    value: float
    timestamp: int


def values_in(body: bytes) -> Iterator[Value | None]:
    """Give the values of a request; None for a series without any. Raises InvalidMessage."""
    from app.sources.formats.remote_write import TYPES

    try:
        for series in TYPES["WriteRequest"].FromString(body).timeseries:
            read = TYPES["TimeSeries"].FromString(series)
            if not read.samples:
                yield None
                continue
            n_labels = len(read.labels)
            labels = {label.name: label.value for label in read.labels[: MOST_LABELS + 1]}
            for sample in read.samples:
                yield Value(labels, n_labels, sample.value, sample.timestamp)
    except DecodeError as error:
        raise InvalidMessage("body", f"{len(body)} bytes", FORM) from error


def tree_of(value: Value, field: str) -> dict[str, Any]:
    """Make a record of a value. Raises InvalidRecord or InvalidSamples for this field."""
    refuse_large(value, field)
    labels = dict(value.labels)
    name = labels.pop(NAME, None)
    if name is None:
        raise InvalidRecord(f"{field}.labels.{NAME}", None, "given")
    if math.isinf(value.value):
        raise InvalidSamples(f"{field}.metrics.{name}", value.value, FINITE)
    # so a series ends, too
    metrics = {} if math.isnan(value.value) else {name: value.value}
    return {"labels": labels, "metrics": metrics, "timestamp": value.timestamp}


def refuse_large(value: Value, field: str) -> None:
    """Raise InvalidRecord for more or longer labels than any series needs: each of its values has them all."""
    if value.n_labels > MOST_LABELS:
        raise InvalidRecord(f"{field}.labels", value.n_labels, f"at most {MOST_LABELS} labels")
    for name, text in value.labels.items():
        if len(name) > MOST_CHARACTERS or len(text) > MOST_CHARACTERS:
            raise InvalidRecord(f"{field}.labels.{name}", text, f"at most {MOST_CHARACTERS} characters")
