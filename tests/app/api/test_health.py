import asyncio

import pytest

from app.storage import Cause, StoreError, StoreUnavailable
from app.storage.memory import MemoryStore
from tests.app.harness import DisturbedStore, FakeClock, Service, raising


async def test_probes_answer(service):
    assert (await service.accepted("GET", "/livez"))["status"] == "alive"
    ready = await service.accepted("GET", "/readyz")
    assert (ready["status"], ready["store"]) == ("ready", "available")
    assert "forgets" in ready["warnings"][0]


async def test_ready_while_the_store_is_down():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["*"] = raising(StoreUnavailable("no route to host"))
        ready = await service.accepted("GET", "/readyz")
        assert (ready["status"], ready["store"], ready["reason"]) == ("ready", "unavailable", "no route to host")
        assert (await service.accepted("GET", "/livez"))["status"] == "alive"
        del store.before["*"]


class QuickClock(FakeClock):
    """Sleeps no longer than others need for a turn."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def turns() -> None:
    """Let all others go on for a while."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_unready_until_the_store_can_be_opened():
    store = DisturbedStore(MemoryStore())
    store.before["open"] = raising(StoreUnavailable("still loading"))
    async with Service(store, QuickClock()) as service:
        answer = await service.http.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (503, "starting")
        assert answer.json()["reason"] == "still loading"
        assert (await service.accepted("GET", "/livez"))["status"] == "alive"
        store.before["open"] = raising(StoreError("a wrong password by now"))
        await turns()
        answer = await service.http.get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (503, "a wrong password by now")
        del store.before["open"]
        await turns()
        assert (await service.accepted("GET", "/readyz"))["status"] == "ready"


async def test_what_does_not_pass_ends_the_start():
    store = DisturbedStore(MemoryStore())
    store.before["open"] = raising(StoreError("a wrong password"))
    with pytest.raises(StoreError, match="password"):
        await Service(store).__aenter__()


async def test_not_ready_once_the_files_of_the_store_are_others():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["*"] = raising(StoreUnavailable("itan.db was removed", Cause.REPLACED))
        answer = await service.http.get("/readyz")
        assert answer.status_code == 503
        assert (answer.json()["status"], answer.json()["reason"]) == ("unready", "itan.db was removed")
        del store.before["*"]


async def test_writes_that_were_refused_are_told_until_one_is_kept(service):
    service.store.write_refusals.record("full", "SQLite: database or disk is full")
    ready = await service.accepted("GET", "/readyz")
    assert (ready["status"], ready["store"]) == ("ready", "refusing")
    assert ready["reason"].endswith("none has succeeded since: SQLite: database or disk is full")
    assert await service.metric("itan_store_refused_writes_total", cause="full") == 1
    service.store.write_refusals.clear()
    assert (await service.accepted("GET", "/readyz"))["store"] == "available"


async def test_a_store_that_cannot_be_measured_does_not_end_the_scrape():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["room"] = raising(StoreUnavailable("gone"))
        assert await service.metric("itan_store_used_bytes") == 0


async def test_not_ready_while_shutting_down(service):
    service.app.state.service.is_stopping = True
    answer = await service.http.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "stopping")
    assert (await service.http.get("/livez")).status_code == 200
