"""Delivering: after a crash at any point nothing is lost, one worker at a time, rules that come, change and go."""

import asyncio
import random

import pytest

from app.notices.lane import Lane
from app.notices.outbox import opened, waiting
from app.storage import DocumentKind, open_store
from app.storage.memory import MemoryStore
from tests.app.harness import until
from tests.app.notices.conftest import FastClock, Office, Streams
from tests.app.notices.receiver import receiving

CRASHES = 100


class Crash(BaseException):
    """The end of the process: nobody handles it."""


class Crashing:
    """Another object behind a counter that ends everything before or after one of its calls."""

    def __init__(self, inner, plan):
        self.inner, self.plan = inner, plan

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def call(*given, **more):
            self.plan.step()
            answer = await found(*given, **more)
            self.plan.step()
            return answer

        return call


class Plan:
    """So many steps until the crash, after which nothing works any more."""

    def __init__(self, left):
        self.left = left

    def step(self):
        self.left -= 1
        if self.left < 0:
            raise Crash


async def run_until_crash(store, clock, left):
    plan = Plan(left)
    office = Office(Crashing(store, plan), clock)
    office.sender = office.delivery._sender = Crashing(office.sender, plan)
    try:
        await office.round()
        return False
    except (Crash, BaseExceptionGroup):
        return True
    finally:
        await office.sender.inner.close()


async def test_after_a_crash_at_any_point_none_is_lost_and_doubles_have_the_same_id(database):
    store, clock, seed = open_store(database), FastClock(), random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    await store.open()
    streams, expected, crashes, seq = Streams(store, clock), [], 0, {"a": 1, "b": 1}
    async with receiving() as receiver:
        office = Office(store, clock)
        await office.put("on-call", url=receiver.url)
        while crashes < CRASHES:
            for stream in seq:
                await streams.open(stream, seq[stream])
                if dice.random() < 0.5:
                    await office.round()
                await streams.change(stream, seq[stream], n_flagged=2)
                await streams.close(stream, seq[stream])
                expected += [(stream, seq[stream], kind) for kind in ("opened", "closed")]
                seq[stream] += 10
            while await run_until_crash(store, clock, dice.randrange(40)):
                crashes += 1
        await office.round()
    first, ids = {}, {}
    for one in receiver.received:
        data = one.json["data"]
        what = (data["stream"], data["incident"], one.json["type"].removeprefix("incident."))
        ids.setdefault(what, set()).add(one.id)
        first.setdefault(what, len(first))
    assert set(first) == set(expected)
    assert all(len(same) == 1 for same in ids.values())
    assert len({next(iter(same)) for same in ids.values()}) == len(expected)
    for stream in seq:
        order = [what for what in first if what[0] == stream]
        assert order == [what for what in expected if what[0] == stream]
    assert len(receiver.received) > len(expected)  # some crashes did come between sending and noting
    for lane in ("", waiting("on-call"), opened("on-call")):
        assert await store.count_changes(lane) == 0
    await office.close()
    await store.close()


async def test_only_one_worker_delivers_until_it_stops(store, clock, streams):
    one, two = Office(store, clock, "one"), Office(store, clock, "two")
    async with receiving() as receiver:
        await one.put("on-call", url=receiver.url)
        for office in (one, two):
            await office.delivery.work()
        assert (list(one.delivery._lanes), list(two.delivery._lanes)) == (["on-call"], [])
        await streams.open("s", 1)
        await two.delivery.work()
        assert await store.count_changes() == 1
        await one.delivery.work()
        await receiver.wait_for(1)
        await one.close()
        await streams.open("t", 1)
        clock.ahead += 10
        await two.delivery.work()
        await receiver.wait_for(2)
    await two.close()
    assert len(set(receiver.ids)) == 2


async def test_a_changed_rule_counts_for_what_waits(office, store, streams, clock):
    async with receiving() as receiver, receiving(status=503) as broken:
        await office.put("on-call", url=broken.url)
        await streams.open("s", 1)
        office.clock.sleep = lambda seconds: asyncio.sleep(3600)  # the lane waits for its next try
        await office.delivery.work()
        await broken.wait_for(1)
        await office.put("on-call", url=receiver.url)
        await office.delivery.work()
        assert (await receiver.wait_for(1))[0].id == broken.ids[0]


async def test_a_deleted_rule_leaves_nothing_behind(office, store, streams):
    async with receiving(status=503) as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        office.clock.sleep = lambda seconds: asyncio.sleep(3600)
        await office.delivery.work()
        await receiver.wait_for(1)
        await office.delivery.measure()
        assert office.metric("itan_notices_waiting") == 1
        await office.rules.delete("on-call")
        await office.delivery.work()
        await office.delivery.measure()
    assert office.metric("itan_notices_waiting") == 0
    assert [await store.count_changes(lane) for lane in ("", waiting("on-call"), opened("on-call"))] == [0, 0, 0]


async def test_without_rules_marks_are_forgotten_and_none_are_asked_for(office, store, streams):
    assert office.delivery._audience.is_told_of("s")  # nobody knows yet
    await streams.open("s", 1)
    await office.delivery.work()
    assert await store.count_changes() == 0
    assert not office.delivery._audience.is_told_of("s")
    await office.put("on-call", url="http://127.0.0.1:9/", streams="web-*")
    await office.delivery.work()
    assert [office.delivery._audience.is_told_of(stream) for stream in ("s", "web-1")] == [False, True]


async def test_a_mark_waits_for_its_event_and_not_for_ever(office, store, streams, clock):
    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        await streams.open("s", 1)
        (mark,) = await store.changed_incidents(1)
        early = mark._replace(position=mark.position._replace(seq=99))
        store._lanes[""].add(early)
        await office.round()
        assert len(receiver.received) == 1
        assert await store.changed_incidents(9) == [early]
        clock.ahead += 120
        await office.round()
    assert await store.count_changes() == 0
    assert len(receiver.received) == 1


async def test_a_slow_receiver_does_not_hold_up_others(office, store, streams):
    held = asyncio.Event()

    async def hold(reader, writer):
        await held.wait()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server, receiving() as receiver:
        await office.put("slow", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        await office.put("quick", url=receiver.url)
        for n in range(50):
            await streams.open(f"s{n}", 1)
        await office.delivery.work()
        await receiver.wait_for(50)
        assert await store.count_changes(waiting("slow")) == 50
        await office.delivery._stop_lanes(["slow", "quick"])
        held.set()
        await until(lambda: True)


@pytest.mark.parametrize("secret", ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
async def test_metrics_say_how_long_what_waits_has_waited(store, clock, streams, secret):
    office = Office(store, clock)
    await office.put("on-call", url="http://127.0.0.1:9/", secret=secret)
    await streams.open("s", 1)
    office.delivery._audience.rules = await office.rules.all()
    await office.delivery.route()
    office.delivery._lanes["on-call"] = None, None
    clock.ahead += 500
    await office.delivery.measure()
    assert office.metric("itan_notices_oldest_seconds") == pytest.approx(500, abs=5)
    office.delivery._lanes.clear()
    await office.close()


def test_the_lease_on_delivering_is_no_stream():
    from app.notices.delivery import LEASE
    from app.streams.errors import InvalidStreamId
    from app.streams.ids import checked_stream_id

    with pytest.raises(InvalidStreamId):
        checked_stream_id(LEASE)
    assert MemoryStore().is_exclusive is False


async def test_a_lane_that_ended_by_a_fault_starts_again_and_the_log_says_so(
    office, store, streams, monkeypatch, caplog
):
    async def fail(*_):
        raise ValueError("a fault of ours")

    async with receiving() as receiver:
        await office.put("on-call", url=receiver.url)
        with monkeypatch.context() as patched:
            patched.setattr(Lane, "begin", fail)
            await office.delivery.work()
            await until(lambda: office.delivery._lanes["on-call"][1].done())
        await streams.open("s", 1)
        await office.delivery.work()
        await receiver.wait_for(1)
    assert "rule on-call: its notices stopped, and start again" in caplog.text


async def test_a_rule_that_cannot_be_read_stops_no_other_and_keeps_what_waits(office, store, streams, caplog):
    async with receiving() as receiver, receiving(status=503) as broken:
        await office.put("good", url=receiver.url)
        await office.put("bad", url=broken.url)
        await streams.open("s", 1)
        office.clock.sleep = lambda seconds: asyncio.sleep(3600)
        await office.delivery.work()
        await broken.wait_for(1)
        kept = await store.document(DocumentKind.RULE, "bad")
        assert await store.put_document(DocumentKind.RULE, "bad", b"{", kept)
        for _ in range(2):
            office.clock.ahead += 6
            await office.delivery.work()
        await streams.open("t", 1)
        await office.delivery.work()
        await receiver.wait_for(2)
        assert await store.count_changes(waiting("bad")) == 1
    assert caplog.text.count("rule 'bad' cannot be read") == 1
