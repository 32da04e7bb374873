"""OpenTelemetry metrics: which numbers are values, in protobuf and in JSON alike."""

import json
import subprocess
import sys

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from app.sources.errors import InvalidMessage, InvalidRecord
from app.sources.formats import otlp
from app.streams.errors import InvalidSamples, TooMany

END, START = 1_799_999_990_000_000_000, 1_799_999_980_000_000_000


def point(**fields):
    return {"timeUnixNano": str(END), "startTimeUnixNano": str(START)} | fields


def request(*metrics, resource=()):
    attributes = [{"key": key, "value": value} for key, value in resource]
    return {"resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": list(metrics)}]}]}


def gauge(name="g", **fields):
    return {"name": name, "gauge": {"dataPoints": [point(**fields)]}}


def both(tree):
    """Give the points of a request by both of its forms."""
    message = ParseDict(tree, ExportMetricsServiceRequest())
    by_protobuf = list(otlp.points_in(message.SerializeToString(), is_json=False))
    return by_protobuf, list(otlp.points_in(json.dumps(tree).encode(), is_json=True))


def read(tree):
    """Give the records of a request, which both forms must agree on."""
    one, other = ([otlp.tree_of(found, "records[0]") for found in points] for points in both(tree))
    assert one == other
    return one


def values(*metrics):
    return [record["metrics"] for record in read(request(*metrics))]


def test_a_record_names_all_that_a_point_is_a_part_of():
    resource = [("service.name", {"stringValue": "shop"}), ("x", {"doubleValue": 0.5})]
    other = [{"key": "flag", "value": {"boolValue": False}}, {"key": "list", "value": {"arrayValue": {}}}]
    tree = request(gauge(asDouble=0.25, attributes=[*other, {"key": "long", "value": {"stringValue": "x" * 1001}}]))
    tree["resourceMetrics"][0]["resource"] = request(resource=resource)["resourceMetrics"][0]["resource"]
    tree["resourceMetrics"][0]["scopeMetrics"][0]["scope"] = {"name": "meter"}
    assert read(tree) == [
        {
            "resource": {"service.name": "shop", "x": 0.5},
            "scope": {"name": "meter"},
            "attributes": {"flag": False},
            "metrics": {"g": 0.25},
            "time_unix_nano": END,
        }
    ]


def summed(temporality, *, monotonic=True, **fields):
    data = {"dataPoints": [point(**fields)], "aggregationTemporality": temporality, "isMonotonic": monotonic}
    return {"name": "s", "sum": data}


def test_levels_are_as_they_are_and_intervals_are_rates():
    assert values(gauge(asInt="-7"), gauge(asDouble=1.5)) == [{"g": -7}, {"g": 1.5}]
    assert values(summed(1, asInt="50")) == [{"s": 5.0}]
    assert values(summed(2, monotonic=False, asDouble=4.0)) == [{"s": 4.0}]


@pytest.mark.parametrize("kind", ["histogram", "exponentialHistogram"])
def test_histograms_are_a_rate_and_a_mean(kind):
    def of(**fields):
        return {"name": "h", kind: {"dataPoints": [point(**fields)], "aggregationTemporality": 1}}

    assert values(of(count="20", sum=5.0)) == [{"h.count": 2.0, "h.mean": 0.25}]
    assert values(of(count="0", sum=0.0), of(count="3")) == [{"h.count": 0.0}, {"h.count": 0.3}]


@pytest.mark.parametrize("fields", [{"asDouble": "NaN"}, {}, {"asDouble": 1.0, "flags": 1}])
def test_a_missing_value_is_none(fields):
    assert values(gauge(**fields)) == [{}]


@pytest.mark.parametrize(
    ("metric", "error", "field"),
    [
        (summed(2, asInt="5"), InvalidRecord, "sum.aggregation_temporality"),
        (summed(0, asInt="5"), InvalidRecord, "sum.aggregation_temporality"),
        (summed(1, asInt="5", startTimeUnixNano="0"), InvalidRecord, "start_time_unix_nano"),
        (summed(1, asInt="5", startTimeUnixNano=str(END)), InvalidRecord, "start_time_unix_nano"),
        (
            {"name": "h", "histogram": {"dataPoints": [point(count="5")], "aggregationTemporality": 2}},
            InvalidRecord,
            "",
        ),
        ({"name": "q", "summary": {"dataPoints": [point(count="5")]}}, InvalidRecord, "summary"),
        (gauge(asDouble="Infinity"), InvalidSamples, "metrics.g"),
        (summed(1, asDouble=1e308, startTimeUnixNano=str(END - 1)), InvalidSamples, "metrics.s"),
        (gauge("g" * 257, asDouble=1.0), InvalidRecord, "name"),
        (
            gauge(asDouble=1.0, attributes=[{"key": str(i), "value": {"intValue": "1"}} for i in range(257)]),
            InvalidRecord,
            "attributes",
        ),
    ],
)
def test_other_points_are_refused(metric, error, field):
    for points in both(request(metric)):
        with pytest.raises(error) as refused:
            otlp.tree_of(points[0], "records[0]")
        assert refused.value.field.startswith(f"records[0].{field}")


@pytest.mark.parametrize("body", [b"\x0a", b"{}", b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\x12\x05"])
def test_other_bytes_are_refused(body):
    with pytest.raises(InvalidMessage, match="protobuf"):
        list(otlp.points_in(body, is_json=False))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"resourceMetrics": 5}', b'{"resourceMetrics": ' + b"[" * 100_000, b"\xff", b"1e999"]
)
def test_other_json_is_refused(body):
    with pytest.raises(InvalidMessage, match="JSON"):
        list(otlp.points_in(body, is_json=True))


def test_fields_that_are_null_or_unknown_are_no_fields():
    tree = {"resourceMetrics": [{"resource": None, "new": 5, "scopeMetrics": [{"scope": None, "metrics": None}]}, {}]}
    assert list(otlp.points_in(json.dumps(tree).encode(), is_json=True)) == [None, None]
    bad = request(gauge(asInt="x"))
    (found,) = otlp.points_in(json.dumps(bad).encode(), is_json=True)
    with pytest.raises(InvalidRecord, match="whole number"):
        otlp.tree_of(found, "records[0]")


def test_messages_are_made_at_the_first_request():
    """They take 100 ms and 8 MB that most services never need."""
    slow = "('opentelemetry.proto', 'google.protobuf.descriptor', 'app.sources.formats.remote_write')"
    code = f"import sys, app.api.ingest; print(*(name for name in sys.modules if name.startswith({slow})))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []


def test_a_part_without_points_counts_as_one():
    metrics = [{}, {"name": "m", "gauge": {}}, gauge(asDouble=1.0)]
    tree = {"resourceMetrics": [{}, {"scopeMetrics": [{}, {"metrics": metrics}]}]}
    for points in both(tree):
        assert [point and point.name for point in points] == [None, None, None, None, "g"]


def test_attributes_of_a_resource_are_counted_before_they_are_read():
    for n, is_refused in ((256, False), (300, True)):
        for points in both(request(gauge(asDouble=1.0), resource=[("same", {"boolValue": True})] * n)):
            if not is_refused:
                assert otlp.tree_of(points[0], "r")["resource"] == {"same": True}
                continue
            with pytest.raises(InvalidRecord, match="256") as refused:
                otlp.tree_of(points[0], "r")
            assert refused.value.value == 300


def test_objects_are_counted_before_they_are_read():
    body = b'{"resourceMetrics":[' + b",".join([b"{}"] * 249_999) + b"]}"
    assert next(otlp.points_in(body, is_json=True)) is None
    with pytest.raises(TooMany, match="250000"):
        next(otlp.points_in(body[:-2] + b",{}]}", is_json=True))


OUTSIDE = ["-1", -1, 2**64, 10**400, "9" * 316, "9" * 5000, "1.5"]


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field in ("timeUnixNano", "startTimeUnixNano", "count") for value in OUTSIDE]
    + [("flags", -1), ("flags", 10**400)]
    + [("asInt", value) for value in (*OUTSIDE[2:], -(2**63) - 1, str(2**63))],
)
def test_whole_numbers_that_protobuf_does_not_hold_are_refused(field, value):
    metric = summed(1, **({"asInt": "1"} | {field: value}))
    if field == "count":
        metric = {"name": "h", "histogram": metric["sum"]}
    (found,) = otlp.points_in(json.dumps(request(metric)).encode(), is_json=True)
    with pytest.raises(InvalidRecord, match="whole number"):
        otlp.tree_of(found, "records[0]")


@given(st.data())
def test_changed_bytes_are_read_or_refused(data):
    """Whatever bytes come, an error names what is wrong."""
    message = ParseDict(request(gauge(asDouble=1.0), summed(1, asInt="5")), ExportMetricsServiceRequest())
    body = bytearray(message.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        points = list(filter(None, otlp.points_in(bytes(body), is_json=False)))
    except InvalidMessage:
        return
    for found in points:
        try:
            otlp.tree_of(found, "records[0]")
        except (InvalidRecord, InvalidSamples):
            continue


def test_the_forms_agree_on_what_the_library_writes():
    tree = request(gauge(asInt="3"), summed(1, asDouble=0.5), resource=[("service.name", {"stringValue": "x"})])
    written = MessageToDict(ParseDict(tree, ExportMetricsServiceRequest()), use_integers_for_enums=True)
    assert read(written) == read(tree)
