"""Silent streams: their logs are trimmed when the horizon passes, and those whose time is over are deleted."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest

from app.storage import Store, StoreCorrupt, open_store
from app.storage.memory import MemoryStore
from app.streams.maintenance.lifetimes import Lifetimes
from core.snapshot import decode_snapshot
from tests.app.harness import DisturbedStore, FakeClock, Service, blobs
from tests.servers import RedisServer, find_valkey

DAY = 86_400.0


class Place(NamedTuple):
    """A store, and how to let time pass for it and for the services on it."""

    store: Store
    clock: FakeClock
    let_pass: Callable[[float], None]

    def service(self, **settings: Any) -> Service:
        return Service(self.store, self.clock, **{"snapshot_every_seconds": 0.001, "handover_seconds": 0} | settings)


@pytest.fixture(params=["memory", "sqlite", "valkey"])
async def place(request, tmp_path, monkeypatch) -> AsyncIterator[Place]:
    clock = FakeClock()
    if request.param == "valkey":
        server = RedisServer(find_valkey(), tmp_path)
        server.start()
        admin = server.admin()

        def let_pass(seconds: float) -> None:
            clock.advance(seconds)
            for key in admin.keys("*:meta"):
                admin.hincrby(key, "changed", -round(seconds * 1000))

        yield Place(open_store(server.url), clock, let_pass)
        admin.close()
        server.kill()
        return
    monkeypatch.setattr("app.storage.sqlite.reads.time", clock.monotonic)
    monkeypatch.setattr("app.storage.sqlite.writes.time", clock.monotonic)
    url = f"sqlite:///{tmp_path}/itan.db"
    store = MemoryStore(clock.monotonic) if request.param == "memory" else open_store(url)
    yield Place(store, clock, clock.advance)


async def sweep(service: Service) -> None:
    await service.app.state.sweeper.sweep()


async def engine(service: Service, stream: str = "s") -> bytes:
    return decode_snapshot(await service.export(stream), "stream", 1)[1]["engine"].tobytes()


async def observe_all(service: Service, stream: str = "s") -> None:
    for first in range(0, 50, 5):
        ids = [f"{stream} {n}" for n in range(first, first + 5)]
        await service.observe(blobs(50)[first : first + 5], stream, ids=ids)
    await service.feedback({"seq": 40, "anomaly": False}, stream=stream)


@pytest.mark.parametrize("end", ["open", "closed", "crashed"])
async def test_the_log_of_a_silent_stream_goes_when_its_time_is_over(place, end):
    service = place.service()
    async with service:
        await observe_all(service)
        before = await engine(service)
        if end == "crashed":
            await service.crash()
        if end == "open":
            await let_it_be_trimmed(place, service, before)
    if end != "open":
        async with place.service() as again:
            await let_it_be_trimmed(place, again, before)


async def let_it_be_trimmed(place: Place, service: Service, engine_before: bytes) -> None:
    place.let_pass(6 * DAY)
    await sweep(service)
    assert (await place.store.size("s")).log_entries == 11
    place.let_pass(1.1 * DAY)
    for sweeps in range(1, 20):
        await sweep(service)
        left = (await place.store.size("s")).log_entries
        assert sweeps > 1 or left >= 5  # a clock that is wrong must not take all at once
        if not left:
            break
    assert left == 0
    assert (await place.store.find_ids("s", [f"s {n}" for n in range(50)])).seqs == {}
    assert await place.store.find_labels("s", range(1, 51)) == {}
    assert await engine(service) == engine_before
    answer = await service.feedback({"seq": 40, "anomaly": True}, {"seq": 50, "anomaly": True})
    assert answer["outcome"] == ["expired", "expired"]
    assert await service.metric("itan_silent_trims_total") >= 1
    opened = await service.metric("itan_streams_opened_total")
    await sweep(service)
    assert await service.metric("itan_streams_opened_total") == opened
    assert (await service.observe([[1.0, 1.0]]))["seq"] == [51]


async def test_streams_whose_time_is_over_are_deleted(place, caplog):
    caplog.set_level(logging.INFO)
    async with place.service(stream_ttl="pod-db*=0,pod-*=30d") as service:
        for stream in ("pod-1", "pod-2", "pod-db", "web"):
            await service.observe(blobs(3), stream)
        place.let_pass(29 * DAY)
        await sweep(service)
        await service.observe(blobs(1), "pod-2")
        place.let_pass(2 * DAY)
        await sweep(service)
        assert await place.store.streams("", 9) == ["pod-2", "pod-db", "web"]
        assert await service.metric("itan_streams_deleted_total", reason="silent") == 1
        assert "stream pod-1 deleted: silent for" in caplog.text
        assert (await service.observe(blobs(1), "pod-1"))["seq"] == [1]


async def test_a_stream_that_got_a_sample_since_it_was_looked_at_is_not_deleted(place):
    disturbed = DisturbedStore(place.store)
    async with Service(disturbed, place.clock, stream_ttl="*=30d") as service:
        await service.observe(blobs(3))
        place.let_pass(31 * DAY)

        async def send() -> None:
            disturbed.after.clear()
            assert (await service.observe(blobs(1)))["seq"] == [4]

        disturbed.after["silences"] = send
        await sweep(service)
        assert (await service.observe(blobs(1)))["seq"] == [5]


async def test_what_is_acknowledged_while_streams_are_deleted_is_kept(place):
    async with place.service(stream_ttl="*=30d") as service:
        deleted = 0
        for _ in range(20):
            place.let_pass(31 * DAY)
            answers, _ = await asyncio.gather(several(service), sweep(service))
            loaded = await place.store.load("s")
            assert loaded is not None
            assert loaded[1].seq == answers[-1]
            deleted += answers[0] == 1
    assert deleted


async def several(service: Service) -> list[int]:
    await asyncio.sleep(0)
    return [(await service.observe(blobs(1)))["seq"][0] for _ in range(3)]


async def test_one_worker_sweeps_at_a_time():
    clock = FakeClock()
    store = MemoryStore(clock.monotonic)
    behind = DisturbedStore(store)
    async with Service(store, clock, worker="a") as a, Service(behind, clock, worker="b", stream_ttl="*=1d") as b:
        await a.observe(blobs(3))
        clock.advance(2 * DAY)
        await sweep(a)
        await sweep(b)
        assert await store.streams("", 9) == ["s"]
        clock.advance(3601)
        await a.registry.worker.leases.renew()
        await a.registry.close_unused()
        await asyncio.sleep(0)
        await sweep(b)
        assert await store.streams("", 9) == []


async def test_one_stream_s_fault_does_not_end_the_sweep(caplog):
    clock = FakeClock()
    store = MemoryStore(clock.monotonic)
    async with Service(store, clock) as service:
        for stream in ("a", "b"):
            await service.observe(blobs(40), stream)
    real = store.entries

    async def entries(stream: str, *given: Any) -> Any:
        if stream == "a":
            raise StoreCorrupt(stream, "a page of the log is gone")
        return await real(stream, *given)

    store.entries = entries
    clock.advance(8 * DAY)
    async with Service(store, clock) as service:
        for _ in range(10):  # half at a time
            await sweep(service)
    assert "stream a: stream 'a': a page of the log is gone" in caplog.text
    assert not store.stored["b"].log


@pytest.mark.parametrize("text", ["pod", "pod=", "=30d", "pod-*=30", "p*d=1d", "a=1d,b=-1d", "a=0d", "a=1w", "a b=1d"])
def test_a_lifetime_that_cannot_be_read_is_named(text):
    with pytest.raises(ValueError, match="ITAN_STREAM_TTL, entry"):
        Lifetimes.parse(text)


async def test_a_summary_that_a_crash_left_behind_is_completed(place):
    crashed = place.service()
    await crashed.__aenter__()
    for stream in ("dead", "done"):
        await crashed.observe(blobs(200), stream)
    await crashed.registry.summaries.write(crashed.registry.sessions.values())
    place.let_pass(2)
    await crashed.observe([[90.0, 90.0]], "dead")
    await crashed.crash()
    async with place.service() as service:
        place.let_pass(30)
        await sweep(service)
        assert (await service.accepted("GET", "/overview"))["open_incidents"] == 0
        place.let_pass(60)
        await sweep(service)
        place.let_pass(60)
        said = await service.accepted("GET", "/overview")
        assert (said["open_incidents"], said["samples"], said["silent"]) == (1, 401, 0)
        assert not service.registry.sessions
        opened = await service.metric("itan_streams_opened_total")
        await sweep(service)
        assert await service.metric("itan_streams_opened_total") == opened == 1


async def test_a_stream_without_a_sample_is_opened_and_swept(place):
    async with place.service() as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 2})
        service.registry.sessions.clear()
        assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 0
        service.registry.sessions.clear()
        place.let_pass(10**7)
        await sweep(service)
        assert (await service.observe([[1.0, 2.0]], "s"))["seq"] == [1]
