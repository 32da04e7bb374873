"""Long bodies: read in pieces with the same result as in one, and cheap to refuse whatever they hold."""

import asyncio
import json
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.bodies import raw, splitting
from app.api.bodies import reading as bodies
from app.api.bodies.json_tree import read_tree
from app.api.bodies.labels import read_labels
from app.api.bodies.samples import read_batch, read_points
from app.api.bodies.splitting import ELEMENT_BYTES, TooLong, scanned_elements, split
from app.streams.errors import Refused
from core import DetectorConfig
from tests.app.api.test_bad_input import check_problem
from tests.app.harness import NOW, blobs
from tests.effort import tries

JSON, NDJSON = "application/json", "application/x-ndjson"
MOST_BYTES = 16_777_216

NUMBERS = st.none() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
ODD = NUMBERS | st.booleans() | st.text(max_size=4) | st.lists(NUMBERS, max_size=2)
NAMES = st.sampled_from(["a", "b:", "c,]", 'd"\\', "é"])
ROWS = st.lists(ODD, max_size=3) | st.dictionaries(NAMES, ODD, max_size=3) | ODD
GOOD_ROWS = st.lists(NUMBERS, min_size=2, max_size=2) | st.fixed_dictionaries({"a": NUMBERS, "b:": NUMBERS})
IDS = st.none() | st.text(max_size=5) | st.integers()
STAMPS = st.sampled_from([NOW, NOW - 0.5, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"]) | ODD
NAMED = DetectorConfig(features=[{"name": "a"}, {"name": "b:"}])


def told(reading, config=None):
    """Give what came of reading a body: what was read, or the refusal."""
    try:
        batch = asyncio.run(reading)
        if config is None:
            return batch
        X = batch.samples.matrix(config)
    except Refused as error:
        return type(error), [(fault.field, fault.limit) for fault in error.faults], error.n_faults
    return X.tobytes(), batch.ids, None if batch.timestamps is None else batch.timestamps.tobytes()


@settings(max_examples=tries(300), deadline=None)
@given(
    st.lists(ROWS | GOOD_ROWS, min_size=1, max_size=8),
    st.none() | st.lists(IDS, min_size=1, max_size=4),
    st.none() | st.lists(STAMPS, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([NAMED, DetectorConfig(n_features=2)]),
)
def test_pieces_give_what_the_whole_gives(rows, ids, stamps, ascii_only, config):
    given_body = (
        {"samples": rows} | ({} if ids is None else {"ids": ids}) | ({} if stamps is None else {"timestamps": stamps})
    )
    body = json.dumps(given_body, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    whole = told(read_batch(JSON, body, 10), config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw, "QUICK_BYTES", 0)
        patch.setattr(splitting, "PIECE_BYTES", 20)
        for most_at_once in (100, 0):
            patch.setattr(splitting, "MOST_AT_ONCE", most_at_once)
            pieces = told(read_batch(JSON, body, 10), config)
            assert pieces == whole or (most_at_once == 0 and any(map(is_nested, rows)))


@settings(max_examples=tries(200), deadline=None)
@given(st.lists(ROWS, max_size=12), st.integers(1, 60), st.sampled_from([None, 1]))
def test_the_elements_of_an_array_are_found(rows, size, indent):
    array = json.dumps(rows, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "PIECE_BYTES", size)
        pieces = list(split(array))
    assert [read_tree(element) for piece in pieces for element in piece.elements] == rows
    assert [piece.first for piece in pieces] == np.cumsum([0, *map(len, pieces)])[:-1].tolist()
    if rows and not any(map(is_nested, rows)):
        assert [read_tree(element) for element in scanned_elements(array)] == rows


def is_nested(row):
    values = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    return any(isinstance(value, list) for value in values)


def test_an_element_that_is_too_long_ends_the_reading():
    for long in (b"[" + b"1," * ELEMENT_BYTES + b"1]", b'"' + b"x" * ELEMENT_BYTES + b'"', b" " * ELEMENT_BYTES + b"1"):
        array = b"[[1],[2]," + long + b",[3]]"
        found = scanned_elements(array)
        assert [next(found), next(found)] == [b"[1]", b"[2]"]
        with pytest.raises(TooLong):
            next(found)


def filled(start: bytes, part: bytes, end: bytes) -> Callable[[], bytes]:
    """Have the longest body made that a service reads, full of one part."""
    n = (MOST_BYTES - len(start) - len(end)) // (len(part) + 1)
    return lambda: start + b",".join([part] * n) + end


def named_one() -> bytes:
    return b'{"samples": [{' + b",".join(b'"n%d":1' % i for i in range(1_300_000)) + b"}]}"


def nested() -> bytes:
    return b'{"samples":' + b"[" * 8_000_000 + b"]" * 8_000_000 + b"}"


# each is made in its test: all together take seconds and much memory
HOSTILE = {
    "one object of a million names": ("/observe?stream=s", named_one, "samples[0]", 422),
    "an unknown field": ("/observe?stream=s", filled(b'{"samples":[[1,2]],"x":[', b'{"a":1}', b"]}"), "x", 422),
    "ids": ("/observe?stream=s", filled(b'{"samples":[[1,2]],"ids":[', b"null", b"]}"), "ids", 413),
    "times": ("/observe?stream=s", filled(b'{"samples":[[1,2]],"timestamps":[', b"1", b"]}"), "timestamps", 413),
    "one row": ("/observe?stream=s", filled(b'{"samples":[[', b"1", b"]]}"), "samples[0]", 422),
    "rows that are none": ("/observe?stream=s", filled(b'{"samples":[', b"1", b"]}"), "samples", 413),
    "empty rows": ("/observe?stream=s&learn=false", filled(b'{"samples":[', b"[]", b"]}"), "samples", 413),
    "nested rows": ("/observe?stream=s", filled(b'{"samples":[', b"[[1]]", b"]}"), "samples[0]", 422),
    "nesting": ("/observe?stream=s", nested, "body", 400),
    "points": ("/density?stream=s", filled(b'{"points":[', b"1", b"]}"), "points", 413),
    "labels": ("/feedback?stream=s", filled(b'{"labels":[', b"{}", b"]}"), "labels", 413),
    "one label": ("/feedback?stream=s", filled(b'{"labels":[{"id":[', b"1", b"]}]}"), "labels[0]", 422),
    "samples twice": ("/observe?stream=s", filled(b'{"samples":[[1,2]],"samples":[', b"1", b"]}"), "body", 400),
}


@pytest.mark.parametrize(("path", "make", "field", "status"), HOSTILE.values(), ids=HOSTILE)
async def test_the_longest_bodies_are_refused_at_little_cost(service, path, make, field, status):
    body = make()
    await service.observe(blobs(40))
    before = await service.export()
    began = time.process_time()
    answer = await service.http.post(path, content=body, headers={"Content-Type": JSON})
    seconds = time.process_time() - began
    problem = answer.json()
    assert (answer.status_code, problem["field"]) == (status, field), problem
    check_problem(problem)
    assert await service.export() == before
    assert seconds < 0.6  # 0.02 to 0.1 on an idle machine; decoding any of them whole takes 0.5 to 5


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/streams/t"), ("POST", "/streams/estimate"), ("POST", "/session")]
)
async def test_other_bodies_are_small(service, method, path):
    body = b'{"n_features": 2, "scaling": "' + b"x" * 70_000 + b'"}'
    answer = await service.http.request(method, path, content=body, headers={"Content-Type": JSON})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (413, "body_too_large")
    check_problem(problem)


async def test_the_largest_batch_lets_others_in_between(service):
    """A body of many megabytes is never decoded for longer than a few milliseconds in one go."""
    X = blobs(10_000, 100)
    body = json.dumps({"samples": X.tolist(), "ids": [f"i{i}" for i in range(len(X))]}).encode()
    assert len(body) > 8_000_000
    turns, longest = 0, 0.0

    async def count() -> None:
        nonlocal turns, longest
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            turns, longest = turns + 1, max(longest, time.thread_time() - began)

    counting = asyncio.create_task(count())
    batch = await read_batch(JSON, body, 10_000)
    counting.cancel()
    assert turns > 50
    assert longest < 0.2
    assert (batch.samples.matrix(DetectorConfig(n_features=100)) == X).all()
    assert batch.ids[-1] == "i9999"


async def test_a_long_batch_of_other_forms(service):
    rows = [{"cpu": i + 0.25, "mem": -i} for i in range(9_000)]
    rows[8_999], rows[40] = [1, 2], {"cpu": "x", "mem": 1}
    body = json.dumps({"samples": rows} | {"timestamps": ["2026-11-28T00:00:00+00:00"] * 9_000}).encode()
    assert len(body) > bodies.QUICK_BYTES
    answer = await service.http.post("/observe?stream=s", content=body, headers={"Content-Type": JSON})
    check_problem(answer.json())
    assert [error["field"] for error in answer.json()["errors"]] == ["samples[40].cpu", "samples[8999]"]
    rows[8_999], rows[40] = {"mem": 1, "cpu": 2}, {"cpu": 1, "mem": None}
    points = json.dumps({"points": rows}).encode()
    batch = await read_points(points + b" " * bodies.QUICK_BYTES, 10_000)
    X = batch.samples.matrix(DetectorConfig(features=[{"name": "mem"}, {"name": "cpu"}]))
    assert X[8_999].tolist() == [1, 2]


async def test_many_labels_are_read_in_pieces():
    labels = [{"id": "é:" * 20 + str(i), "anomaly": True} for i in range(10_000)]
    body = json.dumps({"labels": labels}).encode()
    assert len(body) > bodies.QUICK_BYTES
    read = (await read_labels(body, 10_000)).labels
    assert [request.client_id for request in read] == [label["id"] for label in labels]
