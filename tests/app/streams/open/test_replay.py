"""Replays of a log: short batches are observed together, and nothing of it shows."""

import msgspec
import numpy as np
import pytest

from app.storage import Entry, Position, StoreCorrupt
from app.storage.memory import MemoryStore
from app.streams.log.events import BatchEvent, UnreadableEvent, read_event, read_records
from app.streams.log.log import Log
from app.streams.open.replay import Difference, replay
from app.streams.slices import FIRST_ROWS
from app.streams.state.state import StreamState
from core import Detector, Records
from tests.app.harness import NOW, Service, blobs


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many samples were observed at once."""
    counts: list[int] = []
    real = Detector.observe

    def observe(self: Detector, X, *given, **more):
        counts.append(len(X))
        return real(self, X, *given, **more)

    monkeypatch.setattr(Detector, "observe", observe)
    return counts


async def logged(*batches: np.ndarray, **more: object) -> tuple[MemoryStore, bytes]:
    """Give a store whose log nothing of is in a snapshot, and the state after it."""
    store = MemoryStore()
    service = Service(store, snapshot_replay_seconds=1e9, **more)
    await service.__aenter__()
    for batch in batches:
        await service.observe(batch)
    written = service.registry.peek("s").detector.to_bytes()
    await service.crash()
    return store, written


async def replayed(store: MemoryStore, until: int | None = None) -> tuple[StreamState, list[Difference]]:
    """Replay a log from its beginning to a sample, or to its end."""
    snapshot, head = await store.load("s")
    state, found = StreamState.from_bytes(snapshot.body, snapshot.position), list[Difference]()
    await replay(Log(store, "s"), state, head if until is None else Position(until, 0), found.append)
    return state, found


async def test_samples_that_came_one_by_one_are_observed_together(observed):
    store, written = await logged(*np.split(blobs(100), 100))
    observed.clear()
    state, found = await replayed(store)
    assert (state.detector.to_bytes(), found) == (written, [])
    assert (state.position, state.unsaved_events) == (Position(100, 0), 100)
    assert max(observed) == FIRST_ROWS
    assert sum(observed) == 100
    assert len(observed) <= 100 / FIRST_ROWS + 2 * 2  # two pages of 64


async def test_a_replay_ends_where_it_should():
    store, _ = await logged(*np.split(blobs(60), 60))
    _, written = await logged(*np.split(blobs(60)[:37], 37))
    state, _ = await replayed(store, until=37)
    assert (state.detector.to_bytes(), state.detector.next_seq, state.position) == (written, 38, Position(37, 0))


async def test_batches_labels_times_windows_and_new_configs_follow_each_other():
    store, rng = MemoryStore(), np.random.default_rng(3)
    service = Service(store, snapshot_replay_seconds=1e9)
    await service.__aenter__()
    X, begin = blobs(900), 0
    for number in range(90):
        size = int(rng.choice([1, 1, 1, 2, 5, 40]))
        sent = X[begin : begin + size]
        begin += len(sent)
        times = {"timestamps": [NOW + begin] * len(sent)} if rng.random() < 0.3 else {}
        await service.observe(sent, **times)
        if rng.random() < 0.15:
            await service.feedback({"seq": int(rng.integers(1, begin + 1)), "anomaly": bool(rng.random() < 0.5)})
        if number == 30:
            await service.accepted("PATCH", "/streams/s", json={"expected_anomaly_rate": 0.04})
        if number == 50:
            window = {"streams": "s", "from": NOW, "to": NOW + 10**6}
            await service.accepted("PUT", "/windows/w", json=window)
            service.clock.advance(20)
        if number == 60:
            assert (await service.http.delete("/windows/w")).status_code == 204
            service.clock.advance(20)
    described = service.registry.peek("s")
    assert described.detector.n_held_out
    assert described.detector.next_seq == begin + 1
    await service.crash()
    state, found = await replayed(store)
    assert found == []
    assert state.detector.to_bytes() == described.detector.to_bytes()
    assert (state.position, state.newest_timestamp) == (described.position, described.newest_timestamp)
    assert (state.incidents, state.recent) == (described.incidents, described.recent)


async def test_each_batch_that_differs_is_told():
    store, _ = await logged(*np.split(blobs(60), 60))
    for place in (41, 43):
        alter(store, place, "score", 0.5)
    state, found = await replayed(store)
    assert [difference.logged.seq.tolist() for difference in found] == [[42], [44]]
    assert [difference.position.seq for difference in found] == [42, 44]
    assert state.position == Position(60, 0)


async def test_what_is_no_event_ends_a_replay_after_the_events_before():
    store, _ = await logged(*np.split(blobs(30), 30))
    before = (await replayed(store, until=19))[0].detector.to_bytes()
    store.stored["s"].log[19] = Entry(Position(20, 0), b"nothing", 20)
    await ends_after(19, before, store, UnreadableEvent)


async def test_what_is_no_sample_ends_a_replay_after_the_events_before():
    store, _ = await logged(*np.split(blobs(30), 30))
    before = (await replayed(store, until=19))[0].detector.to_bytes()
    alter(store, 19, "x", np.inf)
    await ends_after(19, before, store, UnreadableEvent)


async def test_samples_that_are_missing_end_a_replay_after_the_events_before():
    store, _ = await logged(*np.split(blobs(30), 30))
    before = (await replayed(store, until=19))[0].detector.to_bytes()
    alter(store, 19, "seq", 1)
    await ends_after(19, before, store, UnreadableEvent)


async def test_a_gap_ends_a_replay_after_the_events_before():
    store, _ = await logged(*np.split(blobs(30), 30))
    before = (await replayed(store, until=19))[0].detector.to_bytes()
    real = store.entries

    async def entries(*given):
        return [entry for entry in await real(*given) if entry.position != Position(20, 0)]

    store.entries = entries
    await ends_after(19, before, store, StoreCorrupt)


def alter(store: MemoryStore, place: int, column: str, change: float) -> None:
    """Add to a number of the batch at a place of the log."""
    log = store.stored["s"].log
    event, entry = read_event(log[place].body), log[place]
    assert isinstance(event, BatchEvent)
    rows = read_records(event.records).rows.copy()
    rows[column] += change
    body = msgspec.msgpack.encode(msgspec.structs.replace(event, records=Records(rows).to_bytes()))
    log[place] = Entry(entry.position, body, entry.first_seq, entry.ids)


async def ends_after(seq: int, before: bytes, store: MemoryStore, error: type[Exception]) -> None:
    snapshot = store.stored["s"].snapshot
    state = StreamState.from_bytes(snapshot.body, snapshot.position)
    with pytest.raises(error):
        await replay(Log(store, "s"), state, Position(30, 0), lambda _: None)
    assert (state.position, state.detector.to_bytes()) == (Position(seq, 0), before)
