"""OpenTelemetry metrics over HTTP, in protobuf or JSON: each data point is a record of one series.

A rate stands for a sum or histogram of an interval (delta), per second. Totals that only rise are refused: a rate of
them would need the request before.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from google.protobuf.message import DecodeError

from app.sources.errors import InvalidMessage, InvalidRecord
from app.sources.formats.otlp_json import Request
from app.streams.errors import InvalidSamples, TooMany

MOST_BYTES: Final = 4_194_304
MOST_ATTRIBUTES: Final = 256
MOST_CHARACTERS: Final = 1_000
"""Longer texts are no labels; and each point of a resource has all of its attributes."""
LONGEST_NAME: Final = 256
MOST_OBJECTS: Final = 250_000
"""More would have 16 bytes each; an attribute alone takes 34 bytes for its two."""
KINDS: Final = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
SCALARS: Final = ("string_value", "bool_value", "int_value", "double_value")
NO_RECORDED_VALUE: Final = 1
DELTA, CUMULATIVE = 1, 2
UNSIGNED: Final = range(2**64)
SIGNED: Final = range(-(2**63), 2**63)
NS: Final = 1e9
FORM: Final = "an ExportMetricsServiceRequest"
NO_TOTAL: Final = "1, delta (OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta): totals only rise"
READ: Final = "a gauge, a sum or a histogram"
FINITE: Final = "a finite number, or NaN for a missing one"
_REQUEST = msgspec.json.Decoder(Request)


class Point(NamedTuple):
    """A data point, and what it is a part of."""

    resource: dict[str, Any]
    n_of_resource: int
    scope: str
    name: str
    kind: str
    data: Any
    point: Any


def points_in(body: bytes, *, is_json: bool) -> Iterator[Point | None]:
    """Give the data points of a request; None for each part without any. Raises InvalidMessage or TooMany."""
    request = read_json(body) if is_json else read_protobuf(body)
    for of_resource in request.resource_metrics or ():
        if not of_resource.scope_metrics:
            yield None
            continue
        given = (of_resource.resource.attributes or ()) if of_resource.HasField("resource") else ()
        resource = attributes_of(given[: MOST_ATTRIBUTES + 1])
        for of_scope in of_resource.scope_metrics:
            if not of_scope.metrics:
                yield None
                continue
            scope = of_scope.scope.name if of_scope.HasField("scope") else ""
            for metric in of_scope.metrics:
                yield from (
                    found and Point(resource, len(given), scope, metric.name, *found) for found in data_in(metric)
                )


def data_in(metric: Any) -> Iterator[tuple[str, Any, Any] | None]:
    """Give the points of a metric with their kind and what they have in common; None if there are none."""
    found = [(kind, data) for kind in filter(metric.HasField, KINDS) if (data := getattr(metric, kind)).data_points]
    if not found:
        yield None
    for kind, data in found:
        for point in data.data_points:
            yield kind, data, point


def read_protobuf(body: bytes) -> Any:
    """Read a request."""
    # slow to import, and few services need it
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    request = ExportMetricsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise InvalidMessage("body", f"{len(body)} bytes", f"{FORM} in protobuf") from error
    return request


def read_json(body: bytes) -> Any:
    """Read a request."""
    if (n_objects := body.count(b"{")) > MOST_OBJECTS:
        raise TooMany("body", f"{n_objects} objects", f"at most {MOST_OBJECTS} objects in one request")
    try:
        return _REQUEST.decode(body)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("body", f"{len(body)} bytes", f"{FORM} in JSON: {plain(error)}") from error


def attributes_of(given: Iterable[Any] | None) -> dict[str, Any]:
    """Give the attributes that are texts, numbers or booleans."""
    found = dict[str, Any]()
    for attribute in given or ():
        if attribute.HasField("value"):
            kind = next(filter(attribute.value.HasField, SCALARS), None)
            value = None if kind is None else getattr(attribute.value, kind)
            if value is not None and not (isinstance(value, str) and len(value) > MOST_CHARACTERS):
                found[attribute.key] = value
    return found


def tree_of(point: Point, field: str) -> dict[str, Any]:
    """Make a record of a data point. Raises InvalidRecord or InvalidSamples for this field."""
    refuse_large(point, field)
    return {
        "resource": point.resource,
        "scope": {"name": point.scope},
        "attributes": attributes_of(point.point.attributes),
        "metrics": values_of(point, field),
        "time_unix_nano": whole(point.point.time_unix_nano, f"{field}.time_unix_nano") or None,
    }


def refuse_large(point: Point, field: str) -> None:
    """Raise InvalidRecord for a longer name, or more attributes, than any point needs."""
    if len(point.name) > LONGEST_NAME:
        raise InvalidRecord(f"{field}.name", point.name, f"at most {LONGEST_NAME} characters")
    n_attributes = point.n_of_resource + len(point.point.attributes or ())
    if n_attributes > MOST_ATTRIBUTES:
        raise InvalidRecord(
            f"{field}.attributes", n_attributes, f"at most {MOST_ATTRIBUTES}, with those of the resource"
        )


def values_of(point: Point, field: str) -> dict[str, float]:
    """Give the values of a point by their names; none if it has none, or is not a number."""
    if whole(point.point.flags, f"{field}.flags") & NO_RECORDED_VALUE:
        return {}
    match point.kind:
        case "gauge":
            given = {point.name: value_of(point, field)}
        case "sum":
            given = {point.name: value_of(point, field) / seconds_of(point, field)}
        case "histogram" | "exponential_histogram":
            given = distribution_of(point, field)
        case _:
            raise InvalidRecord(f"{field}.{point.kind}", point.name, READ)
    for name, value in given.items():
        if math.isinf(value):
            raise InvalidSamples(f"{field}.metrics.{name}", value, FINITE)
    return {name: value for name, value in given.items() if not math.isnan(value)}


def value_of(point: Point, field: str) -> float:
    """Give the number of a point; NaN if it has none."""
    if point.point.HasField("as_double"):
        return number(point.point.as_double, f"{field}.as_double")
    if point.point.HasField("as_int"):
        return float(whole(point.point.as_int, f"{field}.as_int", SIGNED))
    return math.nan


def seconds_of(point: Point, field: str) -> float:
    """Give the length of the interval in which a sum came together; 1 for a level, which is taken as it is."""
    temporality = point.data.aggregation_temporality
    if temporality == CUMULATIVE and point.kind == "sum" and not point.data.is_monotonic:
        return 1.0
    if temporality != DELTA:
        raise InvalidRecord(f"{field}.{point.kind}.aggregation_temporality", temporality, NO_TOTAL)
    start = whole(point.point.start_time_unix_nano, f"{field}.start_time_unix_nano")
    end = whole(point.point.time_unix_nano, f"{field}.time_unix_nano")
    if not 0 < start < end:
        raise InvalidRecord(f"{field}.start_time_unix_nano", start, "given, and before time_unix_nano")
    return (end - start) / NS


def distribution_of(point: Point, field: str) -> dict[str, float]:
    """Give how often something was measured per second, and the mean if there is one."""
    seconds, count = seconds_of(point, field), whole(point.point.count, f"{field}.count")
    found = {f"{point.name}.count": count / seconds}
    if count and point.point.HasField("sum"):
        found[f"{point.name}.mean"] = number(point.point.sum, f"{field}.sum") / count
    return found


def whole(value: Any, field: str, bounds: range = UNSIGNED) -> int:
    """Read a whole number, which JSON may give as a text; 0 if there is none."""
    try:
        found = int(value or 0)
    except ValueError:
        raise InvalidRecord(field, value, "a whole number") from None
    if found not in bounds:
        raise InvalidRecord(field, value, f"a whole number from {bounds.start} to {bounds.stop - 1}")
    return found


def number(value: Any, field: str) -> float:
    """Read a number, which JSON may give as a text."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise InvalidRecord(field, value, FINITE) from None


def plain(error: Exception) -> str:
    """Give the text of a decoder's error without its quotation marks."""
    return str(error).replace("`", "")
