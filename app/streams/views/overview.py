"""Short descriptions of streams: from memory if they are open here, else from their snapshots."""

import asyncio

import msgspec

from app.storage import Position, Snapshot, Store, StoreCorrupt
from app.streams.log.events import UnreadableEvent
from app.streams.open.registry import Registry
from app.streams.open.state import StreamState
from app.streams.views.columns import batch_columns
from core import InvalidSnapshot


class Overview(msgspec.Struct):
    """A stream in short: n_seen and newest_time are of now, the rest as of a sample. A damaged one is not readable."""

    stream: str
    readable: bool = True
    as_of_seq: int | None = None
    n_seen: int | None = None
    ready: bool | None = None
    samples_needed: int | None = None
    threshold: float | None = None
    n_flagged: int | None = None
    incident: int | None = None
    incidents: int | None = None
    n_nodes: int | None = None
    labels: int | None = None
    true_alarms: int | None = None
    false_alarms: int | None = None
    misses: int | None = None
    newest_time: float | None = None
    silent_seconds: float | None = None


async def overview(registry: Registry, store: Store, stream: str) -> Overview | None:
    """Describe a stream without opening it; None if there is none by now."""
    state = registry.peek(stream)
    await asyncio.sleep(0)  # a snapshot may take milliseconds to read
    try:
        if state is not None:
            return summary(stream, state, state.position.seq, await newest_time(store, stream, state.position))
        loaded = await store.load(stream)
        return None if loaded is None else await closed(store, stream, *loaded)
    except (StoreCorrupt, InvalidSnapshot, UnreadableEvent):
        return Overview(stream, readable=False)


async def closed(store: Store, stream: str, snapshot: Snapshot, head: Position) -> Overview:
    """Describe a stream that is not in memory, or that another worker writes."""
    state = StreamState.from_bytes(snapshot.body, snapshot.position)
    return summary(stream, state, head.seq, await newest_time(store, stream, head))


def summary(stream: str, state: StreamState, newest_seq: int, time: float | None) -> Overview:
    """Describe a stream by its state; its log may have grown since."""
    detector, costs = state.detector, state.detector.costs()
    return Overview(
        stream,
        as_of_seq=detector.next_seq - 1,
        n_seen=detector.n_seen + newest_seq - state.position.seq,
        ready=detector.ready,
        samples_needed=detector.samples_needed,
        threshold=detector.threshold,
        n_flagged=detector.n_flagged,
        incident=detector.incident or None,
        incidents=detector.n_incidents,
        n_nodes=detector.n_nodes,
        labels=costs.labels,
        true_alarms=costs.true_alarms,
        false_alarms=costs.false_alarms,
        misses=costs.misses,
        newest_time=time,
    )


async def newest_time(store: Store, stream: str, head: Position) -> float | None:
    """Give the time of the newest sample in the log."""
    entries = await store.entries(stream, Position.before(head.seq), 1)
    return float(batch_columns(entries).time[-1]) if entries and entries[0].first_seq is not None else None
