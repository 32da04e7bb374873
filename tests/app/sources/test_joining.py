"""Records of one stream and time become one sample, within a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.sources.joining import joined
from app.streams.batches.records import Record


def record(place, time, stream="s", client_id="", **sample):
    return Record(place, stream, sample, client_id, time)


def samples_of(records, seconds=0.0):
    refused = {}
    return joined(records, seconds, refused), refused


def test_equal_times_of_a_stream_are_joined_and_others_are_not():
    records = [
        record(0, 20.0, a=1.0),
        record(1, 10.0, a=2.0),
        record(2, 20.0, b=None),
        record(3, 20.0, "t", b=3.0),
        record(4, 20.5, b=4.0),
        record(5, 10.0, b=5.0, c=6.0),
    ]
    found, refused = samples_of(records)
    assert [(one.stream, one.time, one.places, one.sample) for one in found] == [
        ("s", 10.0, (1, 5), {"a": 2.0, "b": 5.0, "c": 6.0}),
        ("s", 20.0, (0, 2), {"a": 1.0, "b": None}),
        ("t", 20.0, (3,), {"b": 3.0}),
        ("s", 20.5, (4,), {"b": 4.0}),
    ]
    assert refused == {}
    assert records[0].sample == {"a": 1.0}


def test_a_window_joins_what_lies_between_two_multiples_of_its_length():
    records = [record(0, 19.9, a=1.0), record(1, 20.0, a=2.0), record(2, 29.9, b=3.0), record(3, 30.0, b=4.0)]
    found, _ = samples_of(records, 10.0)
    assert [(one.time, one.sample) for one in found] == [
        (19.9, {"a": 1.0}),
        (20.0, {"a": 2.0, "b": 3.0}),
        (30.0, {"b": 4.0}),
    ]


def test_a_feature_that_comes_twice_is_refused_with_its_record():
    found, refused = samples_of([record(0, 5.0, a=1.0), record(7, 5.0, b=2.0, a=2.0), record(8, 5.0, b=3.0)])
    assert [(one.places, one.sample) for one in found] == [((0, 8), {"a": 1.0, "b": 3.0})]
    assert {place: (error.field, error.value) for place, error in refused.items()} == {7: ("records[7].sample.a", 2.0)}


def test_ids_tell_parts_of_one_time_apart():
    (whole,), _ = samples_of([record(0, 5.0, client_id="5", a=1.0), record(1, 5.0, client_id="5", b=2.0)])
    (same,), _ = samples_of([record(0, 5.0, client_id="5", b=7.0), record(1, 5.0, client_id="5", a=8.0)])
    (part,), _ = samples_of([record(0, 5.0, client_id="5", a=1.0)])
    assert whole.client_id == same.client_id != part.client_id
    assert part.client_id.startswith("5:")
    (without,), _ = samples_of([record(0, 5.0, a=1.0)])
    assert without.client_id == ""


@given(
    st.lists(st.tuples(st.sampled_from("st"), st.integers(0, 40), st.sampled_from("abc")), max_size=30),
    st.sampled_from([0.0, 1.0, 7.0]),
)
def test_every_record_is_in_one_sample_or_refused(given, seconds):
    records = [Record(place, stream, {name: 1.0}, "", float(time)) for place, (stream, time, name) in enumerate(given)]
    found, refused = samples_of(records, seconds)
    assert sorted([*refused, *(place for one in found for place in one.places)]) == list(range(len(given)))
    for one in found:
        assert set(one.sample) == {given[place][2] for place in one.places}
        assert {given[place][0] for place in one.places} == {one.stream}
        span = [given[place][1] for place in one.places]
        assert max(span) - min(span) <= max(0, seconds - 1)
    for stream in "st":
        times = [one.time for one in found if one.stream == stream]
        assert times == sorted(times)


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_the_first_record_gives_time_and_id(seconds):
    (one,), _ = samples_of([record(3, 65.0, client_id="x", b=1.0), record(4, 65.0, client_id="y", a=1.0)], seconds)
    assert (one.place, one.time, one.client_id[:2], list(one.sample)) == (3, 65.0, "x:", ["b", "a"])
