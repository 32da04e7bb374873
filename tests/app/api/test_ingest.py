"""POST /ingest: each record is a request of its own, whatever the others are."""

import asyncio
import json
import logging
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.api.bodies.records import read_records
from app.storage import LeaseHeld, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.changes import ingest as ingesting
from tests.app.api.test_bad_input import check_problem
from tests.app.harness import NOW, DisturbedStore, Service, blobs, raising, turns_of_others, until
from tests.app.problems import check_shape
from tests.effort import tries

NDJSON = {"Content-Type": "application/x-ndjson"}
COLUMNS = ("seq", "score", "threshold", "is_anomaly", "ready", "severity", "incident", "event")


def lines(records):
    return "\n".join(map(json.dumps, records))


async def ingest(service, records, query=""):
    return await service.accepted("POST", f"/ingest{query}", json=records)


def rows(answer):
    """Give what was said of each record that was taken, by its place."""
    return {
        place: {name: answer[name][i] for name in ("stream", "id", *COLUMNS)}
        for i, place in enumerate(answer["record"])
    }


def interleaved(n, streams, m=2):
    """Make n samples of each stream, in turn."""
    X = {stream: blobs(n, m, seed) for seed, stream in enumerate(streams)}
    return [{"stream": stream, "sample": X[stream][i].tolist()} for i in range(n) for stream in streams], X


async def test_each_stream_learns_as_if_it_had_been_sent_alone(service):
    records, X = interleaved(150, "abc")
    cuts = (0, 7, 200, 201, 450)
    answers = [await ingest(service, records[first:last]) for first, last in pairwise(cuts)]
    for stream, samples in X.items():
        alone = await service.observe(samples, f"{stream}-alone")
        said = [row for answer in answers for row in rows(answer).values() if row["stream"] == stream]
        for name in COLUMNS:
            assert [row[name] for row in said] == alone[name]
        assert await service.export(stream) == await service.export(f"{stream}-alone")


async def test_all_forms_of_the_body_say_the_same(service):
    records, _ = interleaved(80, ["x", "y"])
    first = await ingest(service, records)
    other = [record | {"stream": record["stream"] + "2"} for record in records]
    second = await service.accepted("POST", "/ingest", content=lines(other), headers=NDJSON)
    assert [row | {"stream": row["stream"][0]} for row in rows(second).values()] == list(rows(first).values())
    single = await ingest(service, {"stream": "z", "sample": {"cpu": 1}, "id": "a"})
    assert (single["stream"], single["id"], single["seq"]) == (["z"], ["a"], [1])


async def test_the_answer_lists_what_was_asked_for(service):
    records, _ = interleaved(100, ["a", "b"])
    await ingest(service, records)
    batch = [{"stream": "a", "sample": [0, 0]}, {"stream": "a"}, {"stream": "b", "sample": [900, 0], "id": "odd"}]
    counts = {"records": 3, "taken": 2, "refused": 1, "flagged": 1, "refused_by_code": {"invalid_body": 1}}
    everything = await ingest(service, batch)
    assert {name: everything[name] for name in counts} == counts
    assert everything["record"] == [0, 2]
    assert [problem["record"] for problem in everything["problems"]] == [1]
    flagged = await ingest(service, batch, "?answer=flagged")
    assert {name: flagged[name] for name in counts} == counts
    assert (flagged["record"], flagged["stream"], flagged["id"]) == ([2], ["b"], ["odd"])
    assert flagged["is_anomaly"] == [True]
    assert [problem["record"] for problem in flagged["problems"]] == [1]
    assert await ingest(service, batch, "?answer=counts") == counts
    await service.refused("POST", "/ingest?answer=some", 400, "invalid_query", json=batch)


WRONG = [
    (5, "invalid_body", ""),
    ([1, 2], "invalid_body", ""),
    ({"sample": [1, 2]}, "invalid_body", ".stream"),
    ({"stream": "s"}, "invalid_body", ".sample"),
    ({"stream": 5, "sample": [1, 2]}, "invalid_body", ".stream"),
    ({"stream": "s", "sample": [1, 2], "cpu": 3}, "invalid_body", ".cpu"),
    ({"stream": "a b", "sample": [1, 2]}, "invalid_stream_id", ".stream"),
    ({"stream": "..", "sample": [1, 2]}, "invalid_stream_id", ".stream"),
    ({"stream": "s", "sample": ["x", 2]}, "invalid_samples", ".sample[0]"),
    ({"stream": "s", "sample": [True, 2]}, "invalid_samples", ".sample[0]"),
    ({"stream": "s", "sample": 7}, "invalid_samples", ".sample"),
    ({"stream": "s", "sample": [1, 2, 3]}, "invalid_samples", ".sample"),
    ({"stream": "s", "sample": []}, "invalid_samples", ".sample"),
    ({"stream": "s", "sample": [None, None]}, "invalid_samples", ".sample"),
    ({"stream": "s", "sample": {"cpu": 1}}, "invalid_samples", ".sample"),
    ({"stream": "s", "sample": [1, 2], "id": ""}, "invalid_ids", ".id"),
    ({"stream": "s", "sample": [1, 2], "id": "known"}, "id_conflict", ".id"),
    ({"stream": "s", "sample": [1, 2], "timestamp": "noon"}, "invalid_timestamps", ".timestamp"),
    ({"stream": "s", "sample": [1, 2], "timestamp": NOW * 1000}, "invalid_timestamps", ".timestamp"),
]


async def test_a_wrong_record_is_told_what_is_wrong_and_the_others_are_taken(service):
    await service.observe([[5.0, 6.0]], ids=["known"])
    right = [{"stream": "s", "sample": x} for x in blobs(len(WRONG) + 1).tolist()]
    mixed = [right[0]]
    for (record, _, _), next_right in zip(WRONG, right[1:], strict=True):
        mixed += [record, next_right]
    answer = await ingest(service, mixed)
    assert answer["record"] == list(range(0, len(mixed), 2))
    told = {problem["record"]: problem for problem in answer["problems"]}
    assert list(told) == list(range(1, len(mixed), 2))
    for place, (_, code, field) in zip(told, WRONG, strict=True):
        assert (told[place]["code"], told[place]["field"]) == (code, f"records[{place}]{field}")
        check_shape({name: told[place][name] for name in ("type", "title", "status", "detail", "code")})
        assert told[place]["limit"]
    await service.observe([[5.0, 6.0]], "alone")
    await service.observe([record["sample"] for record in right], "alone")
    assert (await service.observe([[1, 2]], "alone"))["score"] == (await service.observe([[1, 2]]))["score"]
    codes = [code for _, code, _ in WRONG]
    for code in set(codes):
        assert await service.metric("itan_refused_records_total", code=code) == codes.count(code)


async def test_a_wrong_line_is_a_wrong_record(service):
    whole = '{"stream": "s", "sample": [1, 2]}'
    odd = [
        "{",
        '{"stream": "s", "sample": [NaN, 2]}',
        '{"stream": "s", "stream": "t", "sample": [1, 2]}',
        '{"stream": "s", "sample": {"a": 1, "a": 2}}',
        '{"stream": "s", "sample": [1e999, 2]}',
        '{"stream": "s", "sample": [1, ' + " " * 262_144 + "2]}",
        "[" * 20_000,
        f"{whole} {whole}",
    ]
    content = "\n\r\n".join([whole, *odd, whole]).encode() + b'\n{"stream": "s", "sample": [1, 2], "id": "\xff"}'
    answer = await service.accepted("POST", "/ingest", content=content, headers=NDJSON)
    assert answer["record"] == [0, 9]
    assert [problem["record"] for problem in answer["problems"]] == [*range(1, 9), 10]
    codes = [problem["code"] for problem in answer["problems"]]
    json_ = "invalid_json"
    samples = "invalid_samples"
    assert codes == [json_, samples, json_, json_, samples, "invalid_body", json_, json_, json_]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_what_is_no_number_is_named_where_it_stands(service, text):
    whole = '{"stream": "s", "sample": [1, 2]'
    lines = [whole + "}", f'{{"stream": "s", "sample": [1, {text}]}}', f'{whole}, "timestamp": {text}}}']
    answer = await service.accepted("POST", "/ingest", content="\n".join(lines), headers=NDJSON)
    assert [(one["code"], one["field"], one["value"]) for one in answer["problems"]] == [
        ("invalid_samples", "records[1].sample[1]", text),
        ("invalid_timestamps", "records[2].timestamp", text),
    ]


async def test_null_as_an_id_is_none(service):
    record = {"stream": "s", "sample": [1, 2], "id": None}
    answer = await ingest(service, [record, record])
    assert (answer["seq"], answer["id"]) == ([1, 2], [None, None])
    line = json.dumps({"sample": [1, 2], "id": None})
    answer = await service.accepted("POST", "/observe?stream=s", content=f"{line}\n{line}", headers=NDJSON)
    assert answer["seq"] == [3, 4]


@pytest.mark.parametrize("last", ["1", "true", "NaN"])
async def test_what_is_refused_holds_no_memory_until_the_answer(last):
    """Decoded, long records take ten times the memory of the body."""
    body = "\n".join(['{"stream": "s", "sample": [' + "0.5," * 20_000 + last + "]}"] * 20).encode()
    tracemalloc.start()
    try:
        read, refused, _ = await read_records("application/x-ndjson", body, 100)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert (read, len(refused)) == ([], 20)
    assert refused[7].field.startswith("records[7].sample")
    assert held < len(body)


@pytest.mark.parametrize("body", ["", "{", "[", "[1", "{}", "[]", "[[]]", "null", "nul", "[" * 50_000, "\ufeff", "1"])
async def test_a_body_without_a_record_is_refused(service, body):
    answer = await service.http.post("/ingest", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    check_problem(answer.json())


async def test_lines_that_are_sent_as_one_json_are_told_their_type(service):
    record = '{"stream": "s", "sample": [1, 2]}'
    headers = {"Content-Type": "application/json"}
    for body, is_of_lines in ((f"{record}\n{record}\n", True), (f"{record} {record}", False), (f"[{record}\n", False)):
        problem = await service.refused("POST", "/ingest", 400, "invalid_json", content=body, headers=headers)
        assert problem["limit"].endswith("; send one record a line as application/x-ndjson") == is_of_lines
    await service.accepted("POST", "/ingest", content=f"{record}\n{record}\n", headers=NDJSON)


async def test_nothing_taken_is_a_problem_that_names_each_record(service):
    records = [{"stream": "s", "sample": ["x"]}] * 30 + [{"stream": "..", "sample": [1]}]
    problem = await service.refused("POST", "/ingest", 422, "nothing_taken", json=records)
    assert problem["n_errors"] == 31
    assert len(problem["errors"]) == 20
    assert problem["field"] == "records[0].sample[0]"
    assert [one["code"] for one in problem["problems"]] == ["invalid_samples"] * 30 + ["invalid_stream_id"]
    nameless = [{"stream": "s", "sample": {}}] * 3
    problem = await service.refused("POST", "/ingest", 422, "nothing_taken", json=nameless)
    assert [error["field"] for error in problem["errors"]] == [f"records[{i}]" for i in range(3)]
    counted = await service.refused("POST", "/ingest?answer=counts", 422, "nothing_taken", json=records)
    assert "problems" not in counted
    await service.refused("GET", "/streams/s", 404, "unknown_stream")


async def test_an_id_that_comes_twice_gets_its_first_answer(service):
    one, other = {"stream": "s", "sample": [1, 2], "id": "a"}, {"stream": "s", "sample": [3, 4], "id": "b"}
    answer = await ingest(service, [one, other, one, {"stream": "s", "sample": [5, 6]}, other | {"sample": [9, 9]}])
    assert answer["seq"] == [1, 2, 1, 3]
    assert [problem["code"] for problem in answer["problems"]] == ["id_conflict"]
    again = await ingest(service, [one, other, one])
    assert again["seq"] == [1, 2, 1]
    assert await service.metric("itan_samples_total", outcome="learned") == 3


async def test_a_repeat_of_the_whole_gets_the_same_answer_and_teaches_nothing(service):
    records, _ = interleaved(60, "abc")
    records = [record | {"id": f"r{i}"} for i, record in enumerate(records)] + [{"stream": "a", "sample": [1]}]
    first = await ingest(service, records)
    state = [await service.export(stream) for stream in "abc"]
    assert await ingest(service, records) == first
    assert [await service.export(stream) for stream in "abc"] == state


async def test_records_with_and_without_times_and_names_may_be_mixed(service):
    stamped = {"stream": "s", "sample": {"b": 1, "a": 2}, "timestamp": NOW - 5}
    plain = {"stream": "s", "sample": {"a": 3, "b": 4}}
    listed = {"stream": "s", "sample": [5, 6], "timestamp": "2027-01-15T07:59:58Z"}
    answer = await ingest(service, [stamped, plain, listed, plain])
    assert answer["seq"] == [1, 2, 3, 4]
    history = await service.accepted("GET", "/streams/s/history?values=true")
    assert history["values"] == [[1, 2], [4, 3], [5, 6], [4, 3]]
    assert history["time"][0] == NOW - 5
    assert history["time"][2] == NOW - 2


async def test_late_records_of_a_stream_that_uses_time_are_refused_alone(service):
    config = {"n_features": 1, "half_life_seconds": 60}
    await service.accepted("PUT", "/streams/s", json=config)
    times = [NOW - 9000, NOW - 10, NOW - 9000, NOW - 5, NOW + 9000, NOW]
    records = [{"stream": "s", "sample": [1], "timestamp": time} for time in times]
    answer = await ingest(service, records)
    assert answer["record"] == [0, 1, 3, 5]
    assert {problem["code"] for problem in answer["problems"]} == {"invalid_timestamps"}


VALUES = st.none() | st.integers(-3, 3) | st.sampled_from(["x", True])
SAMPLES = (
    st.lists(VALUES, max_size=3)
    | st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2)
    | st.tuples(st.integers(0, 9), st.integers(0, 9)).map(list)
    | st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda row: dict(zip("ab", row, strict=True)))
)
RECORDS = st.fixed_dictionaries(
    {"stream": st.sampled_from(["s", "timed"]), "sample": SAMPLES},
    optional={
        "id": st.sampled_from(["1", "2", "3", ""]),
        "timestamp": st.sampled_from([NOW, NOW - 1, NOW - 8000, NOW + 8000, "x"]),
    },
)


def of_one(*given):
    """Make records of one stream of samples, each with what it also has."""
    return [{"stream": "timed", "sample": sample, **more} for sample, more in given]


# the first use of an id is refused, and its second is not the last record
@example(of_one(([1, 1], {"id": "a", "timestamp": NOW - 8000}), ([2, 2], {"id": "a", "timestamp": NOW}), ([3, 3], {})))
@example(
    of_one(([1, 1], {"id": "a", "timestamp": 1}), ([2, 2], {"id": "a", "timestamp": NOW}), ([3, 3], {"timestamp": NOW}))
)
# a wrong first record would have made another stream
@example([{"stream": "s", "sample": sample} for sample in ({"a": None}, {"a": 1, "b": 2}, {"a": 3}, {"b": 4, "a": 5})])
# wrong records, and others behind them that cannot be in the same batch
@example(of_one(([1, 1], {}), ([2], {}), ([3, 3], {"timestamp": NOW}), ([4, 4], {"timestamp": NOW - 1}), ([5, 5], {})))
@settings(max_examples=tries(60), deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=14))
def test_it_does_what_a_request_for_each_record_does(records):
    asyncio.run(compare_with_single_requests(records))


async def compare_with_single_requests(records):
    async with Service() as together, Service() as singly:
        for service in (together, singly):
            await service.accepted("PUT", "/streams/timed", json={"n_features": 2, "half_life_seconds": 60})
        answer = (await together.http.post("/ingest", json=records)).json()
        taken = rows(answer) if "record" in answer else {}
        refused = {problem["record"]: problem["code"] for problem in answer["problems"]}
        for place, record in enumerate(records):
            body = {"samples": [record["sample"]]}
            body |= {"ids": [record["id"]]} if "id" in record else {}
            body |= {"timestamps": [record["timestamp"]]} if "timestamp" in record else {}
            alone = await singly.http.post(f"/observe?stream={record['stream']}", json=body)
            if alone.status_code == 200:
                assert {name: taken[place][name] for name in COLUMNS} == {
                    name: alone.json()[name][0] for name in COLUMNS
                }
            else:
                assert refused[place] == alone.json()["code"]
        assert len(taken) + len(refused) == len(records)
        for stream in {"timed"} | {records[place]["stream"] for place in taken}:
            assert await together.export(stream) == await singly.export(stream)


async def test_many_wrong_records_cost_little_more_than_right_ones(service):
    records = [{"stream": "s", "sample": [1.0, i] if i % 2 else [1.0]} for i in range(10_000)]
    batches = []
    observe = ingesting.observe

    async def counting(session, batch, allowance):
        batches.append(len(batch.samples._places))
        return await observe(session, batch, allowance)

    await service.observe([[1.0, 2.0]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingesting, "observe", counting)
        answer = await ingest(service, records, "?answer=counts")
    assert (answer["taken"], answer["refused"]) == (5000, 5000)
    assert sorted(batches, reverse=True) == [10_000, 5_000, *[20] * 250]


@pytest.mark.parametrize("many", [3, 50])
async def test_wrong_records_that_are_refused_together_are_named_by_their_own_places(service, many):
    ids = [{"stream": "s", "sample": [i, i], "id": f"a{i}"} for i in range(many)]
    await ingest(service, ids)
    conflicts = [record | {"sample": [i, -1]} for i, record in enumerate(ids)]
    widths = [{"stream": "s", "sample": [i, 1, 2]} for i in range(many)]
    given = [record for pair in zip(conflicts, widths, strict=True) for record in pair]
    problem = await service.refused("POST", "/ingest", 422, "nothing_taken", json=given)
    found = [(one["record"], one["code"], one["field"], one["value"]) for one in problem["problems"]]
    assert found == [
        expected
        for i in range(many)
        for expected in (
            (2 * i, "id_conflict", f"records[{2 * i}].id", f"a{i}"),
            (2 * i + 1, "invalid_samples", f"records[{2 * i + 1}].sample", f"[{i}.0, 1.0, 2.0]"),
        )
    ]


BATCHES = [{"stream": "s", "sample": [1], **({"timestamp": NOW} if i % 2 else {})} for i in range(500)]


@pytest.mark.parametrize(
    ("content", "at_least"),
    # a batch of one after another; wrong records that are read, and then described, a hundred at once
    [(lines(BATCHES), 500), ("\n".join(["x"] * 2000), 40)],
)
async def test_others_have_their_turn_in_a_long_request(service, content, at_least):
    async with turns_of_others() as turns:
        await service.http.post("/ingest", content=content, headers=NDJSON)
    assert turns() >= at_least


async def test_bounds_hold_for_the_whole_request(service):
    async with Service(max_batch_samples=3, max_batch_streams=2, max_body_bytes=4000) as service:
        record = {"stream": "s", "sample": [1]}
        for given in ({"json": [record] * 4}, {"content": lines([record] * 4), "headers": NDJSON}):
            problem = await service.refused("POST", "/ingest", 413, "too_many", **given)
            assert "ITAN_MAX_BATCH_SAMPLES" in problem["limit"]
        many = [{"stream": stream, "sample": [1]} for stream in "abc"]
        problem = await service.refused("POST", "/ingest", 413, "too_many", json=many)
        assert "ITAN_MAX_BATCH_STREAMS" in problem["limit"]
        big = [{"stream": "s", "sample": [1] * 2000}]
        await service.refused("POST", "/ingest", 413, "body_too_large", json=big)
        assert (await service.accepted("GET", "/streams"))["streams"] == []
        await ingest(service, many[:2])


async def test_empty_lines_do_not_count():
    async with Service(max_batch_samples=3) as service:
        for path, line in (("/ingest", '{"stream": "s", "sample": [1]}'), ("/observe?stream=t", "[1]")):
            content = "\n" + "\r\n \n\n\n".join([line] * 3) + "\n\n"
            answer = await service.accepted("POST", path, content=content, headers=NDJSON)
            assert answer["seq"] == [1, 2, 3]
            await service.refused("POST", path, 413, "too_many", content=f"{content}{line}", headers=NDJSON)


async def test_a_long_array_is_cut_without_decoding_it_whole(service):
    records = [{"stream": f"s{i % 3}", "sample": {"a": i, "b": 1}, "id": f"a:{i}[{{"} for i in range(200)]
    plain = await ingest(service, records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.api.bodies.splitting.MOST_AT_ONCE", 0)
        patch.setattr("app.api.bodies.records.PIECE_BYTES", 100)
        assert await ingest(service, records) == plain


KEYS = {"api_keys": "k:observe:web-*,k:observe:db-1,other:read"}


async def test_a_key_takes_only_its_streams():
    async with Service(key="k", **KEYS) as service:
        records = [{"stream": stream, "sample": [1]} for stream in ("web-1", "secret", "db-1", "db-2")]
        answer = await ingest(service, records)
        assert answer["stream"] == ["web-1", "db-1"]
        assert [(problem["stream"], problem["code"]) for problem in answer["problems"]] == [
            ("secret", "forbidden"),
            ("db-2", "forbidden"),
        ]
        assert "scope 'observe' on stream 'secret'" in answer["problems"][0]["detail"]
        await service.refused("POST", "/ingest", 422, "nothing_taken", json=records[1:2])
    async with Service(key="other", **KEYS) as service:
        await service.refused("POST", "/ingest", 403, "forbidden", json=records)
    async with Service(**KEYS) as service:
        await service.refused("POST", "/ingest", 401, "unauthenticated", json=records)


async def test_unknown_streams_are_refused_where_none_may_be_created():
    async with Service(auto_create=False) as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 1})
        answer = await ingest(service, [{"stream": "s", "sample": [1]}, {"stream": "t", "sample": [1]}])
        assert answer["taken"] == 1
        assert answer["refused_by_code"] == {"unknown_stream": 1}


async def test_new_streams_are_bounded():
    async with Service(max_streams=2) as service:
        answer = await ingest(service, [{"stream": stream, "sample": [1]} for stream in "abcd" for _ in "xy"])
        assert (answer["taken"], answer["refused_by_code"]) == (4, {"quota_exceeded": 4})
        assert await service.metric("itan_limit_refusals_total", limit="max_streams") == 2


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(StoreUnavailable("gone"), 503, "store_unavailable"), (LeaseHeld("s", 2.5), 503, "stream_elsewhere")],
)
async def test_a_failure_of_the_store_is_told_with_each_record(error, status, code):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        records = [{"stream": stream, "sample": [1, 2], "id": f"{stream}{i}"} for stream in "ab" for i in range(2)]
        await ingest(service, records[:1])
        store.before["create"] = raising(error)
        answer = await ingest(service, records)
        assert (answer["taken"], answer["refused_by_code"]) == (2, {code: 2})
        problem = await service.refused("POST", "/ingest?retry=true", status, code, json=records)
        assert [one["record"] for one in problem["problems"]] == [2, 3]
        problem = await service.refused("POST", "/ingest", status, code, json=records[2:])
        answer = await service.http.post("/ingest", json=records[2:])
        assert answer.headers["retry-after"]
        store.before.clear()
        assert (await ingest(service, records, "?retry=true"))["seq"] == [1, 2, 1, 2]


async def test_after_a_failure_nothing_later_of_the_stream_is_taken():
    """Otherwise a repeat would bring the samples in another order."""
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe([[1, 2]])
        fails = iter([False, True, False, False])

        async def second() -> None:
            if next(fails):
                raise StoreUnavailable("gone")

        store.before["append"] = second
        # the form changes, so these are three batches
        samples = [[1, 2], {"x": 1}, [3, 4], [5, 6]]
        records = [{"stream": "s", "sample": sample} for sample in samples]
        records[2]["timestamp"] = NOW
        answer = await ingest(service, records)
        assert answer["record"] == [0]
        assert [one["code"] for one in answer["problems"]] == ["invalid_samples", *["store_unavailable"] * 2]


@pytest.fixture
async def fleet():
    """A service with 70 streams that are ready, and its store."""
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(150, 2, 1), "s0")
        state = await service.export("s0")
        binary = {"Content-Type": "application/octet-stream"}
        for i in range(1, 70):
            await service.accepted("PUT", f"/streams/s{i}/import", content=state, headers=binary)
        yield service, store


def one_of_each(first_id=""):
    samples = blobs(70, 2, 5).tolist()
    return [
        {"stream": f"s{i}", "sample": samples[i]} | ({"id": f"{first_id}{i}"} if first_id else {}) for i in range(70)
    ]


async def test_many_streams_learn_together_as_they_would_alone(fleet):
    service, store = fleet
    appends = []

    async def count() -> None:
        appends.append(1)

    store.before["append_each"] = count
    records = one_of_each("a")
    records[3]["sample"] = [1e9, 5.0]
    records[4]["sample"] = [None, 1.0]
    records[5]["sample"] = [1.0, 1.0, 1.0]
    before = await service.metric("itan_samples_total", outcome="learned")
    answer = await ingest(service, records)
    assert (answer["taken"], answer["refused_by_code"], len(appends)) == (69, {"invalid_samples": 1}, 2)
    assert await service.metric("itan_samples_total", outcome="learned") == before + 69
    for place in (0, 3, 4, 69):
        alone = await service.accepted(
            "POST", "/observe?stream=s5&learn=false", json={"samples": [records[place]["sample"]]}
        )
        assert rows(answer)[place]["score"] == alone["score"][0]
    again = await ingest(service, records)
    assert {name: again[name] for name in COLUMNS} == {name: answer[name] for name in COLUMNS}
    assert (await service.accepted("GET", "/streams/s0"))["n_seen"] == 151


async def test_a_stream_that_another_writes_fails_alone(fleet):
    service, store = fleet
    inner = store.append_each

    async def refuse_one(appends):
        place = [one.stream for one in appends].index("s7") if any(one.stream == "s7" for one in appends) else None
        outcomes = await inner([one for one in appends if one.stream != "s7"])
        if place is not None:
            outcomes.insert(place, StoreUnavailable("gone"))
        return outcomes

    store.append_each = refuse_one
    answer = await ingest(service, one_of_each())
    assert [one["record"] for one in answer["problems"]] == [7]
    assert answer["taken"] == 69
    store.append_each = inner
    service.registry.worker.clock.advance(60.0)
    assert (await ingest(service, one_of_each()))["taken"] == 70
    assert [(await service.accepted("GET", f"/streams/s{i}"))["n_seen"] for i in (6, 7)] == [152, 151]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(StoreUnavailable("gone"), 503, "store_unavailable"), (RuntimeError("x"), 500, "internal_error")],
)
async def test_what_the_store_did_not_keep_of_many_streams_is_not_learned(fleet, error, status, code):
    service, store = fleet
    states = [await service.export(f"s{i}") for i in (0, 69)]
    store.before["append_each"] = raising(error)
    await service.refused("POST", "/ingest", status, code, json=one_of_each())
    store.before.clear()
    service.registry.worker.clock.advance(60.0)
    assert [await service.export(f"s{i}") for i in (0, 69)] == states


async def test_what_fails_inside_is_logged_and_fails_alone(caplog):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["create"] = raising(RuntimeError("secret path"))
        await service.refused("POST", "/ingest", 500, "internal_error", json=[{"stream": "s", "sample": [1]}])
        assert "secret" not in (await service.http.post("/ingest", json=[{"stream": "s", "sample": [1]}])).text
    assert [record.levelno for record in caplog.records if "could not be ingested" in record.message] == [
        logging.ERROR
    ] * 2


async def test_streams_are_worked_on_side_by_side_but_only_so_many_at_once():
    store, waiting, most = DisturbedStore(MemoryStore()), [], 0
    gate = asyncio.Event()

    async def wait() -> None:
        nonlocal most
        waiting.append(1)
        most = max(most, len(waiting))
        await gate.wait()
        waiting.pop()

    async with Service(store) as service:
        store.before["create"] = wait
        records = [{"stream": f"s{i}", "sample": [1]} for i in range(300)]
        request = asyncio.ensure_future(ingest(service, records))
        await until(lambda: len(waiting) == ingesting.STREAMS_AT_ONCE)
        gate.set()
        assert (await request)["taken"] == 300
    assert most == ingesting.STREAMS_AT_ONCE


async def test_it_goes_on_when_its_client_goes_away():
    store, gate, came = DisturbedStore(MemoryStore()), asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        came.set()
        await gate.wait()

    async with Service(store) as service:
        store.before["create"] = wait
        request = asyncio.ensure_future(ingest(service, [{"stream": "s", "sample": [1], "id": "a"}]))
        await came.wait()
        request.cancel()
        gate.set()
        await until(lambda: not len(service.app.state.service.tasks))
        assert (await ingest(service, [{"stream": "s", "sample": [1], "id": "a"}]))["seq"] == [1]
        assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 1


async def test_numbers_out_are_numbers(service):
    X = blobs(100)
    await ingest(service, [{"stream": "s", "sample": x} for x in X.tolist()])
    extremes = [[1e308, -1e308], [5e-324, 0.0], [1e300, None]]
    answer = await service.http.post("/ingest", json=[{"stream": "s", "sample": x} for x in extremes])
    assert answer.status_code == 200
    assert "NaN" not in answer.text
    assert np.isfinite(answer.json()["score"]).all()
