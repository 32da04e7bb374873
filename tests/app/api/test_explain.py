"""`explain=true`: the answer says why samples were flagged, by the model that scored them."""

import json

import numpy as np
import pytest

from app.storage import Position, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.log.events import read_event
from core import Detector, DetectorConfig
from tests.app.harness import DisturbedStore, Service, blobs, raising

PATH = "/observe?stream=s&explain=true"
NDJSON = {"Content-Type": "application/x-ndjson"}
BYTES = {"Content-Type": "application/octet-stream"}
ODD = [[40.0, 0.0], [0.0, 0.0], [6.0, None], [6.0, -40.0]]


async def explained(service, samples, path=PATH, **more):
    return await service.accepted("POST", path, json={"samples": samples, **more})


async def test_flagged_samples_are_explained_as_the_detector_does(service):
    X = blobs(300)
    X[250::10] *= 30
    answer = await explained(service, X.tolist())
    detector = Detector(DetectorConfig(n_features=2))
    out = detector.observe(X, explain=True)
    assert sum(answer["is_anomaly"]) > 3
    assert [one is not None for one in answer["explanation"]] == answer["is_anomaly"]
    found = [one for one in answer["explanation"] if one]
    for column, name in ((out.explanation.contribution, "contributions"), (out.explanation.expected, "expected")):
        np.testing.assert_array_equal(column, [[one[name]["0"], one[name]["1"]] for one in found])
    assert [one["path"] for one in found] == out.explanation.path
    assert [one["node"] for one in found] == [path[-1] for path in out.explanation.path]
    assert "need not sum" in answer["explanation_note"]


async def test_the_feature_that_is_to_blame_is_named(service):
    await service.observe([{"cpu": x, "mem": y} for x, y in blobs(300).tolist()])
    answer = await explained(service, [{"mem": y, "cpu": x} for x, y in ODD])
    first, calm, _, last = answer["explanation"]
    assert calm is None
    assert list(first["contributions"]) == list(first["expected"]) == ["cpu", "mem"]
    assert max(first["contributions"], key=first["contributions"].get) == "cpu"
    assert max(last["contributions"], key=last["contributions"].get) == "mem"
    assert abs(first["expected"]["cpu"]) < 4


async def test_a_missing_feature_is_expected_and_contributes_nothing(service):
    await service.observe(blobs(300))
    answer = await explained(service, [[90.0, None]])
    assert answer["explanation"][0]["contributions"]["1"] is None
    assert np.isfinite(answer["explanation"][0]["expected"]["1"])


async def test_all_forms_of_bodies_are_explained_alike(service):
    X = blobs(300)
    X[-5:] += 50
    for stream in ("json", "lines", "bytes"):
        await service.accepted("PUT", f"/streams/{stream}", json={"n_features": 2})
    path = "/observe?explain=true&stream="
    listed = await explained(service, X.tolist(), path + "json")
    lines = "\n".join(json.dumps(row) for row in X.tolist())
    bare = await service.accepted("POST", path + "lines", content=lines, headers=NDJSON)
    raw = await service.accepted("POST", path + "bytes", content=X.astype("<f8").tobytes(), headers=BYTES)
    assert any(listed["explanation"])
    assert listed["explanation"] == bare["explanation"] == raw["explanation"]


async def test_explaining_changes_nothing_else(service):
    X = blobs(300)
    plain = await service.observe(X, "plain")
    answer = await explained(service, X.tolist())
    assert set(answer) - set(plain) == {"explanation", "explanation_note"}
    assert {name: answer[name] for name in plain} == {**plain, "stream": "s"}
    detectors = [service.registry.peek(name).detector.to_bytes() for name in ("s", "plain")]
    assert detectors[0] == detectors[1]


async def test_scoring_only_explains_by_the_model_as_it_is(service):
    await service.observe(blobs(300))
    before = await service.export()
    scored = await explained(service, ODD, PATH + "&learn=false")
    assert await service.export() == before
    first = await explained(service, ODD[:1])
    assert scored["explanation"][0] == first["explanation"][0] is not None
    assert [one is not None for one in scored["explanation"]] == scored["is_anomaly"]


async def test_before_ready_there_is_nothing_to_explain(service):
    for query in ("", "&learn=false"):
        answer = await explained(service, blobs(10).tolist(), PATH + query)
        assert answer["explanation"] == [None] * 10


async def test_a_repeat_gets_its_first_explanation(service):
    await service.observe(blobs(300))
    first = await explained(service, ODD, ids=["a", "b", "c", "d"])
    await service.observe(blobs(100, seed=1) + 30)
    assert await explained(service, ODD, ids=["a", "b", "c", "d"]) == first
    mixed = await explained(service, [ODD[3], [99.0, 0.0], ODD[1]], ids=["d", "new", "b"])
    assert mixed["explanation"][0] == first["explanation"][3]
    assert mixed["explanation"][1]["contributions"]["0"] > 5
    assert mixed["explanation"][2] is None
    assert "explanation" not in await service.observe(ODD, ids=["a", "b", "c", "d"])


async def test_what_was_first_sent_without_cannot_be_explained_later(service):
    await service.observe(blobs(300))
    assert (await service.observe(ODD, ids=["a", "b", "c", "d"]))["is_anomaly"][0]
    assert (await explained(service, ODD, ids=["a", "b", "c", "d"]))["explanation"] == [None] * 4


async def test_explanations_outlive_a_crash():
    store = MemoryStore()
    async with Service(store) as service:
        await service.observe(blobs(300))
        first = await explained(service, ODD, ids=["a", "b", "c", "d"])
        async with Service(store) as other:
            assert await explained(other, ODD, ids=["a", "b", "c", "d"]) == first


async def test_only_flagged_samples_take_room_in_the_log(service):
    await service.observe(blobs(300))
    await explained(service, [ODD[1]])
    await explained(service, [ODD[0]])
    entries = await service.store.entries("s", Position(300, 0), 10)
    assert [list(read_event(entry.body).explained) for entry in entries] == [[], [302]]


@pytest.mark.parametrize("value", ["1", "yes", "", "True"])
async def test_the_flag_is_read_strictly(service, value):
    problem = await service.refused(
        "POST", f"/observe?stream=s&explain={value}", 400, "invalid_query", json={"samples": [[1.0]]}
    )
    assert problem["field"] == "explain"


async def test_what_could_not_be_kept_is_explained_when_it_is_sent_again():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(300))
        store.before["append"] = raising(StoreUnavailable("gone"))
        body = {"samples": ODD[:1], "ids": ["a"]}
        await service.refused("POST", PATH, 503, "store_unavailable", json=body)
        del store.before["append"]
        assert (await explained(service, ODD[:1], ids=["a"]))["explanation"][0] is not None
