"""Parts of a body that hold no record: they are bounded as records are, and others have their turn in between."""

import gzip
import json

import cramjam
import pytest

from app.api.bodies.records import within_limit
from tests.app.harness import turns_of_others

INFLUX = ("/ingest?source=influx", {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress)
WRITE = (
    "/ingest?source=prometheus",
    {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"},
    lambda body: bytes(cramjam.snappy.compress_raw(body)),
)
PROTOBUF = (
    "/ingest?source=otlp",
    {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"},
    gzip.compress,
)
OTLP_JSON = ("/ingest?source=otlp", {"Content-Type": "application/json"}, bytes)


def in_json(n_resources, n_scopes, n_metrics):
    scope = {"metrics": [{}] * n_metrics}
    tree = {"resourceMetrics": [{"scopeMetrics": [scope] * n_scopes}] * n_resources}
    return OTLP_JSON, json.dumps(tree).encode()


BODIES = {
    "comments": lambda n: (INFLUX, b"#\n" * n),
    "series": lambda n: (WRITE, b"\x0a\x00" * n),
    "resources": lambda n: (PROTOBUF, b"\x0a\x00" * n),
    "resources in JSON": lambda n: in_json(n, 0, 0),
    "scopes": lambda n: in_json(1, n, 0),
    "metrics": lambda n: in_json(n // 100, 1, 100),
}


async def post(service, made):
    (path, headers, packed), body = made
    return await service.http.post(path, content=packed(body), headers=headers)


@pytest.mark.parametrize("kind", BODIES)
async def test_empty_parts_count_as_records(service, kind):
    answer = await post(service, BODIES[kind](10_100))
    assert answer.status_code == 413, answer.text
    problem = answer.json()
    assert (problem["code"], problem["field"]) == ("too_many", "records")
    assert problem["limit"] == "at most 10000 records, empty messages and comments (ITAN_MAX_BATCH_SAMPLES)"


@pytest.mark.parametrize("kind", BODIES)
async def test_others_have_their_turn_between_empty_parts(service, kind):
    await post(service, BODIES[kind](100))
    async with turns_of_others() as few:
        await post(service, BODIES[kind](100))
    async with turns_of_others() as many:
        answer = await post(service, BODIES[kind](10_000))
    assert answer.status_code in (200, 204, 422)
    assert many() >= few() + 30


async def test_others_have_their_turn_between_long_lines():
    lines = [b"x" * 65_536] * 20
    async with turns_of_others() as turns:
        assert await within_limit(iter(lines), 20) == lines
    assert turns() >= 20


async def test_members_around_the_records_are_bounded(service):
    async def sent(n_members):
        members = {str(i): 1 for i in range(n_members - 1)}
        record = {"name": "m", "tags": {"host": "a"}, "fields": {"x": 1}, "timestamp": 1799999990}
        return await service.http.post("/ingest?source=telegraf", json=members | {"metrics": [record]})

    assert (await sent(10_000)).status_code == 200
    answer = await sent(10_001)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_many")
    assert answer.json()["limit"] == "at most 10000 members"


async def test_a_member_that_comes_twice_is_named(service):
    body, headers = b'{"metrics": [], "metrics": []}', {"Content-Type": "application/json"}
    path = "/ingest?source=telegraf"
    problem = await service.refused("POST", path, 400, "invalid_json", content=body, headers=headers)
    assert "no name comes twice" in problem["limit"]
