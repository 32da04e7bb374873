"""Sources that join: line protocol, and what becomes of records that are one sample together."""

import gzip
import json

import pytest

from tests.app.api.test_sources import JSON, TEXT, features, send
from tests.app.harness import NOW
from tests.app.sources import bodies


async def test_lines_are_joined_and_taken_once(service):
    answer = await send(service, "influx", bodies.INFLUX, TEXT)
    assert (answer["records"], answer["taken"], answer["refused"], answer["ignored"]) == (5, 4, 0, 1)
    assert answer["record"] == [0, 1, 2, 4]
    cpu, disk = "raynor:cpu:cpu0", "raynor:disk:_2Fvar_2Flog"
    assert answer["stream"] == [cpu, disk, cpu, cpu]
    assert answer["seq"] == [1, 1, 1, 2]
    assert answer["id"][0] == answer["id"][2]
    assert await features(service, cpu) == ["usage_idle", "usage_user", "usage_system"]
    assert await features(service, disk) == ["used", "free"]
    history = await service.accepted("GET", f"/streams/{cpu}/history?values=true")
    assert history["values"] == [[94.1, 3.2, 2.7], [90, 6, 4]]
    assert await service.metric("itan_ignored_values_total") == 1
    packed = gzip.compress(bodies.INFLUX.encode())
    assert await send(service, "influx", packed, TEXT | {"Content-Encoding": "gzip"}) == answer
    assert await service.metric("itan_samples_total", outcome="learned") == 3


async def test_what_comes_in_another_request_is_a_sample_of_its_own(service):
    """Nothing is held back for it: an answer says what was learned."""
    lines = bodies.INFLUX.splitlines()
    await send(service, "influx", bodies.INFLUX, TEXT)
    cut = [await send(service, "influx", line.replace("990000", "995000"), TEXT) for line in (lines[0], lines[2])]
    assert [answer["seq"] for answer in cut] == [[3], [4]]
    history = await service.accepted("GET", "/streams/raynor:cpu:cpu0/history?values=true")
    assert history["values"][2:] == [[94.1, 3.2, None], [None, None, 2.7]]


async def test_wrong_lines_are_refused_alone(service):
    lines = [
        "cpu,host=a x=1 1799999990000000000",
        "cpu,host=a x=2 1799999990000000000",
        "cpu,host=a y=oops 1799999990000000000",
        "cpu,host=a y=1",
        "cpu y=1 1799999990000000000",
        "cpu,host=a " + "z" * 300_000 + "=1 1799999990000000000",
        "cpu,host=a y=5 1799999990000000000",
    ]
    answer = await send(service, "influx", "\n".join(lines), TEXT)
    assert answer["record"] == [0, 6]
    assert {problem["record"]: (problem["code"], problem["field"]) for problem in answer["problems"]} == {
        1: ("invalid_samples", "records[1].sample.x"),
        2: ("invalid_body", "records[2]"),
        3: ("invalid_body", "records[3].timestamp"),
        4: ("invalid_body", "records[4].tags.host"),
        5: ("invalid_body", "records[5]"),
    }


@pytest.mark.parametrize(("source", "headers"), [("influx", JSON), ("telegraf", TEXT), ("influx", {})])
async def test_each_format_has_its_media_types(service, source, headers):
    path = f"/ingest?source={source}"
    await service.refused("POST", path, 415, "unsupported_media_type", content=bodies.INFLUX, headers=headers)


@pytest.mark.parametrize("body", ["", "\n \n", "# nothing\n"])
async def test_a_body_without_a_line_is_refused(service, body):
    await service.refused("POST", "/ingest?source=influx", 422, "invalid_body", content=body, headers=TEXT)


async def test_lines_are_bounded(service):
    body = "\n".join(f"m,host=a x={i} {1799999990 + i}000000000" for i in range(10_001))
    await service.refused("POST", "/ingest?source=influx", 413, "too_many", content=body, headers=TEXT)


async def test_a_joined_sample_that_is_refused_is_refused_for_all_its_records(service):
    await service.accepted("PUT", "/sources/mine", json={"preset": "influx", "missing": "refuse"})
    await send(service, "mine", "m,host=a x=1,y=1,z=1 1799999990000000000", TEXT)
    body = "m,host=a x=1 1799999991000000000\nm,host=a y=1 1799999991000000000\nm,host=b y=1 1799999991000000000"
    answer = await send(service, "mine", body, TEXT)
    assert answer["record"] == [2]
    assert [problem["record"] for problem in answer["problems"]] == [0, 1]
    assert {problem["code"] for problem in answer["problems"]} == {"invalid_samples"}


async def test_joined_sets_of_features_can_be_versions(service):
    await service.accepted("PUT", "/sources/mine", json={"preset": "influx", "new": "version"})
    parts = ["m,host=a x=1 1799999990000000000", "m,host=a y=1 1799999990000000000"]
    whole = await send(service, "mine", "\n".join(parts), TEXT)
    alone = await send(service, "mine", parts[0], TEXT)
    assert whole["stream"][0] == whole["stream"][1] != alone["stream"][0]
    assert await features(service, whole["stream"][0]) == ["x", "y"]


async def test_a_request_with_nothing_to_join_is_taken(service):
    answer = await service.accepted(
        "POST", "/ingest?source=influx", content='m,host=a state="up" 1799999990000000000', headers=TEXT
    )
    assert (answer["records"], answer["taken"], answer["refused"], answer["ignored"]) == (1, 0, 0, 1)


async def test_a_key_that_comes_twice_in_a_body_is_refused(service):
    metric = json.dumps(json.loads(bodies.TELEGRAF_SINGLE))
    body = f'{{"metrics": [], "metrics": [{metric}]}}'
    await service.refused("POST", "/ingest?source=telegraf", 400, "invalid_json", content=body, headers=JSON)
    assert (await send(service, "telegraf", f'{{"metrics": [{metric}], "a:b": "c:d"}}'))["taken"] == 1


async def test_joined_samples_learn_as_whole_ones(service):
    rows = [{"x": float(i % 7), "y": float(i % 5)} for i in range(150)]
    alone = await service.observe(rows, "alone", timestamps=[NOW - 200 + i for i in range(150)])
    lines = [
        f"m,host=a {name}={row[name]} {int(NOW) - 200 + i}000000000" for name in "xy" for i, row in enumerate(rows)
    ]
    answer = await send(service, "influx", "\n".join(lines), TEXT)
    assert answer["score"][:150] == answer["score"][150:] == alone["score"]
    assert answer["flagged"] == 2 * sum(alone["is_anomaly"])
