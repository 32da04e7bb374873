"""Finds the states that a stream's log leads on from, beside its newest snapshot."""

import json
import struct
from typing import Any

from app.storage import START, Position, Remains, Snapshot, Store, StoreCorrupt
from app.streams.open.state import StreamState, new_state
from core import Detector, DetectorConfig, InvalidConfig, InvalidSnapshot
from core.snapshot import MAGIC

LENGTH = struct.Struct("<I")


async def beginnings(store: Store, stream: str, remains: Remains) -> list[StreamState]:
    """Give the older snapshot, if it can be read, and the state before the first sample, if the log goes back to it."""
    found: list[StreamState] = []
    if remains.base is not None and (base := read_or_none(remains.base)) is not None:
        found.append(base)
    if (birth := await find_birth(store, stream, remains)) is not None:
        found.append(birth)
    return found


def read_or_none(snapshot: Snapshot) -> StreamState | None:
    """Read a snapshot that may be damaged."""
    try:
        return StreamState.from_bytes(snapshot.body, snapshot.position)
    except InvalidSnapshot:
        return None


async def find_birth(store: Store, stream: str, remains: Remains) -> StreamState | None:
    """Make the state that a stream began with, by the config that is still readable in a damaged snapshot."""
    try:
        first = await store.entries(stream, START, 1)
    except StoreCorrupt:
        return None
    if not first or (first_seq := first[0].first_seq) is None:
        return None
    for snapshot in (remains.snapshot, remains.base):
        meta = {} if snapshot is None else read_meta(snapshot.body)
        if snapshot is not None and meta.get("first_seq") == first_seq and isinstance(meta.get("config"), dict):
            # a stream that was reset begins one place further
            is_blank = snapshot.position.seq < first_seq
            return begin(meta["config"], first_seq, snapshot.position if is_blank else Position(first_seq - 1, 0))
    return None


def begin(config: dict[str, Any], first_seq: int, position: Position) -> StreamState | None:
    """Begin a stream; None for a config that is damaged too."""
    try:
        detector = Detector(DetectorConfig.from_dict(config), first_seq=first_seq)
    except (InvalidConfig, TypeError):
        return None
    return new_state(detector, position)


def read_meta(body: bytes) -> dict[str, Any]:
    """Read what the engine's header says, whatever comes behind it: a replay shows whether it is right.

    The engine is an array of the snapshot, and has a header of its own.
    """
    start = body.find(MAGIC, len(MAGIC)) + len(MAGIC)
    if start < 2 * len(MAGIC) or len(body) < start + LENGTH.size:
        return {}
    (length,) = LENGTH.unpack_from(body, start)
    try:
        header = json.loads(body[start + LENGTH.size : start + LENGTH.size + length])
    except (ValueError, RecursionError):
        return {}
    meta = header.get("meta") if isinstance(header, dict) else None
    return meta if isinstance(meta, dict) else {}
