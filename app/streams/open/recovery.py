"""Finds states to replay a log from when the newest snapshot is damaged."""

from contextlib import suppress
from typing import Any

from app.storage import START, Position, Remains, Snapshot, StoreCorrupt
from app.streams.log.events import ConfigEvent, UnreadableEvent, read_event
from app.streams.log.log import Log
from app.streams.state.state import StreamState, new_state
from core import Detector, DetectorConfig, InvalidConfig, InvalidSnapshot, readable_metas


async def recovery_points(log: Log, remains: Remains) -> list[StreamState]:
    """Give the older snapshot, if readable, and the state before the first sample, if the log goes back so far."""
    found: list[StreamState] = []
    if remains.base is not None and (base := read_or_none(remains.base)) is not None:
        found.append(base)
    if (first := await find_first_state(log, remains)) is not None:
        found.append(first)
    return found


def read_or_none(snapshot: Snapshot) -> StreamState | None:
    """Read a snapshot that may be damaged."""
    try:
        return StreamState.from_bytes(snapshot.body, snapshot.position)
    except InvalidSnapshot:
        return None


async def find_first_state(log: Log, remains: Remains) -> StreamState | None:
    """Make the state that a stream began with, from the config that can still be read in a damaged snapshot."""
    try:
        first = await log.kept.entries(START, 1)
    except StoreCorrupt:
        return None
    if not first:
        return None
    start = first[0].after
    first_seq = start.seq + 1
    for snapshot in filter(None, (remains.snapshot, remains.base)):
        is_blank = snapshot.position.seq < first_seq  # after a reset a stream begins one place further
        position = snapshot.position if is_blank else start
        for meta in readable_metas(snapshot.body):
            # the model that a warm stream began with is gone
            if meta.get("first_seq") == first_seq and isinstance(meta.get("config"), dict) and "warm" not in meta:
                config = meta["config"] | await values_before(log, position)
                return begin(config, first_seq, position)  # a replay shows whether it is right
    return None


async def values_before(log: Log, position: Position) -> dict[str, Any]:
    """Give the values at a position of those fields of the config that are changed after it."""
    found: dict[str, Any] = {}
    with suppress(StoreCorrupt, UnreadableEvent):  # the replay will say so
        async for entries in log.pages(position):
            for event in (read_event(entry.body) for entry in entries if entry.first_seq is None):
                if isinstance(event, ConfigEvent):
                    found = dict(event.before) | found
    return found


def begin(config: dict[str, Any], first_seq: int, position: Position) -> StreamState | None:
    """Begin a stream; None if the config is damaged too."""
    try:
        detector = Detector(DetectorConfig.from_dict(config), first_seq=first_seq)
    except (InvalidConfig, TypeError):
        return None
    return new_state(detector, position)
