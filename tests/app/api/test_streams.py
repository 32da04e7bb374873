import asyncio

import pytest

from app.storage.memory import MemoryStore
from tests.app.harness import DisturbedStore, FakeClock, Service, blobs, until

BYTES = {"Content-Type": "application/octet-stream"}


async def test_put_creates_once_and_says_so(service):
    config = {"n_features": 3, "cost_false_negative": 5}
    made = await service.http.put("/streams/s", json=config)
    again = await service.http.put("/streams/s", json=config)
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == again.json()
    assert made.json()["config"]["cost_false_negative"] == 5.0
    problem = await service.refused("PUT", "/streams/s", 409, "stream_exists", json={"n_features": 3})
    assert "cost_false_negative" in problem["detail"]


async def test_put_again_compares_with_what_has_learned(service):
    await service.observe(blobs(5))
    assert (await service.http.put("/streams/s", json={"n_features": 2})).status_code == 200
    assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 5


async def test_named_features_take_objects_and_arrays(service):
    config = {"features": [{"name": "cpu"}, {"name": "mem"}]}
    await service.accepted("PUT", "/streams/s", json=config)
    await service.observe([{"mem": 2.0, "cpu": 1.0}])
    await service.observe([[1.0, 2.0]])


async def test_a_description_says_how_the_stream_stands(service):
    await service.observe(blobs(40))
    described = await service.accepted("GET", "/streams/s")
    assert (described["n_seen"], described["next_seq"], described["oldest_seq"]) == (40, 41, 1)
    assert described["ready"]
    assert described["storage"]["log_entries"] == 1


async def test_a_list_comes_in_pages(service):
    for name in "edcba":
        await service.accepted("PUT", f"/streams/{name}", json={"n_features": 1})
    seen, after = [], ""
    while after is not None:
        page = await service.accepted("GET", f"/streams?limit=2&after={after}")
        seen += [entry["stream"] for entry in page["streams"]]
        after = page["next"]
    assert seen == list("abcde")


async def test_a_deleted_stream_is_gone_and_begins_anew(service):
    await service.observe(blobs(40))
    assert (await service.http.delete("/streams/s")).status_code == 204
    await service.refused("GET", "/streams/s", 404, "unknown_stream")
    await service.refused("DELETE", "/streams/s", 404, "unknown_stream")
    assert not service.registry.sessions
    assert (await service.observe([[1.0, 2.0, 3.0]]))["seq"] == [1]


async def test_a_reset_forgets_but_goes_on_counting(service):
    await service.observe(blobs(40), ids=[f"i{i}" for i in range(40)])
    described = await service.accepted("POST", "/streams/s/reset")
    assert (described["n_seen"], described["next_seq"], described["ready"]) == (0, 41, False)
    await service.accepted("POST", "/streams/s/reset")
    again = await service.observe(blobs(40), ids=[f"i{i}" for i in range(40)])
    assert again["seq"] == list(range(41, 81))
    fresh = await service.observe(blobs(40), "fresh")
    assert again["score"] == fresh["score"]


async def test_an_export_continues_elsewhere(service):
    X = blobs(120)
    await service.observe(X[:60])
    described = await service.accepted("PUT", "/streams/copy/import", content=await service.export(), headers=BYTES)
    assert (described["n_seen"], described["next_seq"], described["oldest_seq"]) == (60, 61, 61)
    original, copy = await service.observe(X[60:]), await service.observe(X[60:], "copy")
    assert original["score"] == copy["score"]
    assert original["seq"] == copy["seq"]
    assert await service.export("s") != b""


@pytest.mark.parametrize("warm", [10, 60])
async def test_an_older_export_does_not_take_seq_back(service, warm):
    X = blobs(120)
    await service.observe(X[:warm])
    saved = await service.export()
    expected = await service.observe(X[warm:], ids=[f"i{i}" for i in range(warm, 120)])
    described = await service.accepted("PUT", "/streams/s/import", content=saved, headers=BYTES)
    assert (described["n_seen"], described["next_seq"], described["oldest_seq"]) == (warm, 121, 121)
    again = await service.observe(X[warm:], ids=[f"i{i}" for i in range(warm, 120)])
    assert again["seq"] == list(range(121, 241 - warm))
    assert again["score"] == expected["score"]
    labelled = await service.feedback({"seq": 50, "anomaly": True}, {"id": "i110", "anomaly": True})
    assert labelled["outcome"] == ["expired", "applied"]


async def test_an_import_may_leap_ahead(service):
    async with Service() as other:
        await other.observe(blobs(50))
        for _ in range(3):
            await other.accepted("POST", "/streams/s/reset")
        ahead = await other.export()
    await service.observe(blobs(5))
    await service.accepted("PUT", "/streams/s/import", content=ahead, headers=BYTES)
    assert (await service.observe([[1.0, 2.0]]))["seq"] == [51]


async def test_an_import_brings_its_own_config(service):
    await service.observe([[1.0]])
    await service.observe(blobs(3), "wide")
    await service.accepted("PUT", "/streams/s/import", content=await service.export("wide"), headers=BYTES)
    assert (await service.accepted("GET", "/streams/s"))["config"]["n_features"] == 2


CHANGES = {
    "create": ("PUT", "/streams/s", {"json": {"n_features": 2}}),
    "import": ("PUT", "/streams/s/import", {"headers": BYTES}),
    "reset": ("POST", "/streams/s/reset", {}),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_was_made_is_described_though_the_stream_is_deleted_meanwhile(change):
    """What is answered is read while the stream is locked: the deletion that waits behind it cannot come between."""
    method, path, given = CHANGES[change]
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(40))
        if change == "import":
            given = given | {"content": await service.export()}
        if change == "create":
            assert (await service.http.delete("/streams/s")).status_code == 204
        held = asyncio.Event()
        store.before["create" if change == "create" else "replace"] = held.wait
        changing = asyncio.create_task(service.http.request(method, path, **given))
        await until(lambda: any(session.lock.locked() for session in service.registry.sessions.values()))
        deleting = asyncio.create_task(service.http.delete("/streams/s"))
        await until(lambda: service.registry.sessions["s"].users == 2)
        held.set()
        answers = await asyncio.gather(changing, deleting)
        assert [answer.status_code for answer in answers] == [201 if change == "create" else 200, 204]
        assert answers[0].json()["stream"] == "s"


async def test_silent_streams_are_listed_and_deleted_only_if_they_still_are():
    clock = FakeClock()
    async with Service(MemoryStore(clock.monotonic), clock) as service:
        for stream in ("a", "b"):
            await service.observe(blobs(3), stream)
            clock.advance(100)
        page = await service.accepted("GET", "/streams?silent_seconds=150&limit=1")
        assert page == {"streams": [{"stream": "a"}], "next": "a"}
        page = await service.accepted("GET", "/streams?silent_seconds=150&limit=1&after=a")
        assert page == {"streams": [], "next": None}
        details = await service.accepted("GET", "/streams?details=true")
        assert [entry["silent_seconds"] for entry in details["streams"]] == [200, 100]
        problem = await service.refused("DELETE", "/streams/b?silent_seconds=150", 409, "not_silent")
        assert (problem["field"], problem["value"], problem["limit"]) == ("silent_seconds", 100, "at least 150")
        assert (await service.http.delete("/streams/a?silent_seconds=150")).status_code == 204
        await service.refused("DELETE", "/streams/a?silent_seconds=150", 404, "unknown_stream")
        await service.refused("DELETE", "/streams/b?silent_seconds=-1", 400, "invalid_query")
        assert (await service.accepted("GET", "/streams"))["streams"] == [{"stream": "b"}]
        assert await service.metric("itan_streams_deleted_total", reason="silent") == 1
