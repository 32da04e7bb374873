"""Records of agents as samples: which stream, which features, which time and id."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sources import keys
from app.sources.errors import InvalidRecord
from app.sources.keys import Keys, leaves_of
from app.sources.mapper import Mapper
from app.sources.presets import PRESETS
from app.sources.source import InvalidSource, Source, check
from app.sources.templates import Template, plain
from app.streams.errors import InvalidSamples, InvalidTimestamps
from core import InvalidConfig
from tests.app.sources import bodies


def preset(name):
    return msgspec.convert(PRESETS[name], Source)


def mapper(**fields):
    source = msgspec.convert({"stream": "s", "features": ["*"]} | fields, Source)
    check(source)
    return Mapper(source)


def sample_of(tree, **fields):
    return mapper(**fields).record(0, tree).sample


def records_of(name, body):
    made = Mapper(preset(name))
    return [made.record(place, tree) for place, tree in enumerate(body)]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name):
    check(preset(name))


def test_telegraf():
    records = records_of("telegraf", json.loads(bodies.TELEGRAF)["metrics"])
    assert [record.stream for record in records] == [
        "raynor:cpu:cpu0",
        "raynor:cpu:cpu1",
        "raynor:disk:ext4:_2Fvar_2Flog",
    ]
    assert records[0].sample == {"usage_idle": 94.1, "usage_user": 3.2, "usage_system": 2.7}
    assert records[2].sample == {"free": 1024, "used": 4096}
    assert {(record.client_id, record.time) for record in records} == {("1799999990", 1799999990.0)}
    (single,) = records_of("telegraf", [json.loads(bodies.TELEGRAF_SINGLE)])
    assert (single.stream, list(single.sample)) == ("raynor:docker", ["field_1", "field_2", "field_N", "n_images"])


def test_vector():
    first, second = records_of("vector", map(json.loads, bodies.VECTOR.splitlines()))
    assert first.stream == second.stream == "web-1:requests"
    assert (first.sample, second.sample) == ({"cpu": 0.31, "latency_ms": 18}, {"cpu": 0.29, "latency_ms": None})
    assert first.time == pytest.approx(1799999990.123456, abs=1e-6)
    load, counter = json.loads(bodies.VECTOR_METRICS)
    (record,) = records_of("vector-metrics", [load])
    assert (record.stream, record.sample) == ("web-1:load", {"load1": 0.27})
    assert records_of("vector-metrics", [counter]) == [None]


def test_fluent_bit():
    first, second = records_of("fluent-bit", json.loads(bodies.FLUENT_BIT))
    assert first.stream == second.stream == "web-1:cpu"
    assert first.sample == {"cpu_p": 3.5, "user_p": 2.25, "system_p": 1.25, "cpu0.p_cpu": 3.0, "cpu0.p_user": 2.0}
    assert (first.client_id, first.time) == ("1799999990.123456", 1799999990.123456)
    assert second.client_id != first.client_id


def test_collectd():
    load, disk = records_of("collectd", json.loads(bodies.COLLECTD))
    assert (load.stream, disk.stream) == ("leeloo.octo.it:load::load:", "leeloo.octo.it:disk:sda:disk_octets:")
    assert load.sample == {"shortterm": 0.07, "midterm": 0.11, "longterm": 0.09}
    assert disk.sample == {"read": 1901474177, "write": None}
    assert load.time == 1799999990.265


@pytest.mark.parametrize(
    ("tree", "field"),
    [
        ({"dsnames": "x", "values": [1]}, "records[0].dsnames"),
        ({"dsnames": ["x", 1], "values": [1, 2]}, "records[0].dsnames"),
        ({"dsnames": ["x", "y"], "values": [1]}, "records[0].values"),
        ({"dsnames": ["x"], "values": ["1"]}, "records[0].values"),
        ({"dsnames": ["x"], "values": [True]}, "records[0].values"),
        ({"dsnames": ["x"]}, "records[0].values"),
        ({"dsnames": ["x", "x"], "values": [1, 2]}, "records[0].values[1]"),
        ({"dsnames": [], "values": []}, "records[0]"),
        ({"dsnames": ["x"], "values": [10**400]}, "records[0].values[0]"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(tree, field):
    made = mapper(features=[], arrays={"names": "dsnames", "values": "values"})
    with pytest.raises(InvalidSamples) as refused:
        made.record(0, tree)
    assert refused.value.field == field


def test_numbers_alone_are_features_unless_a_path_means_one():
    tree = {"a": 1, "b": "2", "c": None, "d": True, "e": [1], "f": {"g": 2.5, "h": "x"}}
    assert sample_of(tree) == {"a": 1, "c": None, "f.g": 2.5}
    assert sample_of(tree, ignore=["f.*", "c"]) == {"a": 1}
    assert sample_of(tree, features=["f.g", "a"]) == {"a": 1, "g": 2.5}
    assert sample_of(tree, features=["f.*"]) == {"g": 2.5}
    for path in ("b", "d", "e", "f.h"):
        with pytest.raises(InvalidSamples, match="a number or null"):
            sample_of(tree, features=[path])
    with pytest.raises(InvalidSamples, match="a record with a number at z"):
        sample_of(tree, features=["z"])
    with pytest.raises(InvalidSamples, match="of another name"):
        sample_of({"x": {"v": 1}, "y": {"v": 2}}, features=["x.*", "y.*"])
    with pytest.raises(InvalidSamples, match="a double"):
        sample_of({"a": -(10**400)})


def test_globs_take_everything_between():
    found = Keys(["a*c", "x.*.z", "w.q_*"], ["*bad*"])
    assert found.feature_of("abc") == ("abc", False)
    assert found.feature_of("a.b.c") == ("a.b.c", False)
    assert found.feature_of("x.y.z") == ("y.z", False)
    assert found.feature_of("w.q_1") == ("q_1", False)
    assert found.feature_of("x.y.zz") is None
    assert found.feature_of("abadc") is None


def test_no_record_makes_the_service_remember_without_end(monkeypatch):
    monkeypatch.setattr(keys, "MOST_KNOWN", 10)
    found = Keys(["*"], [])
    for i in range(100):
        assert found.feature_of(f"k{i}") == (f"k{i}", False)
        assert len(found._known) <= 10
    assert found.feature_of("x" * 1000) == ("x" * 1000, False)
    assert max(map(len, found._known)) < 10


@given(st.recursive(st.integers(), lambda inner: st.dictionaries(st.text("ab", min_size=1), inner, max_size=3)))
def test_leaves_are_found_at_their_paths(tree):
    leaves = leaves_of({"top": tree})
    for path, value in leaves.items():
        assert not isinstance(value, dict)
        node = {"top": tree}
        for name in path.split("."):
            node = node[name]
        assert node == value


@given(st.text(), st.text())
def test_different_values_make_different_streams_unless_they_hold_codes(one, other):
    if one != other and "_" not in one + other:
        assert plain(one) != plain(other)
    assert all(character.isascii() and (character.isalnum() or character in "._-") for character in plain(one))


def test_templates():
    leaves = {"a": 1, "b.c": 2.5, "b.d": "x/y", "e": True, "n": None, "l": [1]}
    assert Template("{a}-{b.c}{b.*}:{e}").filled(leaves, plain) == "1-2.5:x_2Fy:true"
    assert Template("{z.*}").filled(leaves) == ""
    assert Template("fixed").filled({}) == "fixed"
    for path in ("z", "n", "l"):
        with pytest.raises(LookupError):
            Template(f"{{{path}}}").filled(leaves)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (1800000000, "s", 1.8e9),
        (1800000000123, "ms", 1800000000.123),
        (1800000000123456, "us", 1800000000.123456),
        (1800000000123456789, "ns", 1800000000.1234567),
        ("2027-01-15T08:00:00Z", "ms", 1.8e9),
        ("2027-01-15T09:00:00.5+01:00", "s", 1800000000.5),
    ],
)
def test_times_have_units(value, unit, expected):
    record = mapper(timestamp="t", timestamp_unit=unit, ignore=["t"]).record(0, {"a": 1, "t": value})
    assert record.time == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("value", [None, True, "noon", "2027-01-15T08:00:00", [1], {"x": 1}])
def test_other_times_are_refused(value):
    with pytest.raises(InvalidTimestamps) as refused:
        mapper(timestamp="t", ignore=["t*"]).record(3, {"a": 1, "t": value})
    assert refused.value.field == "records[3].t"


def test_what_a_template_needs_must_be_there():
    made = mapper(stream="{tags.host}", id="{n}")
    for tree, field in (({"a": 1, "n": 1}, "tags.host"), ({"a": 1, "tags": {"host": "x"}}, "n")):
        with pytest.raises(InvalidRecord) as refused:
            made.record(2, tree)
        assert refused.value.field == f"records[2].{field}"


def test_a_template_names_features():
    made = mapper(features=["v.*"], feature="{name}.{feature}")
    assert made.record(0, {"name": "cpu", "v": {"idle": 1, "user": 2}}).sample == {"cpu.idle": 1, "cpu.user": 2}
    with pytest.raises(InvalidRecord) as refused:
        made.record(0, {"v": {"idle": 1}})
    assert refused.value.field == "records[0].name"
    with pytest.raises(InvalidSamples, match="of another name"):
        mapper(features=["v.*"], feature="{name}").record(0, {"name": "cpu", "v": {"idle": 1, "user": 2}})


def test_with_versions_each_set_of_features_is_a_stream():
    made = mapper(stream="{h}", ignore=["h"], new="version")
    one, other, again = ({"h": "w", "a": 1, "b": 2}, {"h": "w", "a": 1}, {"b": 5, "h": "w", "a": None})
    records = made.samples([made.record(0, tree) for tree in (one, other, again)], {})
    streams = [record.stream for record in records]
    assert streams[0] == streams[2] != streams[1]
    assert all(stream.startswith("w:") and len(stream) == 10 for stream in streams)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"stream": "a b"}, InvalidSource),
        ({"stream": "{a"}, InvalidSource),
        ({"stream": "a}"}, InvalidSource),
        ({"stream": "{}"}, InvalidSource),
        ({"id": "{a}{"}, InvalidSource),
        ({"features": []}, InvalidSource),
        ({"feature": "{a"}, InvalidSource),
        ({"join_seconds": 0}, InvalidSource),
        ({"join_seconds": -1, "timestamp": "t"}, msgspec.ValidationError),
        ({"join_seconds": 3601, "timestamp": "t"}, msgspec.ValidationError),
        ({"format": "xml"}, msgspec.ValidationError),
        ({"config": {"n_features": 3}}, InvalidConfig),
        ({"config": {"half_life_samples": -1}}, InvalidConfig),
        ({"config": {"features": [{"name": ""}]}}, InvalidConfig),
        ({"new": "other"}, msgspec.ValidationError),
        ({"timestamp_unit": "h"}, msgspec.ValidationError),
        ({"strean": "x"}, msgspec.ValidationError),
    ],
)
def test_a_source_that_cannot_be_used_is_refused(fields, error):
    with pytest.raises(error):
        mapper(**fields)
