"""How many may watch: places are taken before anything is waited for, and given back whatever happens."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from tests.app.harness import DisturbedStore, Service, raising, until
from tests.app.watcher import Watcher


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with Service(DisturbedStore(MemoryStore()), max_watchers=3) as running:
        await running.observe([[1.0]])
        yield running


class HeldBack:
    """Lets whoever begins to watch wait for the store."""

    def __init__(self, service: Service) -> None:
        self.go_on, self.waiting = asyncio.Event(), 0
        service.store.before["load"] = self._wait

    async def _wait(self) -> None:
        self.waiting += 1
        await self.go_on.wait()


async def test_of_many_at_once_no_more_than_may_are_let_in(service: Service) -> None:
    held = HeldBack(service)
    watchers = [Watcher(service) for _ in range(50)]
    await until(lambda: held.waiting + sum(watcher.is_answered for watcher in watchers) == 50)
    held.go_on.set()
    statuses = [await watcher.status() for watcher in watchers]
    assert statuses == [200] * 3 + [503] * 47
    assert await service.metric("itan_watchers") == 3
    for watcher in watchers:
        await watcher.leave()
    assert await service.metric("itan_watchers") == 0


async def test_every_way_out_leaves_the_place_to_others(service: Service) -> None:
    for _ in range(4):
        await service.refused("GET", "/streams/none/events", 404, "unknown_stream")
        await service.refused("GET", "/streams/s/events?after=x", 400, "invalid_query")
    service.store.before["load"] = raising(StoreUnavailable("down"))
    for _ in range(4):
        await service.refused("GET", "/streams/s/events", 503, "store_unavailable")
    held = HeldBack(service)
    waiting = [Watcher(service) for _ in range(3)]
    await until(lambda: held.waiting == 3)
    await service.refused("GET", "/streams/s/events", 503, "too_many_watchers")
    for watcher in waiting:
        await watcher.cut()
    del service.store.before["load"]
    watchers = [Watcher(service) for _ in range(3)]
    assert [await watcher.status() for watcher in watchers] == [200] * 3
    await watchers[0].cut()
    await watchers[1].leave()
    assert await service.metric("itan_watchers") == 1
    await watchers[2].leave()
