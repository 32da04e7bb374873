"""The JSON form of OpenTelemetry metrics, with the names and presence of its protobuf form."""

from typing import Any

import msgspec

Whole = int | str | None
"""JSON writes long whole numbers as texts."""
Number = float | str | None


class Message(msgspec.Struct, rename="camel"):
    """A message; null stands for a field that is not there. Unknown fields are left out."""

    def HasField(self, name: str) -> bool:  # noqa: N802 (protobuf's name)
        """Tell whether a field is there, as a message of protobuf does."""
        return getattr(self, name) is not None


class AnyValue(Message):
    """A value; arrays, maps and bytes are not read."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: Whole = None
    double_value: Number = None


class KeyValue(Message):
    """An attribute."""

    key: str = ""
    value: AnyValue | None = None


class DataPoint(Message):
    """A data point of any kind."""

    attributes: list[KeyValue] | None = None
    start_time_unix_nano: Whole = None
    time_unix_nano: Whole = None
    flags: int | None = None
    as_double: Number = None
    as_int: Whole = None
    count: Whole = None
    sum: Number = None


class Data(Message):
    """The data points of a metric."""

    data_points: list[DataPoint] | None = None
    aggregation_temporality: int | None = None
    is_monotonic: bool | None = None


class Metric(Message):
    """A metric, with data of one kind."""

    name: str = ""
    gauge: Data | None = None
    sum: Data | None = None
    histogram: Data | None = None
    exponential_histogram: Data | None = None
    summary: Data | None = None


class Scope(Message):
    """What measured."""

    name: str = ""


class ScopeMetrics(Message):
    """The metrics of a scope."""

    scope: Scope | None = None
    metrics: list[Metric] | None = None


class Resource(Message):
    """What was measured."""

    attributes: list[KeyValue] | None = None


class ResourceMetrics(Message):
    """The metrics of a resource."""

    resource: Resource | None = None
    scope_metrics: list[ScopeMetrics] | None = None


class Request(Message):
    """An ExportMetricsServiceRequest."""

    resource_metrics: list[ResourceMetrics] | None = None


def as_json(rejected: int, message: str) -> dict[str, Any]:
    """Write an ExportMetricsServiceResponse."""
    return {"partialSuccess": {"rejectedDataPoints": str(rejected), "errorMessage": message}} if rejected else {}
