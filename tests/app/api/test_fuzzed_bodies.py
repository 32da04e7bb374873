"""Bodies of every kind, right, nearly right and random: never a failure, never half taken, all wrong places named."""

import asyncio
import json
import re
import struct
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.harness import NOW, Service, blobs
from tests.app.problems import check_shape
from tests.effort import tries

JSON, NDJSON, BYTES = "application/json", "application/x-ndjson", "application/octet-stream"
NAMES = ["cpu", "n", "sample", "id", "mem"]
STEP = re.compile(r"\[(\d+)\]|\.?([^.\[]+)")

NUMBERS = st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**400)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=3)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner)
)
GOOD = st.fixed_dictionaries({"cpu": st.floats(-5, 5), "n": st.integers(0, 9)})
ROWS = st.lists(GOOD | GOOD | TREES, min_size=1, max_size=5)
IDS = st.lists(st.text(min_size=1, max_size=3) | st.none() | SCALARS, min_size=1, max_size=5)
STAMPS = st.lists(st.sampled_from([NOW, NOW - 9, NOW * 1e3, "2027-01-15T07:00:00Z"]) | SCALARS, min_size=1, max_size=5)
LABEL = {"seq": st.integers(0, 50) | SCALARS, "anomaly": st.booleans() | SCALARS, "id": SCALARS, "x": SCALARS}
LABELS = st.lists(st.fixed_dictionaries({}, optional=LABEL) | TREES, max_size=4)
CONFIG = {"n_features": st.integers(-1, 3) | TREES, "beta": TREES, "features": TREES, "scaling": TREES, "warmup": TREES}

OBSERVE = st.fixed_dictionaries({"samples": ROWS}, optional={"ids": IDS, "timestamps": STAMPS, "tags": TREES}) | TREES
DENSITY = st.fixed_dictionaries({"points": ROWS}, optional={"samples": TREES}) | TREES
FEEDBACK = st.fixed_dictionaries({"labels": LABELS}, optional={"x": TREES}) | TREES
CONFIGS = st.fixed_dictionaries({}, optional=CONFIG) | TREES
LINES = st.lists(GOOD | TREES | st.fixed_dictionaries({"sample": GOOD | TREES}, optional={"id": SCALARS}), max_size=4)


def damaged(text: bytes, cut: int, byte: int) -> bytes:
    """Change one byte of a text, or cut it off there."""
    at = cut % (len(text) + 1)
    return text[:at] if byte == 0 else text[:at] + bytes([byte]) + text[at + 1 :]


BODIES = st.one_of(
    st.tuples(st.just("/observe?stream=s"), st.just(JSON), OBSERVE),
    st.tuples(st.just("/observe?stream=s&learn=false&explain=true"), st.just(JSON), OBSERVE),
    st.tuples(st.just("/observe?stream=new"), st.just(JSON), OBSERVE),
    st.tuples(st.just("/observe?stream=s"), st.just(NDJSON), LINES),
    st.tuples(st.just("/observe?stream=s"), st.just(BYTES), st.lists(st.floats(), max_size=6)),
    st.tuples(st.just("/density?stream=s"), st.just(JSON), DENSITY),
    st.tuples(st.just("/feedback?stream=s"), st.just(JSON), FEEDBACK),
    st.tuples(st.just("/streams/estimate"), st.just(JSON), CONFIGS),
)


def written(media: str, body: Any) -> bytes:
    if media == BYTES:
        return struct.pack(f"<{len(body)}d", *body)
    if media == NDJSON:
        return "\n".join(map(json.dumps, body)).encode()
    return json.dumps(body).encode()


def check_place(error: dict[str, Any], tree: Any) -> None:
    """An error's field leads to its value, or to where a field is missing."""
    steps = STEP.findall(error["field"])
    for i, (index, name) in enumerate(steps):
        if index:
            tree = tree[int(index)]
        elif name in tree:
            tree = tree[name]
        else:
            assert error["value"] is None
            assert i == len(steps) - 1
            return
    if (isinstance(tree, int | float) and abs(tree) < 2**53) or tree is None:
        assert error["value"] == tree


async def send(path: str, media: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Send a body to a service with a stream of its own; what is refused must have changed nothing."""
    async with Service() as service:
        features = [{"name": "cpu"}, {"name": "n", "kind": "poisson"}]
        await service.accepted("PUT", "/streams/s", json={"features": features})
        await service.observe([{"cpu": x, "n": abs(round(y))} for x, y in blobs(40).tolist()])
        before = [await service.export(), await service.accepted("GET", "/streams")]
        answer = await service.http.post(path, content=body, headers={"Content-Type": media})
        if answer.status_code != 200:
            assert [await service.export(), await service.accepted("GET", "/streams")] == before
        return answer.status_code, answer.json()


@settings(max_examples=tries(40), deadline=None)
@given(BODIES)
def test_a_refusal_names_a_place_of_the_body(sent):
    path, media, tree = sent
    status, said = asyncio.run(send(path, media, written(media, tree)))
    assert status in (200, 400, 404, 413, 422), said
    if status != 200:
        check_shape(said)
        assert "field" in said
        if media == JSON and said["field"] not in ("body", "stream"):
            for error in said["errors"]:
                check_place(error, tree)


@settings(max_examples=tries(25), deadline=None)
@given(BODIES, st.integers(0, 10**6), st.integers(0, 255))
def test_damaged_bodies(sent, cut, byte):
    path, media, tree = sent
    status, said = asyncio.run(send(path, media, damaged(written(media, tree), cut, byte)))
    assert status in (200, 400, 404, 413, 422), said
    if status != 200:
        check_shape(said)
        assert "field" in said
