import asyncio
import json
import struct

import numpy as np
import pytest

from app.storage import Position
from app.streams.log.log import Log
from core import INCIDENT_EVENTS, Detector, DetectorConfig
from tests.app.harness import NOW, Service, blobs

NDJSON = {"Content-Type": "application/x-ndjson"}
BYTES = {"Content-Type": "application/octet-stream"}


async def test_the_answer_is_what_the_detector_says(service):
    X = blobs(300)
    answer = await service.observe(X)
    expected = Detector(DetectorConfig(n_features=2)).observe(X)
    said = {"score", "threshold", "is_anomaly", "ready", "severity", "incident", "event", "in_maintenance"}
    assert set(answer) == {"stream", "seq", "ids", "samples_needed", *said}
    assert answer["seq"] == list(range(1, 301))
    assert answer["ids"] is None
    assert answer["ready"] == expected.ready.tolist()
    assert answer["is_anomaly"] == expected.is_anomaly.tolist()
    assert answer["incident"] == [seq or None for seq in expected.incident.tolist()]
    assert answer["event"] == [INCIDENT_EVENTS[event] or None for event in expected.event.tolist()]
    for name in ("score", "threshold", "severity"):
        column = np.array(answer[name], dtype=float)
        np.testing.assert_array_equal(column, getattr(expected, name))


async def test_before_ready_there_are_no_scores(service):
    answer = await service.observe(blobs(10))
    assert answer["score"] == answer["threshold"] == [None] * 10
    assert answer["ready"] == answer["is_anomaly"] == [False] * 10
    assert answer["samples_needed"] == 22


async def test_all_forms_of_samples_score_alike(service):
    X = blobs(100)
    arrays = await service.observe(X, "arrays")
    objects = await service.observe([{"cpu": x, "mem": y} for x, y in X.tolist()], "objects")
    lines = "\n".join(json.dumps(row) for row in X.tolist())
    bare = await service.accepted("POST", "/observe?stream=lines", content=lines, headers=NDJSON)
    await service.accepted("PUT", "/streams/bytes", json={"n_features": 2})
    raw = await service.accepted("POST", "/observe?stream=bytes", content=X.astype("<f8").tobytes(), headers=BYTES)
    assert arrays["score"] == objects["score"] == bare["score"] == raw["score"]


async def test_the_first_object_fixes_names_and_their_order(service):
    await service.observe([{"b": 1.0, "a": 2.0}])
    config = (await service.accepted("GET", "/streams/s"))["config"]
    assert [feature["name"] for feature in config["features"]] == ["b", "a"]
    X = blobs(50)
    await service.observe([{"a": y, "b": x} for x, y in X.tolist()])
    by_position = await service.observe([[1.0, 2.0]])
    assert by_position["seq"] == [52]


async def test_lines_may_carry_ids_and_times(service):
    lines = [
        {"sample": [1, None], "id": "a", "timestamp": NOW - 10},
        {"sample": [2, 3], "timestamp": "2027-01-15T07:59:59Z"},
    ]
    content = "\r\n".join(map(json.dumps, lines)) + "\n\n"
    answer = await service.accepted("POST", "/observe?stream=s", content=content, headers=NDJSON)
    assert answer["ids"] == ["a", None]
    assert (await service.accepted("GET", "/streams/s"))["newest_timestamp"] == NOW - 1


async def test_a_feature_may_be_called_sample(service):
    body = '{"sample": 1, "id": 2}'
    answer = await service.accepted("POST", "/observe?stream=s", content=body, headers=NDJSON)
    assert answer["seq"] == [1]
    wrapped = '{"sample": {"sample": 1, "id": 2}, "id": "x"}'
    answer = await service.accepted("POST", "/observe?stream=s", content=wrapped, headers=NDJSON)
    assert answer["ids"] == ["x"]


async def test_null_and_binary_nan_mean_missing(service):
    await service.observe(blobs(64))
    body = struct.pack("<2d", float("nan"), 1.0)
    path = "/observe?stream=s&learn=false"
    raw = await service.accepted("POST", path, content=body, headers=BYTES)
    listed = await service.accepted("POST", path, json={"samples": [[None, 1.0]]})
    assert raw["score"] == listed["score"] != [None]


async def test_scoring_only_keeps_nothing(service):
    await service.observe(blobs(200))
    before = await service.export()
    answer = await service.accepted(
        "POST", "/observe?stream=s&learn=false", json={"samples": [[0.0, 0.0], [5000.0, 0.0]], "ids": ["a", "b"]}
    )
    assert "seq" not in answer
    assert answer["ids"] == ["a", "b"]
    assert answer["is_anomaly"] == [False, True]
    assert await service.export() == before
    assert (await service.observe([[0.0, 0.0]]))["score"][0] == answer["score"][0]


async def test_scoring_only_before_ready_says_what_is_missing(service):
    await service.observe(blobs(10))
    answer = await service.accepted("POST", "/observe?stream=s&learn=false", json={"samples": [[0.0, 0.0]]})
    assert (answer["score"], answer["ready"], answer["samples_needed"]) == ([None], [False], 22)


async def test_streams_are_not_created_where_that_is_switched_off():
    async with Service(auto_create=False) as service:
        await service.refused("POST", "/observe?stream=s", 404, "unknown_stream", json={"samples": [[1.0]]})
        await service.accepted("PUT", "/streams/s", json={"n_features": 1})
        await service.observe([[1.0]])


async def test_a_repeated_batch_gets_its_first_answer_and_is_not_learned(service):
    X, ids = blobs(80), [f"i{i}" for i in range(80)]
    first = await service.observe(X, ids=ids)
    state = await service.export()
    assert await service.observe(X, ids=ids) == first
    assert await service.export() == state
    assert await service.metric("itan_samples_total", outcome="repeated") == 80
    assert await service.metric("itan_samples_total", outcome="learned") == 80


async def test_a_batch_partly_seen_is_answered_whole_and_only_the_new_is_learned(service):
    X = blobs(104)
    await service.observe(X[:100])
    first = await service.observe(X[100:103], ids=["a", "b", "c"])
    second = await service.observe(X[[101, 103, 102]], ids=["b", "d", "c"])
    assert second["seq"] == [102, 104, 103]
    assert second["score"][0] == first["score"][1]
    assert second["score"][2] == first["score"][2]
    whole = await service.observe(X, "whole")
    assert second["score"][1] == whole["score"][103]


@pytest.mark.parametrize("other", [[1.0, 3.0], [1.0, None]])
async def test_an_id_with_other_values_is_a_conflict(service, other):
    await service.observe([[1.0, 2.0]], ids=["a"])
    before = await service.export()
    body = {"samples": [[5.0, 5.0], other], "ids": ["new", "a"]}
    problem = await service.refused("POST", "/observe?stream=s", 409, "id_conflict", json=body)
    assert (problem["field"], problem["value"]) == ("ids[1]", "a")
    assert await service.export() == before
    assert (await service.observe([[5.0, 5.0]], ids=["new"]))["seq"] == [2]


async def test_missing_values_repeat_as_missing(service):
    first = await service.observe([[1.0, None]], ids=["a"])
    assert await service.observe([[1.0, None]], ids=["a"]) == first


async def test_ids_belong_to_their_stream(service):
    await service.observe([[1.0, 2.0]], "s", ids=["a"])
    assert (await service.observe([[3.0, 4.0]], "t", ids=["a"]))["seq"] == [1]


async def test_some_samples_may_have_no_id(service):
    answer = await service.observe([[1.0], [2.0], [3.0]], ids=["a", None, None])
    assert answer["ids"] == ["a", None, None]
    assert (await service.observe([[1.0]], ids=["a"]))["seq"] == [1]


async def test_after_the_horizon_an_id_is_a_new_sample():
    async with Service(label_horizon_samples=10) as service:
        await service.observe([[1.0, 2.0]], ids=["a"])
        await service.observe(blobs(20))
        await service.registry.save(service.registry.sessions["s"])
        assert (await service.observe([[9.0, 9.0]], ids=["a"]))["seq"] == [22]
        labelled = await service.feedback({"id": "a", "anomaly": True})
        assert (labelled["seq"], labelled["outcome"]) == ([22], ["applied"])


async def test_times_may_step_back_by_the_allowance_and_no_further(service):
    await service.accepted("PUT", "/streams/s", json={"n_features": 1, "half_life_seconds": 60})
    await service.observe([[1.0]] * 3, timestamps=[NOW - 20, NOW - 3620, NOW - 10])
    body = {"samples": [[1.0], [1.0]], "timestamps": [NOW, NOW - 3601]}
    problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_timestamps", json=body)
    assert problem["field"] == "timestamps[1]"
    assert "ITAN_TIMESTAMP_ALLOWANCE_SECONDS" in problem["limit"]
    await service.observe([[1.0]], timestamps=[NOW - 3610])
    assert (await service.accepted("GET", "/streams/s"))["newest_timestamp"] == NOW - 10


async def test_the_repeated_hour_is_taken_in_both_passes(service):
    stamps = ["2026-10-25T02:30:00+02:00", "2026-10-25T02:59:00+02:00", "2026-10-25T02:00:00+01:00"]
    assert (await service.observe([[1.0]] * 3, timestamps=stamps))["seq"] == [1, 2, 3]


async def test_one_request_is_one_entry_of_the_log(service):
    await service.observe(blobs(600))
    await service.observe(blobs(1))
    entries = await Log(service.store, "s").entries(Position(0, 0), 10)
    assert [entry.position for entry in entries] == [(600, 0), (601, 0)]


@pytest.mark.parametrize(
    "route", ["/observe?stream=s&learn=false", "/observe?stream=s&learn=false&explain=true", "/density?stream=s"]
)
async def test_a_long_read_is_of_one_model_whatever_is_learned_meanwhile(service, route):
    batches = [blobs(64, seed=seed) for seed in range(30)]
    X, field = blobs(1_000, seed=99), "points" if route.startswith("/density") else "samples"
    models: dict[int, list[float]] = {}
    detector = Detector(DetectorConfig(2))

    async def learn() -> None:
        for batch in batches[1:]:
            await service.observe(batch)

    async def read() -> dict:
        return await service.accepted("POST", route, json={field: X.tolist()})

    for batch in batches:
        detector.observe(batch)
        models[detector.next_seq - 1] = detector.score(X).tolist()
    await service.observe(batches[0])
    *answers, _ = await asyncio.gather(read(), read(), read(), learn())
    for answer in answers:
        scores = answer["score"] if field == "samples" else [-value for value in answer["log_density"]]
        assert scores == models[answer["as_of_seq"]]
