"""When a snapshot is due: once a replay of what came after the last one would take long."""

import logging

import pytest

from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.open.snapshot_writer import BUSY_SECONDS, WORTH
from app.streams.state.state import EVENT_SECONDS, StreamState
from tests.app.harness import FakeClock, Service, blobs

NEVER = 1e9


def state_of(service: Service, stream: str = "s") -> StreamState:
    state = service.registry.peek(stream)
    assert state is not None
    return state


def session_of(service: Service, stream: str = "s"):
    return service.registry.sessions[stream]


async def is_stored(service: Service, stream: str = "s") -> bool:
    """Give the background its turn, and tell whether a snapshot holds everything."""
    await service.snapshotter.save_due()
    return not state_of(service, stream).unsaved_events


async def costing(service: Service, seconds: float, stream: str = "s") -> None:
    """Observe a sample, as if the engine had taken this CPU time for what no snapshot holds."""
    await service.observe([[1.0, 2.0]], stream)
    state_of(service, stream).unsaved_work = seconds
    session_of(service, stream).snapshots.note_change(state_of(service, stream))


async def test_a_snapshot_is_due_when_a_replay_takes_long(service):
    await costing(service, 0.0049)
    assert not await is_stored(service)
    await costing(service, 0.0051)
    assert await is_stored(service)


async def test_how_long_is_set():
    async with Service(snapshot_replay_seconds=0.1) as service:
        await costing(service, 0.09)
        assert not await is_stored(service)
        await costing(service, 0.11)
        assert await is_stored(service)


async def test_a_busy_stream_is_stored_when_a_replay_takes_much_longer_than_writing(service, monkeypatch):
    times = iter([0.0, 0.001])
    await costing(service, 0.01)
    monkeypatch.setattr("app.streams.open.snapshot_writer.thread_time", lambda: next(times))
    assert await is_stored(service)
    await costing(service, 0.99 * WORTH * 0.001)
    assert not await is_stored(service)
    times = iter([0.0, 0.001])
    await costing(service, 1.01 * WORTH * 0.001)
    assert await is_stored(service)


async def test_one_that_is_not_busy_is_stored_sooner(service, monkeypatch):
    times = iter([0.0, 9.0, 0.0, 9.0])
    await costing(service, 0.01)
    monkeypatch.setattr("app.streams.open.snapshot_writer.thread_time", lambda: next(times))
    assert await is_stored(service)
    await costing(service, 0.01)
    service.clock.advance(BUSY_SECONDS - 1)
    assert not await is_stored(service)
    assert await service.metric("itan_snapshot_overdue_seconds") == 0, "it waits on purpose"
    service.clock.advance(2)
    assert await is_stored(service)


async def test_a_snapshot_that_cannot_be_stored_is_overdue_from_when_it_was_due(service, monkeypatch):
    times = iter([0.0, 9.0])
    await costing(service, 0.01)
    monkeypatch.setattr("app.streams.open.snapshot_writer.thread_time", lambda: next(times))
    assert await is_stored(service)
    monkeypatch.undo()
    await costing(service, 0.01)

    async def refuse(*_: object, **__: object) -> None:
        raise StoreUnavailable("test")

    monkeypatch.setattr(service.store, "save_snapshot", refuse)
    service.clock.advance(BUSY_SECONDS + 1)
    assert not await is_stored(service)
    service.clock.advance(70)
    assert not await is_stored(service)
    assert await service.metric("itan_snapshot_overdue_seconds") == 70
    monkeypatch.undo()
    assert await is_stored(service)
    assert await service.metric("itan_snapshot_overdue_seconds") == 0


async def test_no_change_waits_for_ever(service):
    await costing(service, 0.0)
    service.clock.advance(6 * 3600 - 1)
    assert not await is_stored(service)
    service.clock.advance(2)
    assert await is_stored(service)


async def test_no_change_waits_for_long_beside_a_short_horizon():
    async with Service(label_horizon_seconds=200.0) as service:
        await costing(service, 0.0)
        service.clock.advance(9)
        assert not await is_stored(service)
        service.clock.advance(2)
        assert await is_stored(service)


async def test_a_log_is_trimmed_in_time_though_a_replay_takes_no_time():
    async with Service(label_horizon_seconds=3600.0, snapshot_replay_seconds=NEVER) as service:
        for _ in range(3 * 60):
            await service.observe([[1.0, 2.0]])
            service.clock.advance(60)
            await service.snapshotter.save_due()
        described = await service.accepted("GET", "/streams/s")
        assert described["n_seen"] - described["oldest_seq"] < 1.25 * 60


async def test_samples_labels_and_samples_of_many_streams_at_once_cost(service):
    await service.observe(blobs(60), "a")
    await service.observe(blobs(60), "b")
    spent = state_of(service, "a").unsaved_work
    assert spent > 0
    await service.feedback({"seq": 50, "anomaly": True}, stream="a")
    assert state_of(service, "a").unsaved_work > spent
    spent = {stream: state_of(service, stream).unsaved_work for stream in "ab"}
    await service.accepted("POST", "/ingest", json=[{"stream": stream, "sample": [1.0, 2.0]} for stream in "ab"])
    for stream in "ab":
        assert state_of(service, stream).detector.n_seen == 61
        assert state_of(service, stream).unsaved_work > spent[stream]


async def test_an_event_costs_at_least_its_reading(service):
    await service.observe(blobs(1))
    state = state_of(service)
    state.unsaved_work, state.unsaved_events = 0.0, 7
    assert state.replay_seconds == pytest.approx(7 * EVENT_SECONDS)


async def test_what_is_read_back_costs_again():
    store, clock = MemoryStore(), FakeClock()
    service = Service(store, clock, snapshot_replay_seconds=NEVER)
    await service.__aenter__()
    for sample in blobs(90):
        await service.observe([sample.tolist()])
    await service.crash()
    async with Service(store, clock) as service:
        await service.feedback({"seq": 80, "anomaly": True}, query="&dry_run=true")
        state = state_of(service)
        assert (state.unsaved_events, state.replay_seconds >= 90 * EVENT_SECONDS) == (90, True)
        assert state.unsaved_work > 0
        assert await is_stored(service)
        assert (state.unsaved_work, state.replay_seconds) == (0.0, 0.0)


async def test_nothing_is_due_on_a_worker_that_lost_the_stream(service):
    await costing(service, 1.0)
    assert service.registry.worker.unsaved.candidates(0.0) == ["s"]
    session_of(service).forget()
    assert service.registry.worker.unsaved.candidates(1e9) == []


async def test_an_idle_stream_is_stored_when_it_is_closed(service):
    await costing(service, 0.0)
    service.clock.advance(3601)
    await service.registry.close_unused()
    assert not service.registry.sessions
    assert service.store.stored["s"].snapshot.position.seq == 1


async def test_answers_and_states_do_not_depend_on_when_snapshots_are_stored(caplog):
    caplog.set_level(logging.WARNING)
    exports, X = [], blobs(120)
    for seconds in (1e-9, 0.005, NEVER):
        store, clock = MemoryStore(), FakeClock()
        for begin in range(0, 120, 40):
            service = Service(store, clock, snapshot_replay_seconds=seconds)
            await service.__aenter__()
            for sample in X[begin : begin + 40]:
                await service.observe([sample.tolist()])
                await service.snapshotter.save_due()
            await service.crash()
        async with Service(store, clock) as service:
            await service.feedback({"seq": 80, "anomaly": True}, query="&dry_run=true")
            exports.append((await service.accepted("GET", "/streams/s/history?from=1"))["score"])
            exports.append(state_of(service).detector.to_bytes())
    assert exports[:2] == exports[2:4] == exports[4:6]
    assert "differs" not in caplog.text
