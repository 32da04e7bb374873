"""PATCH /streams/S: what changes without losing the model, and what says why it cannot."""

import pytest

from app.storage import Position
from app.storage.memory import MemoryStore
from core import CANNOT_CHANGE
from tests.app.harness import DisturbedStore, FakeClock, Service, blobs, raising

X = blobs(400)
CHANGES = {"expected_anomaly_rate": 0.1, "cost_false_negative": 4, "half_life_samples": 200, "labels_trusted": True}


async def test_a_change_holds_from_now_on_and_loses_nothing(service):
    await service.observe(X[:300])
    before = await service.accepted("GET", "/streams/s")
    after = await service.accepted("PATCH", "/streams/s", json=CHANGES)
    assert after["config"] == before["config"] | CHANGES
    assert (after["n_seen"], after["ready"]) == (300, True)
    assert after["threshold"] < before["threshold"]
    assert await service.accepted("GET", "/streams/s") == after
    await service.accepted("PUT", "/streams/s", json={"n_features": 2} | CHANGES)


async def test_the_same_again_is_no_event(service):
    await service.observe(X[:50])
    first = await service.accepted("PATCH", "/streams/s", json=CHANGES)
    assert first["storage"]["log_entries"] == 2
    assert await service.accepted("PATCH", "/streams/s", json=CHANGES) == first
    assert await service.accepted("PATCH", "/streams/s", json={}) == first


async def test_names_may_be_given_and_changed(service):
    await service.observe(X[:50])
    for names in ("ab", "ba", "cd"):
        await service.accepted("PATCH", "/streams/s", json={"features": [{"name": name} for name in names]})
    await service.observe([{"d": 2.0, "c": 1.0}])
    history = await service.accepted("GET", "/streams/s/history?values=true&from=50")
    assert history["values"][-1] == [1.0, 2.0]
    await service.refused("POST", "/observe?stream=s", 422, "invalid_samples", json={"samples": [{"a": 1, "b": 2}]})


@pytest.mark.parametrize("field", CANNOT_CHANGE)
async def test_what_cannot_change_is_refused_with_the_reason(service, field):
    other = {"n_features": 3, "calendar": {"periods": ["day"]}, "profile": "paper", "scaling": "none", "warmup": 99}
    other |= {"family": "gaussian_diagonal", "mixture": "eg", "prior_count": 9, "drift_relative": True}
    await service.observe(X[:50])
    before = await service.export()
    given = {field: other[field]} | ({"warmup": 0} if field == "scaling" else {}) | {"labels_trusted": True}
    problem = await service.refused("PATCH", "/streams/s", 422, "invalid_config", json=given)
    assert problem["field"] == field
    assert CANNOT_CHANGE[field] in problem["limit"]
    assert await service.export() == before


@pytest.mark.parametrize("body", [[], "x", 7, {"cost": 1}, {"max_nodes": 0.5}, {"half_life_seconds": 60}])
async def test_other_bodies_are_refused(service, body):
    await service.observe(X[:50])
    before = await service.export()
    code = "invalid_config" if isinstance(body, dict) else "invalid_body"
    await service.refused("PATCH", "/streams/s", 422, code, json=body)
    assert await service.export() == before
    await service.refused("PATCH", "/streams/none", 404, "unknown_stream", json={"labels_trusted": True})


async def test_only_a_key_that_may_administer_the_stream_changes_it():
    async with Service(api_keys="boss,mine:admin:s*,reader:read+observe+label", key="boss") as service:
        await service.observe(X[:50])
        await service.observe(X[:50], "other")
        given = {"json": {"labels_trusted": True}}
        for key, stream, status in (
            ("reader", "s", 403),
            ("mine", "other", 403),
            ("mine", "s", 200),
            ("boss", "s", 200),
        ):
            service.http.headers["Authorization"] = f"Bearer {key}"
            assert (await service.http.patch(f"/streams/{stream}", **given)).status_code == status


async def scores_after(ending: str, store, changes=CHANGES) -> tuple[list, bytes]:
    """Observe, change, observe; end so; give the scores after it, and the state."""
    clock = FakeClock()
    async with Service(store, clock) as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 2})
        await service.accepted("PATCH", "/streams/s", json={"labels_trusted": False, "cost_false_positive": 2})
        await service.observe(X[:300])
        await service.feedback({"seq": 200, "anomaly": False}, {"seq": 201, "anomaly": True})
        if ending == "snapshot before":
            await service.registry.save(service.registry.sessions["s"])
        await service.accepted("PATCH", "/streams/s", json=changes)
        await service.observe(X[300:320])
        if ending == "snapshot after":
            await service.registry.save(service.registry.sessions["s"])
        if ending != "none":
            await service.crash()
        else:
            return (await service.observe(X[320:]))["score"], await service.export()
    clock.advance(60)
    async with Service(store, clock) as service:
        assert (await service.accepted("GET", "/streams/s"))["config"]["half_life_samples"] == 200
        return (await service.observe(X[320:]))["score"], await service.export()


@pytest.mark.parametrize("ending", ["snapshot before", "snapshot after", "log"])
async def test_after_a_crash_the_stream_goes_on_bit_for_bit(ending):
    expected = await scores_after("none", MemoryStore())
    scores, state = await scores_after(ending, MemoryStore())
    assert scores == expected[0]
    assert engine(state) == engine(expected[1])


def engine(export: bytes) -> bytes:
    """Cut the detector out of an export."""
    return export[export.index(b"ITAN", 8) : -8]


async def test_a_change_that_was_not_logged_did_not_happen():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(X[:300])
        before = await service.accepted("GET", "/streams/s")
        store.before["append"] = raising(OSError("disk"))
        await service.refused("PATCH", "/streams/s", 500, "internal_error", json=CHANGES)
        del store.before["append"]
        after = await service.accepted("GET", "/streams/s")
        assert after | {"memory_bytes": 0} == before | {"memory_bytes": 0}
        await service.accepted("PATCH", "/streams/s", json=CHANGES)


async def test_a_stream_whose_first_event_is_a_change_is_rebuilt_and_read(service):
    await service.accepted("PUT", "/streams/s", json={"n_features": 2})
    await service.accepted("PATCH", "/streams/s", json={"warmup": 32, "expected_anomaly_rate": 0.3})
    assert (await service.accepted("GET", "/streams/s/history"))["seq"] == []
    assert (await service.accepted("GET", "/streams?details=true"))["streams"][0]["n_seen"] == 0
    await service.observe(X[:10])
    assert (await service.accepted("GET", "/streams/s/history"))["seq"] == list(range(1, 11))
    assert (await service.accepted("GET", "/streams/s/check"))["ok"]
    entries = await service.store.entries("s", Position(0, 0), 10)
    assert [entry.position for entry in entries] == [Position(0, 1), Position(10, 0)]
