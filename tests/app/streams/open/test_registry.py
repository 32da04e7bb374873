import asyncio

import httpx2
import pytest

from app.storage import Cause, StaleWriter, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.open.shutdown import shut_down
from tests.app.harness import DisturbedStore, Service, blobs, raising


def sessions(service):
    return service.registry.sessions


async def snapshot_seq(service, stream="s"):
    snapshot, _ = await service.store.load(stream)
    return snapshot.position.seq


TWO_STREAMS = {"memory_budget_mb": 0.05}
ONE_STREAM = {"memory_budget_mb": 0.001}


async def test_the_least_recently_used_are_closed_after_their_snapshot():
    async with Service(**TWO_STREAMS) as service:
        for stream in ("a", "b", "a", "c", "d"):
            await service.observe([[1.0]], stream)
        assert list(sessions(service)) == ["a", "c", "d"]
        assert await snapshot_seq(service, "b") == 1
        assert (await service.observe([[1.0]], "b"))["seq"] == [2]
        assert list(sessions(service)) == ["c", "d", "b"]
        assert await service.metric("itan_streams_closed_total", reason="room") == 2
        assert await service.metric("itan_streams_opened_total") == 1


async def test_a_stream_in_use_is_not_closed():
    async with Service(**ONE_STREAM) as service, service.registry.reading("busy") as busy:
        await service.observe([[1.0]], "busy")
        await service.observe([[1.0]], "other")
        await service.observe([[1.0]], "third")
        assert busy.is_open
        assert list(sessions(service)) == ["busy", "third"]


async def test_a_stream_whose_write_is_under_way_is_not_closed():
    store = DisturbedStore(MemoryStore())
    async with Service(store, **ONE_STREAM) as service:
        await service.observe([[1.0]], "writing")
        store.before["append"] = (held := asyncio.Event()).wait
        pending = asyncio.create_task(service.observe([[2.0]], "writing"))
        while not sessions(service)["writing"].users:  # noqa: ASYNC110 nothing announces it
            await asyncio.sleep(0)
        await service.http.get("/streams/unknown")
        await service.registry.close_unused()
        assert sessions(service)["writing"].is_open
        held.set()
        assert (await pending)["seq"] == [2]


async def test_a_stream_that_is_asked_for_while_it_is_closed_stays():
    store = DisturbedStore(MemoryStore())
    async with Service(store, **ONE_STREAM) as service:
        await service.observe([[1.0]], "a")
        store.before["save_snapshot"] = (held := asyncio.Event()).wait
        closing = asyncio.create_task(service.registry.close_unused())
        while not sessions(service)["a"].users:  # noqa: ASYNC110 nothing announces it
            await asyncio.sleep(0)
        pending = asyncio.create_task(service.observe([[2.0]], "a"))
        while sessions(service)["a"].users < 2:  # noqa: ASYNC110 nothing announces it
            await asyncio.sleep(0)
        assert sessions(service)["a"].is_open
        held.set()
        assert (await pending)["seq"] == [2]
        await closing
        assert await service.metric("itan_streams_opened_total") == 0


async def test_a_read_makes_room_too():
    async with Service(**ONE_STREAM) as service:
        await service.observe(blobs(40), "a")
        for stream in "bcd":
            await service.observe([[1.0]], stream)
        await service.accepted("GET", "/streams/a")
        assert list(sessions(service)) == ["a"]


async def test_streams_that_grow_push_others_out():
    async with Service(memory_budget_mb=0.064) as service:
        for stream in ("a", "b", "grown"):
            await service.observe(blobs(3), stream)
        await service.observe(blobs(100), "grown")
        await service.registry.close_unused()
        assert "grown" in sessions(service)
        assert "a" not in sessions(service)
        await service.observe(blobs(2000), "grown")
        await service.registry.close_unused()
        assert list(sessions(service)) == []


async def test_snapshots_that_fail_keep_their_streams_and_hold_up_no_other():
    store = DisturbedStore(MemoryStore())
    async with Service(store, **TWO_STREAMS) as service:
        for stream in "ab":
            await service.observe([[1.0]], stream)
        store.before["save_snapshot"] = raising(StoreUnavailable("full"))
        for stream in "cde":
            await service.observe([[1.0]], stream)
        assert set(sessions(service)) == set("abcde")
        del store.before["save_snapshot"]
        await service.registry.close_unused()
        assert len(sessions(service)) == 2
        for stream in "abcde":
            assert (await service.observe([[1.0]], stream))["seq"] == [2]


async def test_a_stream_that_nobody_asks_for_is_closed():
    async with Service(idle_seconds=60) as service:
        await service.observe([[1.0]], "a")
        service.clock.advance(50)
        await service.observe([[1.0]], "b")
        service.clock.advance(20)
        await service.registry.close_unused()
        assert list(sessions(service)) == ["b"]
        assert await snapshot_seq(service, "a") == 1
        assert (await service.observe([[1.0]], "a"))["seq"] == [2]


async def test_the_memory_of_a_stream_is_shown(service):
    await service.observe(blobs(3))
    small = (await service.accepted("GET", "/streams/s"))["memory_bytes"]
    await service.observe(blobs(2000))
    large = (await service.accepted("GET", "/streams/s"))["memory_bytes"]
    assert 5_000 < small < 30_000
    assert 90_000 < large < 400_000
    assert await service.metric("itan_open_stream_bytes") == large


async def test_unknown_streams_leave_nothing_behind(service):
    for i in range(20):
        await service.http.get(f"/streams/x{i}")
        await service.http.post(f"/observe?stream=x{i}", json={"samples": [[None]]})
    assert not sessions(service)
    assert await service.store.streams("", 10) == []


async def test_set_wall_clocks_do_not_hinder_snapshots(service):
    await service.observe([[1.0]])
    service.clock.wall -= 3600
    service.clock.ticks += 21_601
    await service.snapshotter.save_due()
    assert await snapshot_seq(service) == 1


async def test_the_wrong_wall_clock_does_not_trim_the_log(service):
    await service.observe(blobs(40))
    await service.registry.save(sessions(service)["s"])
    service.clock.wall += 8 * 86_400
    await service.observe(blobs(1))
    await service.registry.save(sessions(service)["s"])
    assert (await service.accepted("GET", "/streams/s"))["oldest_seq"] == 1


async def test_the_log_is_trimmed_to_the_horizon():
    async with Service(label_horizon_samples=25) as service:
        for _ in range(10):
            await service.observe(blobs(10))
        await service.registry.save(sessions(service)["s"])
        described = await service.accepted("GET", "/streams/s")
        assert described["oldest_seq"] == 76
        assert described["storage"]["log_entries"] == 3


async def test_a_failed_append_is_not_learned():
    store = DisturbedStore(MemoryStore())
    X = blobs(90)
    async with Service(store) as service, Service() as unbroken:
        await service.observe(X[:50])
        store.before["append"] = raising(StoreUnavailable("gone"))
        for _ in range(3):
            await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json={"samples": [[9.0, 9.0]]})
            labels = {"labels": [{"seq": 40, "anomaly": True}]}
            await service.refused("POST", "/feedback?stream=s", 503, "store_unavailable", json=labels)
        del store.before["append"]
        service.clock.advance(1.0)
        await unbroken.observe(X[:50])
        assert (await service.observe(X[50:]))["score"] == (await unbroken.observe(X[50:]))["score"]
        assert await service.export() == await unbroken.export()


async def test_a_store_that_goes_on_refusing_is_tried_seldom():
    store = DisturbedStore(MemoryStore())
    calls = {"append": 0, "load": 0}

    def counted(verb, outcome):
        async def hook():
            calls[verb] += 1
            await outcome()

        return hook

    async def pass_by():
        pass

    async with Service(store) as service:
        await service.observe(blobs(50))
        store.before["append"] = counted("append", raising(StoreUnavailable("full", Cause.FULL)))
        store.before["load"] = counted("load", pass_by)
        body, loads = {"samples": [[9.0, 9.0]]}, []
        for tries, pause in ((2, 1.0), (3, 2.0), (4, 4.0), (5, 5.0), (6, 5.0)):
            for _ in range(10):
                await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json=body)
                await service.accepted("POST", "/observe?stream=s&learn=false", json=body)
            assert calls["append"] == tries
            loads.append(calls["load"])
            assert await service.metric("itan_store_errors_total", reason="unavailable") == (tries - 1) * 11 - 1
            service.clock.advance(pause - 0.1)
            await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json=body)
            assert calls["append"] == tries
            service.clock.advance(0.1)
        assert loads == [3, 5, 7, 9, 11]  # twice for each try but the first
        store.before["append"] = pass_by
        for n_seen in (51, 52):
            await service.observe([[9.0, 9.0]])
            assert (await service.accepted("GET", "/streams/s"))["n_seen"] == n_seen


async def test_what_a_store_refuses_at_once_reads_nothing_anew():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(50))
        store.before["append"] = raising(StoreUnavailable("full", Cause.FULL))
        for _ in range(2):
            await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json={"samples": [[9, 9]]})
        store.before["load"] = raising(RuntimeError("read anew"))
        await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json={"samples": [[9, 9]]})
        labels = {"labels": [{"seq": 40, "anomaly": True}]}
        await service.refused("POST", "/feedback?stream=s", 503, "store_unavailable", json=labels)


async def test_an_append_whose_answer_is_lost_counts_once():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.after["append"] = raising(StoreUnavailable("answer lost"))
        body = {"samples": [[1.0], [2.0]], "ids": ["a", "b"]}
        await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json=body)
        del store.after["append"]
        assert (await service.observe([[1.0], [2.0]], ids=["a", "b"]))["seq"] == [1, 2]
        assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 2


async def test_a_first_observe_that_fails_can_be_repeated():
    for verb in ("create", "append"):
        store = DisturbedStore(MemoryStore())
        async with Service(store) as service:
            store.before[verb] = raising(StoreUnavailable("gone"))
            await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json={"samples": [[1.0]]})
            del store.before[verb]
            assert (await service.observe([[1.0]]))["seq"] == [1]


@pytest.mark.parametrize("way", ["PUT", "import"])
async def test_a_creation_that_nobody_vouches_for_is_not_told_of_as_done(way):
    store = DisturbedStore(MemoryStore())
    async with Service() as other:
        await other.observe([[1.0]])
        state = await other.export()

    async def fail_from_now_on() -> None:
        store.before["acquire"] = raising(StoreUnavailable("no replica keeps the lease"))

    async with Service(store) as service:
        store.after = {
            "acquire": fail_from_now_on,
            "create": raising(StoreUnavailable("no replica keeps the stream")),
        }
        store.before["create"] = (held := asyncio.Event()).wait
        # the second waits for the first, so that the session lives on
        tasks = [asyncio.create_task(create(service, way, state)) for _ in range(2)]
        while "s" not in sessions(service) or sessions(service)["s"].users < 2:  # noqa: ASYNC110 nothing announces it
            await asyncio.sleep(0)
        held.set()
        answers = await asyncio.gather(*tasks)
        assert [answer.status_code for answer in answers] == [503, 503]
        assert "the lease" in answers[1].json()["detail"]
        store.before, store.after = {}, {}
        assert (await create(service, way, state)).status_code == 200


async def create(service: Service, way: str, state: bytes) -> httpx2.Response:
    if way == "PUT":
        return await service.http.put("/streams/s", json={"n_features": 1})
    media = {"content-type": "application/octet-stream"}
    return await service.http.put("/streams/s/import", content=state, headers=media)


async def test_a_stale_writer_goes_on_from_the_store():
    store = MemoryStore()
    async with Service(store) as first, Service(store) as second:
        await first.observe(blobs(40))
        await second.observe(blobs(5))
        await first.refused("POST", "/observe?stream=s", 503, "stream_moved", json={"samples": [[1.0, 1.0]]})
        assert (await first.observe([[1.0, 1.0]]))["seq"] == [46]
        await second.refused("POST", "/streams/s/reset", 503, "stream_moved")
        assert await first.export() == await second.export()


async def test_two_creators_of_one_stream():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:

        async def forestall() -> None:
            del store.before["create"]
            async with Service(store.store) as other:
                await other.observe([[5.0]])

        store.before["create"] = forestall
        await service.refused("POST", "/observe?stream=s", 503, "stream_moved", json={"samples": [[1.0]]})
        assert (await service.observe([[1.0]]))["seq"] == [2]


async def test_reads_go_on_while_the_store_is_down():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(40))
        store.before["*"] = raising(StoreUnavailable("gone"))
        for _ in range(2):
            points = {"points": [[0, 0]]}
            assert (await service.http.post("/density?stream=s", json=points)).status_code == 200
            samples = {"samples": [[0, 0]]}
            assert (await service.http.post("/observe?stream=s&learn=false", json=samples)).status_code == 200
            assert (await service.accepted("GET", "/streams/s"))["storage"] is None
            assert (await service.http.get("/density?stream=s")).status_code == 200
            await service.refused("POST", "/observe?stream=s", 503, "store_unavailable", json=samples)
        await service.refused("POST", "/density?stream=t", 503, "store_unavailable", json={"points": [[0, 0]]})
        del store.before["*"]


async def test_a_read_does_not_wait_for_a_slow_append():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(40))
        store.before["append"] = (held := asyncio.Event()).wait
        pending = asyncio.create_task(service.observe([[1.0, 1.0]]))
        assert (await service.http.post("/density?stream=s", json={"points": [[0, 0]]})).status_code == 200
        assert not pending.done()
        held.set()
        assert (await pending)["seq"] == [41]


async def test_a_damaged_log_is_an_error_and_never_a_fresh_stream():
    store = MemoryStore()
    async with Service(store) as service:
        await service.observe(blobs(3))
        await service.observe(blobs(3))
        await service.crash()
    del store.stored["s"].log[0]
    async with Service(store) as service:
        problem = await service.refused("POST", "/observe?stream=s", 500, "store_corrupt", json={"samples": [[1, 2]]})
        assert "4 comes after 0" in problem["detail"]


async def test_shutdown_stores_snapshots_and_ends_in_time():
    store = MemoryStore()
    async with Service(store) as service:
        await service.observe(blobs(40))
    snapshot, head = await store.load("s")
    assert snapshot.position == head


async def test_at_the_shutdown_streams_are_free_at_once_or_stored_by_how_long_they_would_take_to_replay():
    store, ended = DisturbedStore(MemoryStore()), []
    store.is_exclusive = False
    async with Service(store) as service:
        registry, hand_over = service.registry, service.registry.hand_over
        for stream, n in (("short", 1), ("long", 9), ("longer", 90), ("stored", 200)):
            for sample in blobs(n):
                await service.observe([sample.tolist()], stream)
        await registry.save(registry.sessions["stored"])

        async def noted(stream: str) -> None:
            await hand_over(stream)
            ended.append((stream, registry.worker.leases.holds(stream)))

        registry.hand_over = noted
    assert ended == [(stream, False) for stream in ("stored", "longer", "long", "short")]


async def test_a_store_that_hangs_does_not_hold_up_the_shutdown():
    store = DisturbedStore(MemoryStore())
    async with Service(store, shutdown_seconds=0.05) as service:
        await service.observe(blobs(3))
        store.before["save_snapshot"] = asyncio.Event().wait
    assert not service.app.state.service.tasks


async def test_work_that_came_before_the_shutdown_ends_and_later_work_is_refused():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["append"] = (held := asyncio.Event()).wait
        pending = asyncio.create_task(service.observe([[1.0]]))
        while not service.app.state.service.tasks:  # noqa: ASYNC110 nothing announces it
            await asyncio.sleep(0)
        stopping = asyncio.create_task(shut_down(service.app.state.service.tasks, service.registry, 10.0))
        await asyncio.sleep(0)
        await service.refused("POST", "/observe?stream=t", 503, "stopping", json={"samples": [[1.0]]})
        held.set()
        assert (await pending)["seq"] == [1]
        await stopping
        assert await snapshot_seq(service) == 1


@pytest.mark.parametrize("error", [StaleWriter("s", (0, 0), (1, 0)), StoreUnavailable("gone")])
async def test_a_snapshot_that_cannot_be_stored_loses_nothing(error):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(40))
        store.before["save_snapshot"] = raising(error)
        assert not await service.registry.save(sessions(service)["s"])
        del store.before["save_snapshot"]
        assert (await service.observe([[1.0, 1.0]]))["seq"] == [41]


async def group(service, streams):
    """Change a group of streams; give those that it found."""
    async with service.registry.changing_idle(streams) as found:
        await asyncio.sleep(0)
        return {session.stream for session in found}


async def test_groups_do_not_wait_for_each_other_for_ever():
    async with Service() as service, asyncio.timeout(5):
        for stream in "yz":
            await service.observe([[1.0]], stream)
        lock = sessions(service)["y"].lock
        await lock.acquire()
        # a closing takes the lock alone, and waits for it; when it is its turn the lock looks free
        closing = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        lock.release()
        groups = [asyncio.create_task(group(service, names)) for names in ("yz", "zy")]
        await closing
        await asyncio.sleep(0)
        lock.release()
        await asyncio.gather(*groups)
        for stream in "yz":
            await service.observe([[1.0]], stream)


async def test_a_group_leaves_out_whom_somebody_waits_for():
    async with Service() as service, asyncio.timeout(5):
        for stream in "xy":
            await service.observe([[1.0]], stream)
        lock = sessions(service)["y"].lock
        await lock.acquire()
        deleting = asyncio.create_task(service.http.delete("/streams/y"))
        while not sessions(service)["y"].users:  # noqa: ASYNC110 nothing announces it
            await asyncio.sleep(0)
        lock.release()
        assert await group(service, "xy") == {"x"}
        assert (await deleting).status_code == 204
        assert (await service.observe([[1.0]], "x"))["seq"] == [2]


async def test_a_group_that_is_cancelled_leaves_no_lock_behind():
    async with Service() as service, asyncio.timeout(5):
        for stream in "xy":
            await service.observe([[1.0]], stream)
        lock = sessions(service)["y"].lock
        await lock.acquire()
        closing = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        lock.release()
        changing = asyncio.create_task(group(service, "xy"))
        await asyncio.sleep(0)
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)
        await closing
        lock.release()
        assert [sessions(service)[stream].users for stream in "xy"] == [0, 0]
        for stream in "xy":
            await service.observe([[1.0]], stream)
