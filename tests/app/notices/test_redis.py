"""Delivering from Redis, where the mark of a change is there before its event."""

import asyncio

import pytest

from app.notices.delivery import EVENT_SECONDS
from app.notices.outbox import opened, waiting
from app.storage.redis import RedisStore
from tests.app.notices.conftest import Office
from tests.app.notices.receiver import receiving
from tests.servers import PROGRAMS, RedisServer

LANES = ("", waiting("on-call"), opened("on-call"))


@pytest.fixture
async def store(tmp_path):
    server = RedisServer(PROGRAMS["valkey"](), tmp_path)
    server.start()
    store = RedisStore(server.url)
    await store.open()
    yield store
    await store.close()
    server.kill()


@pytest.fixture
def held(store, monkeypatch):
    """Hold each event back, after its mark, until this is set."""
    held, append = asyncio.Event(), store._calls.append

    async def wait(*given):
        await held.wait()
        return await append(*given)

    held.set()
    monkeypatch.setattr(store._calls, "append", wait)
    return held


async def marked(store, count):
    while await store.count_changes() < count:  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def test_a_mark_waits_for_its_event_which_is_told_then(office, store, streams, held):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        for change, kind in ((streams.open, "opened"), (streams.close, "closed")):
            held.clear()
            event = asyncio.create_task(change("s", 1))
            await marked(store, 1)
            before = len(receiver.received)
            await office.round()
            assert (len(receiver.received), await store.count_changes()) == (before, 1)
            held.set()
            await event
            await office.round()
            assert receiver.received[-1].json["type"] == f"incident.{kind}"
    assert len(receiver.received) == 2
    assert [await store.count_changes(lane) for lane in LANES] == [0, 0, 0]


async def test_a_mark_whose_event_never_comes_is_forgotten_and_another_worker_goes_on(
    store, streams, clock, held, office
):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        held.clear()
        event = asyncio.create_task(streams.close("s", 1))
        await marked(store, 2)
        event.cancel()
        held.set()
        other = Office(store, clock, "two")
        await other.round()
        clock.ahead += EVENT_SECONDS * 2
        await other.round()
        assert [one.json["type"] for one in receiver.received] == ["incident.opened"]
        await streams.close("s", 1)
        await other.round()
        await other.close()
    assert [one.json["type"] for one in receiver.received] == ["incident.opened", "incident.closed"]
    assert [await store.count_changes(lane) for lane in LANES] == [0, 0, 0]
