# ruff: noqa: UP031 bodies full of braces read better with %
"""Input that must be refused: each is a problem that names field, value and limit, and changes nothing."""

import asyncio
import json
import struct
from copy import deepcopy

import pytest

from tests.app.harness import NOW, Service, blobs
from tests.app.problems import check_shape

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
BYTES = {"Content-Type": "application/octet-stream"}
DEEP = "[" * 20_000 + "]" * 20_000
DIGITS = "9" * 5_000

SAMPLES = {
    "text that says NaN": ('[["NaN", 1]]', "samples[0][0]"),
    "a number in quotes": ('[["3.5", 1]]', "samples[0][0]"),
    "a boolean": ("[[true, 1]]", "samples[0][0]"),
    "the literal NaN": ("[[NaN, 1]]", "body"),
    "the literal Infinity": ("[[1, Infinity]]", "body"),
    "the literal -Infinity": ("[[1, -Infinity]]", "body"),
    "a number that no double holds": ("[[1e309, 1]]", "samples[0][0]"),
    "a negative one": ("[[1, -1e309]]", "samples[0][1]"),
    "an integer of 5000 digits": (f"[[{DIGITS}, 1]]", "samples[0][0]"),
    "too few values": ("[[1]]", "samples[0]"),
    "too many values": ("[[1, 2, 3]]", "samples[0]"),
    "rows of different widths": ("[[1, 2], [1]]", "samples[1]"),
    "an empty row": ("[[]]", "samples[0]"),
    "no samples": ("[]", "samples"),
    "null": ("null", "samples"),
    "an object": ("{}", "samples"),
    "a bare number": ("[1, 2]", "samples[0]"),
    "a nested row": ("[[[1, 2]]]", "samples[0][0]"),
    "nothing but nulls": ("[[1, 2], [null, null]]", "samples[1]"),
    "names where there are none": ('[{"cpu": 1, "mem": 2}]', "samples[0]"),
    "arrays and objects mixed": ('[[1, 2], {"cpu": 1}]', "samples[1]"),
    "deep nesting": (DEEP, "samples[0][0]"),
}

BODIES = {
    "misspelt field": ('{"Samples": [[1, 2]]}', "Samples"),
    "unknown field": ('{"samples": [[1, 2]], "idz": ["a"]}', "idz"),
    "unknown field, deep": ('{"samples": [[1, 2]], "x": %s}' % DEEP, "x"),
    "no field": ("{}", "samples"),
    "an array": ("[[1, 2]]", "body"),
    "nothing": ("", "body"),
    "cut short": ('{"samples": [[1, 2]', "body"),
    "more behind": ('{"samples": [[1, 2]]} {}', "body"),
    "a field twice": ('{"samples": [[1, 2]], "samples": [[3, 4]]}', "samples"),
    "a field twice, one escaped": ('{"samples": [[1, 2]], "\\u0073amples": [[3, 4]]}', "samples"),
    "not UTF-8": (b'{"samples": [[1, 2]], "ids": ["\xff"]}', "body"),
    "UTF-16": ('{"samples": [[1, 2]]}'.encode("utf-16"), "body"),
    "ids twice in a batch": ('{"samples": [[1, 2], [3, 4]], "ids": ["x", "x"]}', "ids[1]"),
    "fewer ids": ('{"samples": [[1, 2], [3, 4]], "ids": ["x"]}', "ids"),
    "no ids": ('{"samples": [[1, 2]], "ids": []}', "ids"),
    "an id of 100 kB": ('{"samples": [[1, 2]], "ids": ["%s"]}' % ("x" * 100_000), "ids[0]"),
    "an empty id": ('{"samples": [[1, 2]], "ids": [""]}', "ids[0]"),
    "a number as id": ('{"samples": [[1, 2]], "ids": [1]}', "ids[0]"),
    "a control character in an id": ('{"samples": [[1, 2]], "ids": ["a\\n"]}', "ids[0]"),
    "a NUL in an id": ('{"samples": [[1, 2]], "ids": ["\\u0000"]}', "ids[0]"),
    "half a character in an id": ('{"samples": [[1, 2]], "ids": ["\\ud800"]}', "body"),
    "more timestamps": ('{"samples": [[1, 2]], "timestamps": [1, 2]}', "timestamps"),
    "no timestamps": ('{"samples": [[1, 2]], "timestamps": []}', "timestamps"),
    "timestamp 10^30": ('{"samples": [[1, 2]], "timestamps": [1e30]}', "timestamps[0]"),
    "timestamp in milliseconds": ('{"samples": [[1, 2]], "timestamps": [%d]}' % (NOW * 1e3), "timestamps[0]"),
    "timestamp in nanoseconds": ('{"samples": [[1, 2]], "timestamps": [%d]}' % (NOW * 1e9), "timestamps[0]"),
    "timestamp 0": ('{"samples": [[1, 2]], "timestamps": [0]}', "timestamps[0]"),
    "negative timestamp": ('{"samples": [[1, 2]], "timestamps": [-1]}', "timestamps[0]"),
    "timestamp two days ahead": ('{"samples": [[1, 2]], "timestamps": [%d]}' % (NOW + 172_800), "timestamps[0]"),
    "timestamp without offset": ('{"samples": [[1, 2]], "timestamps": ["2026-10-25T02:30:00"]}', "timestamps[0]"),
    "a date as timestamp": ('{"samples": [[1, 2]], "timestamps": ["2026-10-25"]}', "timestamps[0]"),
    "null as timestamp": ('{"samples": [[1, 2]], "timestamps": [null]}', "timestamps[0]"),
}

LABELS = {
    "seq 10^30": ('[{"seq": %d, "anomaly": true}]' % 10**30, "labels[0].seq"),
    "seq 10^29": ('[{"seq": %d, "anomaly": true}]' % 10**29, "labels[0].seq"),
    "seq 2^63": ('[{"seq": %d, "anomaly": true}]' % 2**63, "labels[0].seq"),
    "seq -1": ('[{"seq": -1, "anomaly": true}]', "labels[0].seq"),
    "seq 0": ('[{"seq": 0, "anomaly": true}]', "labels[0].seq"),
    "seq of 5000 digits": (f'[{{"seq": {DIGITS}, "anomaly": true}}]', "labels[0].seq"),
    "seq 1.5": ('[{"seq": 1.5, "anomaly": true}]', "labels[0].seq"),
    "seq as text": ('[{"seq": "1", "anomaly": true}]', "labels[0].seq"),
    "seq true": ('[{"seq": true, "anomaly": true}]', "labels[0].seq"),
    "anomaly 1": ('[{"seq": 1, "anomaly": 1}]', "labels[0].anomaly"),
    "anomaly as text": ('[{"seq": 1, "anomaly": "true"}]', "labels[0].anomaly"),
    "no anomaly": ('[{"seq": 1}]', "labels[0].anomaly"),
    "neither id nor seq": ('[{"seq": 1, "anomaly": true}, {"anomaly": true}]', "labels[1]"),
    "unknown field": ('[{"seq": 1, "anomaly": true, "lable": 1}]', "labels[0].lable"),
    "a field twice": ('[{"seq": 1, "anomaly": true, "anomaly": false}]', "labels[0].anomaly"),
    "no labels": ("[]", "labels"),
    "bare seqs": ("[1]", "labels[0]"),
    "an id of 100 kB": ('[{"id": "%s", "anomaly": true}]' % ("x" * 100_000), "labels[0].id"),
}

CONFIGS = {
    "beta as text": '{"n_features": 2, "beta": "NaN"}',
    "n_features true": '{"n_features": true}',
    "n_features 0": '{"n_features": 0}',
    "n_features 1e400": '{"n_features": 1e400}',
    "n_features of 5000 digits": f'{{"n_features": {DIGITS}}}',
    "beta of 5000 digits": f'{{"n_features": 2, "beta": {DIGITS}}}',
    "unknown field": '{"n_features": 2, "betta": 2}',
    "nothing": "{}",
    "a literal": '{"n_features": 2, "beta": Infinity}',
    "a field twice": '{"n_features": 2, "n_features": 3}',
    "features of one name": '{"features": [{"name": "a"}, {"name": "a"}]}',
    "a feature's field twice": '{"features": [{"name": "a", "name": "b"}]}',
    "deep nesting": '{"n_features": 2, "scaling": %s}' % DEEP,
    "an array": "[2]",
}


IDS = [f"i{i}" for i in range(40)]
NAMED = [{"cpu": x, "mem": y} for x, y in blobs(40).tolist()]


@pytest.fixture(scope="module")
def streams():
    """A stream of two nameless features, and one of named ones, as they are stored."""

    async def live():
        async with Service() as service:
            await service.observe(blobs(40), ids=IDS)
            await service.observe(NAMED, stream="named", ids=IDS)
        return service.store.stored

    return asyncio.run(live())


@pytest.fixture
async def ready(service, streams):
    """Give a service that has these streams open."""
    service.store.stored |= deepcopy(streams)
    await service.observe(blobs(40)[:1], ids=IDS[:1])
    await service.observe(NAMED[:1], stream="named", ids=IDS[:1])
    assert service.registry.sessions.keys() == {"s", "named"}
    return service


def check_problem(problem):
    """Hold a problem document to its shape; it names a field."""
    check_shape(problem)
    assert "field" in problem, problem


async def refused(service: Service, method: str, path: str, field: str | None = None, **given) -> dict:
    """Send what must be refused; check the document, and that both streams are as they were."""
    before = [await service.export("s"), await service.export("named"), await service.accepted("GET", "/streams")]
    entries = await service.store.load("s")
    answer = await service.http.request(method, path, **given)
    problem = answer.json()
    assert 400 <= answer.status_code < 500, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    check_problem(problem)
    assert len(answer.content) < 12_000
    if field is not None:
        assert problem["field"] == field, problem
    after = [await service.export("s"), await service.export("named"), await service.accepted("GET", "/streams")]
    assert after == before
    assert await service.store.load("s") == entries
    return problem


@pytest.mark.parametrize(("rows", "field"), SAMPLES.values(), ids=SAMPLES)
async def test_samples_that_are_not_numbers_of_the_right_shape(ready, rows, field):
    for query in ("", "&learn=false"):
        await refused(ready, "POST", f"/observe?stream=s{query}", field, content=f'{{"samples": {rows}}}', headers=JSON)
    points = field.replace("samples", "points")
    await refused(ready, "POST", "/density?stream=s", points, content=f'{{"points": {rows}}}', headers=JSON)


@pytest.mark.parametrize(("rows", "field"), SAMPLES.values(), ids=SAMPLES)
async def test_bad_samples_do_not_make_a_stream(ready, rows, field):
    if "2, 3" not in rows and "cpu" not in rows and rows != "[[1]]":
        await refused(ready, "POST", "/observe?stream=new", content=f'{{"samples": {rows}}}', headers=JSON)


@pytest.mark.parametrize(("body", "field"), BODIES.values(), ids=BODIES)
async def test_bodies_of_another_form(ready, body, field):
    await refused(ready, "POST", "/observe?stream=s", field, content=body, headers=JSON)


@pytest.mark.parametrize(("labels", "field"), LABELS.values(), ids=LABELS)
async def test_malformed_labels(ready, labels, field):
    await refused(ready, "POST", "/feedback?stream=s", field, content=f'{{"labels": {labels}}}', headers=JSON)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
async def test_configs_that_cannot_be(ready, config):
    await refused(ready, "PUT", "/streams/new", content=config, headers=JSON)


@pytest.mark.parametrize(
    "row",
    ['{"cpu": 1}', '{"cpu": 1, "mem": 2, "disk": 3}', '{"cpu": 1, "Mem": 2}', '{"cpu": 1, "mem": 2, "cpu": 3}', "{}"],
)
async def test_named_samples_with_other_names(ready, row):
    await refused(ready, "POST", "/observe?stream=named", content=f'{{"samples": [{row}]}}', headers=JSON)
    await refused(ready, "POST", "/observe?stream=named", content=row, headers=NDJSON)


@pytest.mark.parametrize("name", ["", "x" * 200, "a\nb", "\u0000"])
async def test_feature_names_that_cannot_be(ready, name):
    await refused(ready, "POST", "/observe?stream=new", json={"samples": [{name: 1.0}]})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00" * 7,
        b"\x00" * 8,
        struct.pack("<2d", float("inf"), 1),
        struct.pack("<2d", 1, float("-inf")),
        struct.pack("<2d", float("nan"), float("nan")),
        struct.pack("<3d", 1, 2, 3),
    ],
)
async def test_bytes_that_are_not_rows_of_finite_numbers(ready, body):
    await refused(ready, "POST", "/observe?stream=s", content=body, headers=BYTES)


async def test_bytes_do_not_make_a_stream(ready):
    problem = await refused(ready, "POST", "/observe?stream=new", content=struct.pack("<2d", 1, 2), headers=BYTES)
    assert problem["code"] == "unknown_stream"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\n\n",
        "[1, 2]\n[1",
        '{"sample": [1, 2], "extra": 1}',
        '{"sample": [1, 2], "sample": [3, 4]}',
        "[1, 2] x",
        '{"sample": [1, 2], "timestamp": %d}\n[1, 2]' % NOW,
        '[1, 2]\n{"cpu": 1}',
        '{"sample": [1, 2], "id": ""}',
        '{"sample": [1, 2], "id": "\\ud800"}',
        '{"sample": [1, 2], "timestamp": "\\ud800"}',
        '{"sample": {"\\udc00": 1}}',
        DEEP,
    ],
)
async def test_lines_that_are_not_samples(ready, body):
    await refused(ready, "POST", "/observe?stream=s", content=body, headers=NDJSON)


@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonp",
        "",
        "application/xml",
    ],
)
async def test_other_kinds_of_body(ready, media):
    for path, method in {"/observe?stream=s": "POST", "/feedback?stream=s": "POST", "/streams/new": "PUT"}.items():
        given = {"content": '{"samples": [[1, 2]]}', "headers": {"Content-Type": media}}
        assert (await refused(ready, method, path, "content-type", **given))["status"] == 415


async def test_other_encodings(ready):
    headers = JSON | {"Content-Encoding": "br"}
    problem = await refused(ready, "POST", "/observe?stream=s", "content-encoding", content=b"\x1b", headers=headers)
    assert problem["status"] == 415


@pytest.mark.parametrize(
    "stream",
    ["", "a%0A", "a%0Ab", "..", ".", "a%2Fb", "a b", "%C3%A9", "x" * 129, "x" * 200, "a%00", "%FF", "a+b", "{s}", "a*"],
)
async def test_stream_ids_that_cannot_be(ready, stream):
    problem = await refused(ready, "POST", f"/observe?stream={stream}", json={"samples": [[1, 2]]})
    assert problem["field"] in ("stream", "query")
    if stream not in ("", ".", "..", "a%2Fb"):  # these are other paths
        await refused(ready, "PUT", f"/streams/{stream}", json={"n_features": 2})


@pytest.mark.parametrize("stream", ["a", "A.b_c:d-e", "..a", "x" * 128, "0"])
async def test_stream_ids_that_can_be(service, stream):
    await service.observe([[1.0, 2.0]], stream=stream)
    assert (await service.accepted("GET", f"/streams/{stream}"))["n_seen"] == 1


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("POST", "/observe", "stream"),
        ("POST", "/observe?stream=s&stream=s", "stream"),
        ("POST", "/observe?stream=s&lern=false", "lern"),
        ("POST", "/observe?stream=s&learn=0", "learn"),
        ("POST", "/observe?stream=s&learn=False", "learn"),
        ("POST", "/observe?stream=s&learn=", "learn"),
        ("POST", "/observe?stream=s&learn=true&learn=true", "learn"),
        ("POST", "/observe?stream=s&explain=1", "explain"),
        ("POST", "/feedback?stream=s&dry_run=yes", "dry_run"),
        ("POST", "/feedback", "stream"),
        ("POST", "/density?stream=s&learn=true", "learn"),
        ("GET", "/density", "stream"),
        ("GET", "/density/grid?stream=s&x=0", "y"),
        ("GET", "/density/grid?stream=s&x=0&y=0", "y"),
        ("GET", "/density/grid?stream=s&x=0&y=2", "y"),
        ("GET", "/density/grid?stream=named&x=0&y=1", "x"),
        ("GET", "/density/grid?stream=s&x=0&y=1&size=1", "size"),
        ("GET", "/density/grid?stream=s&x=0&y=1&size=257", "size"),
        ("GET", "/streams?limit=0", "limit"),
        ("GET", "/streams?limit=1e3", "limit"),
        ("GET", "/streams?limit=%D9%A1", "limit"),
        ("GET", "/streams?after=a%0A", "after"),
        ("GET", "/streams?page=2", "page"),
        ("GET", "/streams?details=yes", "details"),
        ("GET", "/streams?details=true&limit=101", "limit"),
        ("GET", "/density?stream=s&covariances=no", "covariances"),
        ("GET", "/streams/s/history?from=0", "from"),
        ("GET", "/streams/s/history?from=-1", "from"),
        ("GET", "/streams/s/history?from=1.0", "from"),
        ("GET", "/streams/s/history?from=", "from"),
        ("GET", "/streams/s/history?to=9007199254740992", "to"),
        ("GET", "/streams/s/history?to=" + "9" * 5000, "to"),
        ("GET", "/streams/s/history?to=%D9%A1", "to"),
        ("GET", "/streams/s/history?points=15", "points"),
        ("GET", "/streams/s/history?points=10001", "points"),
        ("GET", "/streams/s/history?values=1", "values"),
        ("GET", "/streams/s/history?from=1&from=2", "from"),
        ("GET", "/streams/s/review?limit=0", "limit"),
        ("GET", "/streams/s/review?limit=501", "limit"),
        ("GET", "/streams/s/review?order=newest", "order"),
        ("GET", "/streams/s/samples/0", "seq"),
        ("GET", "/streams/s/samples/x", "seq"),
        ("GET", "/streams/s/samples/%D9%A1", "seq"),
        ("GET", "/streams/s/samples/" + "9" * 5000, "seq"),
        ("GET", "/streams/s/samples/1?explain=true", "explain"),
        ("GET", "/streams/s/samples/", "path"),
        ("GET", "/streams/s/events?after=17", "after"),
        ("GET", "/streams/s/events?after=-1-0", "after"),
        ("GET", "/streams/s/events?after=1-0-0", "after"),
        ("GET", "/streams/s/events?after=1-%D9%A1", "after"),
        ("GET", "/streams/s/events?after=" + "9" * 5000 + "-0", "after"),
        ("GET", "/streams/s/events?values=2", "values"),
        ("GET", "/streams/s/events?from=1", "from"),
        ("GET", "/session?key=secret", "key"),
        ("POST", "/session?key=secret", "key"),
        ("DELETE", "/session?x=1", "x"),
        ("GET", "/ui/", "path"),
        ("GET", "/ui/..%2F..%2Fmain.py", "path"),
        ("GET", "/ui/%2E%2E%2Fpackage.json", "path"),
        ("GET", "/ui/package.json", "path"),
        ("PUT", "/", "method"),
        ("GET", "/streams/s?x=1", "x"),
        ("DELETE", "/streams/s?force=true", "force"),
        ("POST", "/streams/s/reset?x=1", "x"),
        ("GET", "/nowhere", "path"),
        ("GET", "/streams/s/", "path"),
        ("PATCH", "/observe", "method"),
        ("GET", "/observe?stream=s", "method"),
    ],
)
async def test_queries_and_paths_that_cannot_be(ready, method, path, field):
    body = {"json": {"samples": [[1, 2]]}} if method == "POST" else {}
    await refused(ready, method, path, field, **body)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/observe?stream=new&learn=false"),
        ("POST", "/feedback?stream=new"),
        ("POST", "/density?stream=new"),
        ("GET", "/density?stream=new"),
        ("GET", "/density/grid?stream=new&x=0&y=1"),
        ("GET", "/streams/new"),
        ("DELETE", "/streams/new"),
        ("POST", "/streams/new/reset"),
        ("GET", "/streams/new/export"),
        ("GET", "/streams/new/history"),
        ("GET", "/streams/new/samples/1"),
        ("GET", "/streams/new/review"),
        ("GET", "/streams/new/events"),
    ],
)
async def test_a_stream_that_does_not_exist(ready, method, path):
    bodies = {"/observe": {"samples": [[1, 2]]}, "/feedback": {"labels": [{"seq": 1, "anomaly": True}]}}
    bodies["/density"] = {"points": [[1, 2]]}
    given = {"json": bodies[path.partition("?")[0]]} if path.partition("?")[0] in bodies and method == "POST" else {}
    assert (await refused(ready, method, path, "stream", **given))["code"] == "unknown_stream"


async def test_imports_that_are_no_exports(ready):
    good = await ready.export()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for body in (b"", b"x" * 100, good[:-1], good[: len(good) // 2], bytes(flipped), good + b"x", b"\x00" * 10_000):
        for stream in ("s", "new"):
            problem = await refused(ready, "PUT", f"/streams/{stream}/import", "body", content=body, headers=BYTES)
            assert problem["code"] == "invalid_snapshot"
    await refused(ready, "PUT", "/streams/s/import", "content-type", content=good, headers=JSON)


async def test_batches_beyond_the_limit_name_the_setting(ready):
    rows = {"samples": [[1.0, 2.0]] * 10_001}
    for query in ("", "&learn=false"):
        problem = await refused(ready, "POST", f"/observe?stream=s{query}", "samples", json=rows)
        assert "ITAN_MAX_BATCH_SAMPLES" in problem["limit"]
    problem = await refused(ready, "POST", "/observe?stream=s", content=b"\x00" * 16 * 10_001, headers=BYTES)
    assert "ITAN_MAX_BATCH_SAMPLES" in problem["limit"]
    labels = {"labels": [{"seq": 1, "anomaly": True}] * 10_001}
    problem = await refused(ready, "POST", "/feedback?stream=s", "labels", json=labels)
    assert "ITAN_MAX_LABELS" in problem["limit"]


async def test_a_million_samples_and_fifty_megabytes(ready):
    million = b'{"samples": [' + b"[1,2]," * 999_999 + b"[1,2]]}"
    assert (await refused(ready, "POST", "/observe?stream=s", content=million, headers=JSON))["status"] == 413
    problem = await refused(ready, "POST", "/observe?stream=s", "body", content=b" " * 50_000_000, headers=JSON)
    assert problem["status"] == 413
    assert "ITAN_MAX_BODY_BYTES" in problem["limit"]


async def test_a_body_of_no_stated_length_is_read_no_further_than_the_limit(ready):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 2**20

    problem = await refused(ready, "POST", "/observe?stream=s", "body", content=endless(), headers=JSON)
    assert problem["status"] == 413
    assert sent <= 17


async def test_finite_numbers_of_any_size_are_good_input(ready):
    for row in ([1e308, -1e308], [5e-324, 0.0], [1.8e19, 1], [-0.0, 0.0]):
        answer = await ready.observe([row])
        assert answer["ready"] == [True]
        assert None not in answer["score"] + answer["threshold"]
    assert json.dumps(await ready.accepted("GET", "/density?stream=s"), allow_nan=False)


async def test_a_value_that_its_kind_cannot_have_is_named_and_teaches_nothing(service):
    """Far into a batch, too: none of the rows before it may be learned."""
    features = [{"name": "errors", "kind": "poisson"}, {"name": "load"}]
    await service.accepted("PUT", "/streams/s", json={"features": features})
    rows = [[i % 5, 0.1 * i] for i in range(600)]
    rows[500][0] = 2.5
    for path, field in (("/observe?stream=s", "samples"), ("/density?stream=s", "points")):
        problem = await service.refused("POST", path, 422, "invalid_samples", json={field: rows})
        assert (problem["field"], problem["value"]) == (f"{field}[500][0]", 2.5)
        assert "'errors' is poisson" in problem["limit"]
    assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 0
