"""Clones of a stream, and streams that start warm from another one."""

import pytest

from app.storage.memory import MemoryStore
from tests.app.harness import FakeClock, Service, blobs

X = blobs(600)
WARM = {"n_features": 2, "warm_start": {"from": "s", "samples": 100}}


async def test_a_clone_goes_on_as_the_original_does(service):
    await service.observe(X[:300])
    await service.feedback({"seq": 290, "anomaly": True}, {"seq": 291, "anomaly": False})
    made = await service.http.post("/streams/s/clone?to=t")
    assert made.status_code == 201
    assert (made.json()["n_seen"], made.json()["oldest_seq"], made.json()["costs"]["labels"]) == (300, 301, 2)
    original, clone = await service.observe(X[300:]), await service.observe(X[300:], "t")
    assert clone["score"] == original["score"]
    problem = await service.refused("POST", "/streams/s/clone?to=t", 409, "stream_exists")
    assert problem["field"] == "stream"
    await service.refused("POST", "/streams/none/clone?to=u", 404, "unknown_stream")
    await service.refused("POST", "/streams/s/clone", 400, "invalid_query")
    await service.refused("POST", "/streams/s/clone?to=a%20b", 400, "invalid_stream_id")
    await service.refused("GET", "/streams/u", 404, "unknown_stream")


async def test_a_clone_and_a_warm_start_take_a_key_for_both_streams():
    keys = "boss,reader:read,mine:admin:t*,both:read+observe:s,both2:admin:t*"
    async with Service(api_keys=keys, key="boss") as service:
        await service.observe(X[:100])
        for key in ("reader", "mine"):
            service.http.headers["Authorization"] = f"Bearer {key}"
            await service.refused("POST", "/streams/s/clone?to=t1", 403, "forbidden")
        service.http.headers["Authorization"] = "Bearer mine"
        await service.refused("PUT", "/streams/t1", 403, "forbidden", json=WARM)
        service.http.headers["Authorization"] = "Bearer boss"
        await service.refused("GET", "/streams/t1", 404, "unknown_stream")


async def test_a_stream_that_starts_warm_scores_at_once_and_outlives_a_crash():
    store, clock = MemoryStore(), FakeClock()
    async with Service(store, clock) as service:
        await service.observe(X[:300])
        made = await service.accepted("PUT", "/streams/t", json=WARM)
        assert (made["ready"], made["n_seen"], made["samples_needed"], made["next_seq"]) == (True, 0, 0, 1)
        assert await service.accepted("PUT", "/streams/t", json=WARM) == made
        first = await service.observe(X[300:400], "t")
        assert all(score is not None for score in first["score"])
        await service.feedback({"seq": 5, "anomaly": True}, stream="t")
        assert (await service.accepted("GET", "/streams/t/check"))["ok"]
        await service.crash()
    clock.advance(60)
    async with Service(store, clock) as service, Service() as other:
        after = await service.observe(X[400:], "t")
        await other.observe(X[:300])
        await other.accepted("PUT", "/streams/t", json=WARM)
        await other.observe(X[300:400], "t")
        await other.feedback({"seq": 5, "anomaly": True}, stream="t")
        assert (await other.observe(X[400:], "t"))["score"] == after["score"]


@pytest.mark.parametrize(
    ("warm", "status", "code"),
    [
        (7, 422, "invalid_body"),
        ({}, 422, "invalid_body"),
        ({"from": "s"}, 422, "invalid_body"),
        ({"from": "s", "samples": 0}, 422, "invalid_body"),
        ({"from": "s", "samples": 9, "more": 1}, 422, "invalid_body"),
        ({"from": "a b", "samples": 9}, 400, "invalid_stream_id"),
        ({"from": "none", "samples": 9}, 404, "unknown_stream"),
        ({"from": "young", "samples": 9}, 409, "not_ready"),
        ({"from": "wide", "samples": 9}, 422, "invalid_config"),
    ],
)
async def test_what_cannot_start_warm_is_refused(service, warm, status, code):
    await service.observe(X[:100])
    await service.observe(X[:3], "young")
    await service.observe(blobs(100, 3), "wide")
    await service.refused("PUT", "/streams/t", status, code, json={"n_features": 2, "warm_start": warm})
    await service.refused("GET", "/streams/t", 404, "unknown_stream")


async def test_to_create_a_warm_stream_again_changes_nothing(service):
    await service.observe([{"a": float(x), "b": float(y)} for x, y in blobs(100)])
    features = {"features": [{"name": "b"}, {"name": "a"}]}
    given = features | {"warm_start": {"from": "s", "samples": 50}}
    created = await service.http.put("/streams/t", json=given)
    again = await service.http.put("/streams/t", json=given)
    assert (created.status_code, again.status_code) == (201, 200)
    other = {"features": [{"name": "b"}, {"name": "a", "kind": "lognormal"}]}
    await service.refused("PUT", "/streams/t", 409, "stream_exists", json=other)
    await service.accepted("PUT", "/streams/cold", json=features)
    swapped = {"features": features["features"][::-1]}
    await service.refused("PUT", "/streams/cold", 409, "stream_exists", json=swapped)
