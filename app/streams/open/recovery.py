"""Finds states to replay a log from when the newest snapshot is damaged."""

from typing import Any

from app.storage import START, Position, Remains, Snapshot, Store, StoreCorrupt
from app.streams.open.state import StreamState, new_state
from core import Detector, DetectorConfig, InvalidConfig, InvalidSnapshot, readable_metas


async def recovery_points(store: Store, stream: str, remains: Remains) -> list[StreamState]:
    """Give the older snapshot, if readable, and the state before the first sample, if the log goes back so far."""
    found: list[StreamState] = []
    if remains.base is not None and (base := read_or_none(remains.base)) is not None:
        found.append(base)
    if (first := await find_first_state(store, stream, remains)) is not None:
        found.append(first)
    return found


def read_or_none(snapshot: Snapshot) -> StreamState | None:
    """Read a snapshot that may be damaged."""
    try:
        return StreamState.from_bytes(snapshot.body, snapshot.position)
    except InvalidSnapshot:
        return None


async def find_first_state(store: Store, stream: str, remains: Remains) -> StreamState | None:
    """Make the state that a stream began with, from the config that can still be read in a damaged snapshot."""
    try:
        first = await store.entries(stream, START, 1)
    except StoreCorrupt:
        return None
    if not first or (first_seq := first[0].first_seq) is None:
        return None
    for snapshot in filter(None, (remains.snapshot, remains.base)):
        is_blank = snapshot.position.seq < first_seq  # after a reset a stream begins one place further
        position = snapshot.position if is_blank else Position(first_seq - 1, 0)
        for meta in readable_metas(snapshot.body):
            if meta.get("first_seq") == first_seq and isinstance(meta.get("config"), dict):
                return begin(meta["config"], first_seq, position)  # a replay shows whether it is right
    return None


def begin(config: dict[str, Any], first_seq: int, position: Position) -> StreamState | None:
    """Begin a stream; None if the config is damaged too."""
    try:
        detector = Detector(DetectorConfig.from_dict(config), first_seq=first_seq)
    except (InvalidConfig, TypeError):
        return None
    return new_state(detector, position)
