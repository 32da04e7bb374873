"""Prometheus remote write 1.0: each value of a series is a record."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from app.sources.errors import InvalidMessage, InvalidRecord
from app.streams.errors import InvalidSamples

MOST_BYTES: Final = 4_194_304
MOST_LABELS: Final = 256
MOST_CHARACTERS: Final = 1_000
NAME: Final = "__name__"
FORM: Final = "a prometheus.WriteRequest in protobuf"
FINITE: Final = "a finite number, or NaN for a missing one"

Field = descriptor_pb2.FieldDescriptorProto
# series stay bytes until their turn: small messages take many times the memory of their bytes
MESSAGES: Final = {
    "WriteRequest": [("timeseries", 1, Field.TYPE_BYTES)],
    "TimeSeries": [("labels", 1, "Label"), ("samples", 2, "Sample")],
    "Label": [("name", 1, Field.TYPE_STRING), ("value", 2, Field.TYPE_STRING)],
    "Sample": [("value", 1, Field.TYPE_DOUBLE), ("timestamp", 2, Field.TYPE_INT64)],
}
REPEATED: Final = {"timeseries", "labels", "samples"}


def message_types() -> Mapping[str, Any]:
    """Make the messages that are read, as remote.proto and types.proto of Prometheus describe them."""
    file = descriptor_pb2.FileDescriptorProto(name="itan/prometheus.proto", package="itan.prometheus", syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            field = described.field.add(name=name, number=number)
            field.label = Field.LABEL_REPEATED if name in REPEATED else Field.LABEL_OPTIONAL
            if isinstance(kind, str):
                field.type, field.type_name = Field.TYPE_MESSAGE, f".itan.prometheus.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: Mapping[str, Any] = message_factory.GetMessageClassesForFiles([file.name], pool)
    return {name.rpartition(".")[2]: kind for name, kind in found.items()}


TYPES: Final = message_types()


class Value(NamedTuple):
    """A value of a series at a time, in milliseconds."""

    labels: dict[str, str]
    n_labels: int
    value: float
    timestamp: int


def values_in(body: bytes) -> Iterator[Value | None]:
    """Give the values of a request; None for a series without any. Raises InvalidMessage."""
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
