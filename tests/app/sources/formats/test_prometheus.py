"""Remote write: each value of a series is a record, and other bytes are refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sources.errors import InvalidMessage, InvalidRecord
from app.sources.formats import prometheus
from app.streams.errors import InvalidSamples
from tests.app.sources.bodies import varint, write_request

TIME = 1_799_999_990_123
LABELS = {"__name__": "load", "job": "node", "instance": "a:9100"}


def trees(*series):
    found = prometheus.values_in(write_request(*series))
    return [None if value is None else prometheus.tree_of(value, "records[0]") for value in found]


def test_each_value_is_a_record():
    labels = {"job": "node", "instance": "a:9100"}
    assert trees((LABELS, [(0.5, TIME), (math.nan, TIME + 1)]), ({"__name__": "up"}, [(-1.0, -5)])) == [
        {"labels": labels, "metrics": {"load": 0.5}, "timestamp": TIME},
        {"labels": labels, "metrics": {}, "timestamp": TIME + 1},
        {"labels": {}, "metrics": {"up": -1.0}, "timestamp": -5},
    ]
    assert (trees(), trees((LABELS, []), ({}, []))) == ([], [None, None])


@pytest.mark.parametrize(
    ("labels", "value", "error", "field"),
    [
        ({"job": "x"}, 1.0, InvalidRecord, "labels.__name__"),
        (LABELS, math.inf, InvalidSamples, "metrics.load"),
        (LABELS | {str(i): "" for i in range(256)}, 1.0, InvalidRecord, "labels"),
        (LABELS | {"x": "y" * 1001}, 1.0, InvalidRecord, "labels.x"),
        (LABELS | {"x" * 1001: "y"}, 1.0, InvalidRecord, "labels.xx"),
    ],
)
def test_other_values_are_refused(labels, value, error, field):
    with pytest.raises(error) as refused:
        trees((labels, [(value, TIME)]))
    assert refused.value.field.startswith(f"records[0].{field}")


@given(st.binary(max_size=40) | st.data())
def test_other_bytes_are_read_or_refused(given):
    body = given
    if not isinstance(given, bytes):
        body = bytearray(write_request((LABELS, [(0.5, TIME)])))
        body[given.draw(st.integers(0, len(body) - 1))] = given.draw(st.integers(0, 255))
    try:
        found = list(filter(None, prometheus.values_in(bytes(body))))
    except InvalidMessage:
        return
    for value in found:
        try:
            assert set(prometheus.tree_of(value, "records[0]")) == {"labels", "metrics", "timestamp"}
        except (InvalidRecord, InvalidSamples):
            continue


def test_labels_are_counted_before_they_are_read():
    label = b"\x0a\x00"
    sample = b"\x12\x0b\x09" + bytes(8) + b"\x10\x01"
    for n, named in ((256, "__name__"), (300, "labels")):
        series = label * n + sample
        (value,) = prometheus.values_in(b"\x0a" + varint(len(series)) + series)
        with pytest.raises(InvalidRecord) as refused:
            prometheus.tree_of(value, "r")
        assert refused.value.field.endswith(named)
    assert refused.value.value == 300


def test_what_is_no_message_is_refused():
    for body in (b"\x0a", b"{}", b"\x0a\x02\x0a\x05"):
        with pytest.raises(InvalidMessage, match="WriteRequest"):
            list(prometheus.values_in(body))
