"""Several workers on one store: one writes a stream, the others say so, and nothing is written twice or lost."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.open.clock import Clock
from core.snapshot import decode_snapshot
from tests.app.harness import NOW, DisturbedStore, FakeClock, Service, blobs, raising

ONE = {"samples": [[1.0, 1.0]]}


class Workers:
    """Workers "a" and "b" on one store, that see one clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock.monotonic)
        self.a, self.b = self.worker("a"), self.worker("b")

    def worker(self, name: str, **settings: Any) -> Service:
        # the clock stands still while a request waits
        return Service(DisturbedStore(self.store), self.clock, worker=name, **{"handover_seconds": 0} | settings)


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[Service]:
    async with service:
        yield service


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    both = Workers()
    async with both.a, both.b:
        yield both


async def refused(service: Service, code: str, path: str = "/observe?stream=s", **body: Any) -> int:
    """Send what is to be refused for now, and give the time after which to come back."""
    answer = await service.http.post(path, json=body or ONE)
    assert (answer.status_code, answer.json()["code"]) == (503, code), answer.text
    return int(answer.headers["retry-after"])


async def test_nothing_renews_leases_after_the_end(monkeypatch):
    monkeypatch.setattr("app.streams.open.leases.RELEASE_SECONDS", 0.1)
    before = asyncio.all_tasks()
    async with Workers().a:
        assert len(asyncio.all_tasks() - before) >= 2
    assert asyncio.all_tasks() == before


async def test_a_stream_that_another_holds_is_elsewhere_for_every_change(workers):
    await workers.a.observe(blobs(40))
    workers.clock.advance(1.5)
    assert await refused(workers.b, "stream_elsewhere") == 1
    await refused(workers.b, "stream_elsewhere", "/feedback?stream=s", labels=[{"seq": 1, "anomaly": True}])
    await refused(
        workers.b, "stream_elsewhere", "/feedback?stream=s", ranges=[{"from": NOW, "to": NOW, "anomaly": True}]
    )
    await refused(workers.b, "stream_elsewhere", "/incidents/s~1~1/label", anomaly=True)
    await workers.b.refused("POST", "/streams/s/reset", 503, "stream_elsewhere")
    await workers.b.refused("DELETE", "/streams/s", 503, "stream_elsewhere")
    await workers.b.refused("PUT", "/streams/s", 503, "stream_elsewhere", json={"n_features": 2})
    assert await workers.b.metric("itan_store_errors_total", reason="elsewhere") == 7
    assert (await workers.a.observe([[1.0, 1.0]]))["seq"] == [41]


async def test_reads_of_a_stream_that_another_holds_say_how_far_they_know(workers):
    await workers.a.observe(blobs(40))
    for seq in (40, 41):
        reads = [
            await workers.b.accepted("GET", "/streams/s"),
            await workers.b.accepted("GET", "/density?stream=s"),
            await workers.b.accepted("GET", "/density/grid?stream=s&x=0&y=1&size=2"),
            await workers.b.accepted("POST", "/density?stream=s", json={"points": [[0, 0]]}),
            await workers.b.accepted("POST", "/observe?stream=s&learn=false", json=ONE),
        ]
        assert [read["as_of_seq"] for read in reads] == [seq] * 5
        assert await workers.b.export() == await workers.a.export()
        assert (await workers.a.observe([[1.0, 1.0]]))["seq"] == [seq + 1]
        workers.clock.advance(1.5)
    assert not workers.b.registry.worker.leases.holds("s")


async def test_a_reader_becomes_the_writer_when_the_lease_has_ended(workers):
    await workers.a.observe(blobs(40))
    await workers.b.accepted("GET", "/streams/s")
    await workers.a.observe([[1.0, 1.0]])
    workers.clock.advance(6)
    assert (await workers.b.observe([[1.0, 1.0]]))["seq"] == [42]


async def test_one_that_slept_through_its_lease_is_refused_and_drops_its_copy(workers):
    X = blobs(60)
    async with Service() as alone:
        await workers.a.observe(X[:40])
        workers.clock.advance(6)
        await workers.b.observe(X[40:50])
        await refused(workers.a, "stream_moved", samples=[[99.0, 99.0]])
        await refused(workers.a, "stream_elsewhere")
        await workers.b.observe(X[50:])
        await alone.observe(X)
        workers.clock.advance(2)
        assert await workers.a.export() == await workers.b.export() == await alone.export()


async def test_one_that_slept_writes_no_snapshot(workers):
    await workers.a.observe(blobs(40))
    workers.clock.advance(6)
    await workers.b.observe(blobs(3))
    before = await workers.store.load("s")
    assert not await workers.a.registry.save(workers.a.registry.sessions["s"])
    assert await workers.store.load("s") == before


async def test_renewed_leases_stay_and_lost_ones_are_forgotten(workers):
    await workers.a.observe(blobs(40))
    for _ in range(4):
        workers.clock.advance(2)
        await workers.a.registry.worker.leases.renew()
    await refused(workers.b, "stream_elsewhere")
    workers.clock.advance(6)
    await workers.b.observe(blobs(3))
    await workers.a.registry.worker.leases.renew()
    await refused(workers.a, "stream_elsewhere")
    workers.clock.advance(22_000)
    await workers.a.snapshotter.save_due()
    assert await workers.a.metric("itan_snapshot_age_seconds") == 0


async def engine(service: Service) -> bytes:
    """Give the state of the detector, without what depends on when snapshots were stored."""
    return decode_snapshot(await service.export(), "stream", 1)[1]["engine"].tobytes()


async def hand_over(worker: Service) -> None:
    """Let a worker hand over what others ask for."""
    leases = worker.registry.worker.leases
    await leases.hand_over_requested()
    await leases.finish()


async def test_a_stream_that_another_is_asked_for_is_handed_over_with_a_snapshot(workers):
    X = blobs(60)
    await workers.a.observe(X[:40])
    workers.clock.advance(2)
    await workers.a.observe(X[40:50])
    await refused(workers.b, "stream_elsewhere")
    await hand_over(workers.a)
    snapshot, head = await workers.store.load("s")
    assert snapshot.position == head
    assert (await workers.b.observe(X[50:]))["seq"] == list(range(51, 61))
    workers.clock.advance(0.25)
    await refused(workers.a, "stream_elsewhere")
    async with Service() as alone:
        await alone.observe(X)
        assert await engine(workers.b) == await engine(alone)
    assert await workers.a.metric("itan_lease_changes_total", change="handed_over") == 1


async def test_a_hand_over_waits_for_the_change_under_way(workers):
    await workers.a.observe(blobs(40))
    workers.clock.advance(2)
    await refused(workers.b, "stream_elsewhere")
    goes_on, is_there = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        is_there.set()
        await goes_on.wait()

    workers.a.store.before["append"] = hold
    change = asyncio.create_task(workers.a.observe([[1.0, 1.0]]))
    await is_there.wait()
    leaving = asyncio.create_task(hand_over(workers.a))
    await refused(workers.b, "stream_elsewhere")
    assert workers.a.registry.worker.leases.holds("s")
    goes_on.set()
    await leaving
    assert (await change)["seq"] == [41]
    assert (await workers.b.observe([[1.0, 1.0]]))["seq"] == [42]


async def test_a_hand_over_whose_snapshot_fails_leaves_the_log(workers):
    await workers.a.observe(blobs(40))
    workers.clock.advance(2)
    await refused(workers.b, "stream_elsewhere")
    workers.a.store.before["save_snapshot"] = raising(StoreUnavailable("full"))
    await hand_over(workers.a)
    assert (await workers.b.observe([[1.0, 1.0]]))["seq"] == [41]


async def test_a_stream_stays_for_a_while_and_longer_each_time_that_it_comes_back_soon(workers):
    holder, asker = workers.a, workers.b
    await holder.observe(blobs(40))
    for seconds in (2, 2, 4, 4, 8, 8, 16, 16, 30, 30):
        workers.clock.advance(0.25)  # the asker handed it over just now
        assert await refused(asker, "stream_elsewhere") == seconds
        await workers.store.ask("s", holder.registry.worker.leases.owner)
        await hand_over(holder)
        assert holder.registry.worker.leases.holds("s")
        workers.clock.advance(seconds - 0.25)
        await holder.registry.worker.leases.renew()
        await refused(asker, "stream_elsewhere")
        await hand_over(holder)
        await asker.observe([[1.0, 1.0]])
        holder, asker = asker, holder


async def test_a_stream_that_comes_back_late_stays_as_long_as_at_first(workers):
    await workers.a.observe(blobs(40))
    for holder, asker in ((workers.a, workers.b), (workers.b, workers.a)):
        workers.clock.advance(100)
        await holder.registry.worker.leases.renew()
        await holder.observe([[1.0, 1.0]])
        await refused(asker, "stream_elsewhere")
        await hand_over(holder)
        await asker.observe([[1.0, 1.0]])
    workers.clock.advance(0.25)
    assert await refused(workers.b, "stream_elsewhere") == 2


async def test_a_wish_for_what_is_not_held_any_more_does_nothing(workers):
    await workers.a.observe(blobs(3), "t")
    await workers.store.ask("s", "a")
    await hand_over(workers.a)
    workers.a.store.before["wanted"] = raising(StoreUnavailable("gone"))
    await hand_over(workers.a)
    assert workers.a.registry.worker.leases.count() == 1


@pytest.fixture
def quick(monkeypatch) -> None:
    """Let streams be handed over after a moment, in real time."""
    monkeypatch.setattr("app.streams.open.hold_times.SHORTEST_SECONDS", 0.05)
    monkeypatch.setattr("app.streams.open.leases.HANDOVER_POLL_SECONDS", 0.01)


async def test_requests_wait_for_the_hand_over(quick):
    store = MemoryStore()
    async with Service(store, Clock(), worker="a") as a, Service(store, Clock(), worker="b") as b:
        await a.observe(blobs(40))
        answers = await asyncio.gather(*(b.observe([[1.0, 1.0]]) for _ in range(3)))
        assert [answer["seq"] for answer in answers] == [[41], [42], [43]]
        assert await b.metric("itan_lease_changes_total", change="refused") == 0


async def test_many_requests_wait_no_longer_than_one_for_a_holder_that_says_nothing(quick):
    store = MemoryStore()
    silent = DisturbedStore(store)
    async with (
        Service(silent, Clock(), worker="a") as a,
        Service(store, Clock(), worker="b", handover_seconds=0.5) as b,
    ):
        silent.before["wanted"] = asyncio.Event().wait
        await a.observe(blobs(40))
        began = time.monotonic()
        await asyncio.gather(*(refused(b, "stream_elsewhere") for _ in range(40)))
        assert 0.45 < time.monotonic() - began < 10  # 20 if one waited after another


async def test_two_workers_that_are_asked_in_turns_answer_both_and_lose_nothing(quick, monkeypatch):
    monkeypatch.setattr("app.streams.open.hold_times.SHORTEST_SECONDS", 0.3)
    store = MemoryStore()
    async with Service() as alone, Service(store, Clock(), worker="a") as a, Service(store, Clock(), worker="b") as b:
        X = blobs(40)
        answered = 0
        while answered < len(X):
            for worker in (a, b):
                answer = await worker.http.post("/observe?stream=s", json={"samples": [X[answered].tolist()]})
                answered += answer.status_code == 200
                if answered == len(X):
                    break
        await alone.observe(X)
        assert await engine(a) == await engine(alone)
        changes = [await worker.metric("itan_lease_changes_total", change="handed_over") for worker in (a, b)]
        assert 1 <= sum(changes) < 12


async def test_renewals_that_fail_are_tried_again(workers):
    await workers.a.observe(blobs(40))
    workers.a.store.before["renew"] = raising(StoreUnavailable("gone"))
    await workers.a.registry.worker.leases.renew()
    del workers.a.store.before["renew"]
    workers.clock.advance(6)
    await workers.a.registry.worker.leases.renew()
    await refused(workers.b, "stream_elsewhere")


async def test_a_restart_under_its_own_name_takes_its_streams_back_at_once(workers):
    await workers.a.observe(blobs(40))
    await workers.a.crash()
    await refused(workers.b, "stream_elsewhere")
    async with workers.worker("a") as again:
        assert (await again.observe([[1.0, 1.0]]))["seq"] == [41]


async def test_shutdown_hands_over(workers):
    async with running(workers.worker("c")) as c:
        await c.observe(blobs(40), "t")
    assert (await workers.b.observe([[1.0, 1.0]], "t"))["seq"] == [41]


async def test_a_store_that_hangs_does_not_hold_up_the_release(monkeypatch):
    monkeypatch.setattr("app.streams.open.leases.RELEASE_SECONDS", 0.01)
    both = Workers()
    async with both.a:
        await both.a.observe(blobs(3))
        both.a.store.before["release"] = asyncio.Event().wait


async def test_closed_streams_are_left_to_others():
    both = Workers()
    a = both.worker("a", idle_seconds=60)
    async with a, both.b:
        await a.observe(blobs(3))
        a.clock.advance(61)
        await a.registry.worker.leases.renew()
        await refused(both.b, "stream_elsewhere")
        await a.registry.close_unused()
        await asyncio.sleep(0)
        assert (await both.b.observe([[1.0, 1.0]]))["seq"] == [4]


async def test_what_does_not_exist_is_not_held(workers):
    unknown = {"labels": [{"seq": 1, "anomaly": True}]}
    await workers.a.refused("POST", "/feedback?stream=s", 404, "unknown_stream", json=unknown)
    await workers.a.refused("DELETE", "/streams/s", 404, "unknown_stream")
    await workers.a.refused("POST", "/observe?stream=s", 422, "invalid_samples", json={"samples": [[None]]})
    await asyncio.sleep(0)
    assert (await workers.b.observe([[1.0]]))["seq"] == [1]


async def test_a_deleted_stream_can_be_made_elsewhere(workers):
    await workers.a.observe(blobs(3))
    assert (await workers.a.http.delete("/streams/s")).status_code == 204
    assert (await workers.b.observe([[1.0]]))["seq"] == [1]
    await refused(workers.a, "stream_elsewhere")


async def test_an_append_that_was_given_up_cannot_come_later(workers):
    """It may be under way still when the next one has been sent: by then its token is too low."""
    await workers.a.observe(blobs(3))
    late: list[tuple[Any, ...]] = []
    real = workers.store.append

    async def lose(*given: Any) -> None:
        late.append(given)
        raise StoreUnavailable("no answer in time")

    workers.store.append = lose
    await refused(workers.a, "store_unavailable")
    workers.store.append = real
    await workers.a.accepted("POST", "/feedback?stream=s", json={"labels": [{"seq": 9, "anomaly": True}]})
    with pytest.raises(Exception, match="taken over"):
        await real(*late[0])


async def test_a_store_that_has_gone_back_is_counted(workers):
    await workers.a.observe(blobs(40))
    await workers.a.observe(blobs(1))
    stored = workers.store.stored["s"]
    stored.log.pop()
    stored.head = stored.log[-1].position
    await refused(workers.a, "stream_moved")
    assert await workers.a.metric("itan_store_setbacks_total") == 0
    assert (await workers.a.observe([[1.0, 1.0]]))["seq"] == [41]
    assert await workers.a.metric("itan_store_setbacks_total") == 1
