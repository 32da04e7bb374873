"""Sources: records of agents as they send them, and how they become samples."""

import gzip
import json

import pytest

from app.storage.memory import MemoryStore
from tests.app.harness import NOW, Service
from tests.app.sources import bodies

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
TEXT = {"Content-Type": "text/plain; charset=utf-8"}


async def send(service, source, body, headers=JSON, query=""):
    return await service.accepted("POST", f"/ingest?source={source}{query}", content=body, headers=headers)


async def features(service, stream):
    config = (await service.accepted("GET", f"/streams/{stream}"))["config"]
    return [feature["name"] for feature in config["features"]]


SENT = {
    "telegraf": (
        "telegraf",
        bodies.TELEGRAF,
        JSON,
        ["raynor:cpu:cpu0", "raynor:cpu:cpu1", "raynor:disk:ext4:_2Fvar_2Flog"],
    ),
    "telegraf, one metric a request": ("telegraf", bodies.TELEGRAF_SINGLE, JSON, ["raynor:docker"]),
    "vector": ("vector", bodies.VECTOR, NDJSON, ["web-1:requests"] * 2),
    "fluent-bit": ("fluent-bit", bodies.FLUENT_BIT, JSON, ["web-1:cpu"] * 2),
    "fluent-bit, json_lines": ("fluent-bit", bodies.FLUENT_BIT_LINES, NDJSON, ["web-1:cpu"] * 2),
    "fluent-bit, json_lines as JSON": ("fluent-bit", bodies.FLUENT_BIT_LINES, JSON, ["web-1:cpu"] * 2),
    "collectd": (
        "collectd",
        bodies.COLLECTD,
        JSON,
        ["leeloo.octo.it:load::load:", "leeloo.octo.it:disk:sda:disk_octets:"],
    ),
}


@pytest.mark.parametrize("sent", SENT)
async def test_what_agents_send_is_taken_as_it_is_and_once(service, sent):
    source, body, headers, streams = SENT[sent]
    answer = await send(service, source, body, headers)
    assert (answer["stream"], answer["problems"]) == (streams, [])
    packed = await send(service, source, gzip.compress(body.encode()), headers | {"Content-Encoding": "gzip"})
    assert packed == answer
    assert await service.metric("itan_samples_total", outcome="learned") == len(streams)
    for stream in set(streams):
        described = await service.accepted("GET", f"/streams/{stream}")
        assert described["newest_timestamp"] == pytest.approx(1799999990, abs=2)
        assert not {"date", "timestamp", "host", "name"} & set(await features(service, stream))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999"])
async def test_what_is_no_number_is_refused_and_not_taken_as_missing(service, text):
    metric = '{"name": "cpu", "tags": {"host": "h"}, "timestamp": %d, "fields": {"busy": %s, "idle": 1.5}}'
    lines = [metric % (NOW - 60 + i, value) for i, value in enumerate(["1", text, "2"])]
    answer = await send(service, "telegraf", "\n".join(lines), NDJSON)
    assert answer["record"] == [0, 2]
    (problem,) = answer["problems"]
    assert (problem["code"], problem["field"], problem["value"]) == (
        "invalid_samples",
        "records[1].fields.busy",
        text,
    )


async def test_metrics_that_are_no_gauges_are_left_out(service):
    answer = await send(service, "vector-metrics", bodies.VECTOR_METRICS)
    assert (answer["stream"], answer["problems"], answer["ignored"]) == (["web-1:load"], [], 1)
    assert await features(service, "web-1:load") == ["load1"]


PLAIN = {"stream": "{host}", "features": ["*"], "ignore": ["host"]}


async def test_a_source_is_kept_listed_and_deleted(service):
    presets = ["collectd", "fluent-bit", "influx", "otlp", "prometheus", "telegraf", "vector", "vector-metrics"]
    assert (await service.accepted("GET", "/sources"))["sources"] == presets
    put = await service.http.put("/sources/mine", json=PLAIN)
    assert (put.status_code, put.json()["source"], put.json()["is_preset"]) == (201, "mine", False)
    assert (await service.http.put("/sources/mine", json=PLAIN)).status_code == 200
    assert await service.accepted("GET", "/sources/mine") == put.json()
    assert (await service.accepted("GET", "/sources"))["sources"] == sorted([*presets, "mine"])
    assert (await service.http.delete("/sources/mine")).status_code == 204
    for method in ("GET", "DELETE"):
        await service.refused(method, "/sources/mine", 404, "unknown_source")
    await service.refused("POST", "/ingest?source=mine", 404, "unknown_source", json=[{"host": "a", "x": 1}])


async def test_a_preset_can_be_changed_and_comes_back(service):
    changed = await service.accepted(
        "PUT", "/sources/telegraf", json={"preset": "telegraf", "ignore": ["fields.usage_*"]}
    )
    assert (changed["stream"], changed["is_preset"]) == ("{tags.host}:{name}{tags.*}", False)
    answer = await send(service, "telegraf", bodies.TELEGRAF)
    assert answer["record"] == [2]
    assert (await service.http.delete("/sources/telegraf")).status_code == 204
    assert (await service.accepted("GET", "/sources/telegraf"))["is_preset"]
    assert (await send(service, "telegraf", bodies.TELEGRAF))["taken"] == 3
    await service.refused("DELETE", "/sources/telegraf", 404, "unknown_source")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ([], "invalid_body", "body"),
        ({}, "invalid_body", "stream"),
        (PLAIN | {"features": "*"}, "invalid_body", "features"),
        (PLAIN | {"strean": "x"}, "invalid_body", "strean"),
        (PLAIN | {"new": "both"}, "invalid_body", "new"),
        (PLAIN | {"stream": "a b"}, "invalid_source", "stream"),
        (PLAIN | {"stream": "{host"}, "invalid_source", "stream"),
        (PLAIN | {"features": []}, "invalid_source", "features"),
        ({"preset": "nothing"}, "invalid_source", "preset"),
        ({"preset": ["telegraf"]}, "invalid_source", "preset"),
        (PLAIN | {"config": {"xi": 7}}, "invalid_config", "xi"),
        (PLAIN | {"config": {"unheard_of": 7}}, "invalid_config", "unheard_of"),
    ],
)
async def test_a_source_that_cannot_be_used_is_refused(service, body, code, field):
    problem = await service.refused("PUT", "/sources/mine", 422, code, json=body)
    assert problem["field"] == field
    await service.refused("GET", "/sources/mine", 404, "unknown_source")


async def test_names_and_numbers_of_sources_are_bounded():
    async with Service(max_sources=1) as service:
        for name in ("a%20b", "a:b", "x" * 65):
            await service.refused("PUT", f"/sources/{name}", 422, "invalid_source", json=PLAIN)
        await service.accepted("PUT", "/sources/a", json=PLAIN)
        problem = await service.refused("PUT", "/sources/b", 413, "too_many", json=PLAIN)
        assert "ITAN_MAX_SOURCES" in problem["limit"]
        await service.accepted("PUT", "/sources/a", json=PLAIN)


async def test_new_streams_have_the_config_of_the_source(service):
    source = PLAIN | {"config": {"cost_false_positive": 0.1, "half_life_samples": 500}}
    await service.accepted("PUT", "/sources/mine", json=source)
    await send(service, "mine", json.dumps([{"host": "a", "cpu": 1, "mem": 2}]))
    config = (await service.accepted("GET", "/streams/a"))["config"]
    assert (config["cost_false_positive"], config["half_life_samples"]) == (0.1, 500)
    assert await features(service, "a") == ["cpu", "mem"]


async def test_missing_and_new_keys(service):
    await service.accepted("PUT", "/sources/mine", json=PLAIN)
    await service.accepted("PUT", "/sources/strict", json=PLAIN | {"missing": "refuse"})
    records = [
        {"host": "a", "cpu": 1, "mem": 2},
        {"host": "a", "mem": 4, "cpu": 3, "gpu": 9, "fan": 1},
        {"host": "a", "cpu": 5},
        {"host": "a", "gpu": 7},
    ]
    answer = await send(service, "mine", json.dumps(records))
    assert answer["record"] == [0, 1, 2]
    (problem,) = answer["problems"]
    assert (problem["code"], problem["field"]) == ("invalid_samples", "records[3].sample")
    history = await service.accepted("GET", "/streams/a/history?values=true")
    assert history["values"] == [[1, 2], [3, 4], [5, None]]
    assert await service.metric("itan_ignored_values_total") == 2
    strict = await send(service, "strict", json.dumps(records))
    assert strict["record"] == [0, 1]
    assert "'mem'" in strict["problems"][0]["limit"]
    assert await service.metric("itan_ignored_values_total") == 4


async def test_samples_of_a_source_score_as_those_of_observe(service):
    await service.accepted("PUT", "/sources/mine", json=PLAIN)
    rows = [{"cpu": float(i % 7), "mem": float(i % 5)} for i in range(150)]
    alone = await service.observe(rows, "alone")
    answer = await send(service, "mine", json.dumps([{"host": "a"} | row for row in rows]))
    assert answer["score"] == alone["score"]
    assert await service.export("a") == await service.export("alone")


async def test_with_versions_a_new_key_begins_a_new_stream(service):
    await service.accepted("PUT", "/sources/mine", json=PLAIN | {"new": "version"})
    records = [{"host": "a", "cpu": 1, "mem": 2}, {"host": "a", "mem": 2, "cpu": 1}, {"host": "a", "cpu": 1, "gpu": 2}]
    first, again, other = (await send(service, "mine", json.dumps(records)))["stream"]
    assert first == again != other
    assert await features(service, other) == ["cpu", "gpu"]


async def test_a_time_is_no_feature_unless_it_is_declared(service):
    for name in ("date", "Time", "timestamp", "ts", "row", "index", "label"):
        body = {"samples": [{"cpu": 1, name: 5}]}
        problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_samples", json=body)
        assert problem["field"] == f"samples[0].{name}"
        assert "PUT /streams/S" in problem["limit"]
    for factor in (1, 1e3, 1e6, 1e9):
        for sample in ({"cpu": 1, "when": (NOW - 3600) * factor}, [1, (NOW + 60) * factor]):
            problem = await service.refused(
                "POST", "/observe?stream=s", 422, "invalid_samples", json={"samples": [sample]}
            )
            assert "Unix time" in problem["limit"]
    await service.refused("GET", "/streams/s", 404, "unknown_stream")
    await service.observe([[NOW - 200_000, 1.0]], "far")
    await service.accepted("PUT", "/streams/declared", json={"features": [{"name": "date"}, {"name": "label"}]})
    await service.observe([{"date": NOW, "label": 1}], "declared")
    await service.accepted("PUT", "/sources/mine", json=PLAIN)
    answer = await send(service, "mine", json.dumps([{"host": "a", "cpu": 1, "date": 5}, {"host": "b", "cpu": 1}]))
    assert answer["stream"] == ["b"]
    assert answer["problems"][0]["field"] == "records[0].sample.date"
    declared = PLAIN | {"config": {"features": [{"name": "date"}, {"name": "cpu"}]}}
    await service.accepted("PUT", "/sources/mine", json=declared)
    assert (await send(service, "mine", json.dumps([{"host": "a", "cpu": 1, "date": NOW}])))["taken"] == 1
    assert await features(service, "a") == ["date", "cpu"]


async def test_odd_records_are_refused_alone(service):
    await service.accepted("PUT", "/sources/mine", json=PLAIN | {"id": "{id}", "ignore": ["host", "id"]})
    lines = [
        '{"host": "a", "id": 1, "x": 1}',
        "5",
        "{",
        '{"host": "a", "id": 2, "x": 1, "x": 2}',
        '{"host": "a", "id": 2, "x": 1, "y": "10:20"}',
        '{"host": "a", "id": "\\u0007", "x": 1}',
        '{"host": "' + "h" * 129 + '", "id": 3, "x": 1}',
        '{"host": "a", "x": 1}',
        '{"host": "a", "id": 4, "x": 1e999}',
    ]
    answer = await send(service, "mine", "\n".join(lines), NDJSON)
    assert answer["record"] == [0, 4]
    codes = {problem["record"]: problem["code"] for problem in answer["problems"]}
    assert codes == {
        1: "invalid_body",
        2: "invalid_json",
        3: "invalid_json",
        5: "invalid_ids",
        6: "invalid_stream_id",
        7: "invalid_body",
        8: "invalid_samples",
    }


async def test_sources_outlive_the_service_and_reach_other_workers():
    store = MemoryStore()
    async with Service(store, worker="a") as one:
        await one.accepted("PUT", "/sources/mine", json=PLAIN)
        async with Service(store, worker="b") as other:
            body = json.dumps([{"host": "h", "cpu": 1, "gpu": 2}])
            assert (await send(other, "mine", body))["taken"] == 1
            await one.accepted("PUT", "/sources/mine", json=PLAIN | {"stream": "new-{host}"})
            assert (await send(one, "mine", body))["stream"] == ["new-h"]
            other.clock.advance(10)
            answer = await other.http.post("/ingest?source=mine", content=body, headers=JSON)
            assert "new-h" in answer.text
    async with Service(store, worker="c") as again:
        assert (await again.accepted("GET", "/sources/mine"))["stream"] == "new-{host}"
