"""Reads the replies of the scripts."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from app.storage.blocks import StoredBlock
from app.storage.errors import Fenced, StaleWriter, StoreCorrupt, StreamNotFound
from app.storage.interface import Remains
from app.storage.log import Entry, Position, Snapshot, find_gap
from app.storage.redis.keys import TYPES, StreamKeys, stream_keys

COUNTED = ("log", "id index", "label index", "list of blocks", "id index of blocks")


def status(reply: list[Any]) -> str:
    """Give the first word of a reply."""
    status: str = reply[0].decode()
    return status


def accept(reply: list[Any], stream: str, expected: Position, token: int = 0) -> None:
    """Raise the error of a script that refused."""
    match status(reply):
        case "missing":
            raise StreamNotFound(stream)
        case "stale":
            raise StaleWriter(stream, expected, Position.parse(reply[1]))
        case "fenced":
            raise Fenced(stream, token, int(reply[1]))
        case "corrupt":
            raise StoreCorrupt(stream, "its head is missing, though other parts of it are there")


def as_entry(row: list[Any]) -> Entry:
    """Make an entry of a row of the log."""
    _, body, _, first, _, packed = row[1]
    ids = msgspec.msgpack.decode(packed, type=tuple[str, ...]) if packed else ()
    return Entry(Position.parse(row[0]), body, int(first) if first else None, ids)


def as_block(row: list[Any]) -> StoredBlock:
    """Make a block of its row."""
    _, body, _, after, _, n_entries = row[1]
    return StoredBlock(Position.parse(after), Position.parse(row[0]), int(n_entries), body)


def as_part(block: list[Any] | None, batch: list[Any] | None) -> StoredBlock | Entry:
    """Make what one of the two rows holds."""
    if block is not None:
        return as_block(block)
    assert batch is not None
    return as_entry(batch)


def checked_snapshot(
    stream: str,
    head: bytes,
    position: bytes,
    body: bytes | None,
    after: bytes,
    begin: bytes,
    first: Any,
    last: bytes | None,
    *counts: Any,
) -> tuple[Snapshot, Position]:
    """Give the snapshot and the head; StoreCorrupt if anything is missing between them."""
    if body is None:
        raise StoreCorrupt(stream, f"the snapshot at {position.decode()} is missing, its log is at {head.decode()}")
    snapshot = Snapshot(Position.parse(position), body)
    newest = None if last is None else Position.parse(last)
    # the block that holds what comes after the snapshot, if one does, must reach back so far
    continued = Position.parse(begin) if Position.parse(after) <= snapshot.position else snapshot.position
    gap = find_gap(continued, Position.parse(head), first and as_entry(first), newest)
    if gap or (gap := _find_loss(counts)):
        raise StoreCorrupt(stream, gap)
    return snapshot, Position.parse(head)


def _find_loss(counts: Sequence[Any]) -> str | None:
    """Compare the expected counts with the actual ones: an evicted key is empty, and later writes refill it in part."""
    for name, expected, actual in zip(COUNTED, counts[::2], counts[1::2], strict=True):
        if int(expected or 0) != int(actual or 0):
            return f"the {name} has {int(actual or 0)} entries where {int(expected or 0)} were written"
    return None


def foreign_keys(stream: str, types: Sequence[str]) -> list[str]:
    """Name the keys of a stream that have another type than they must."""
    of_keys = zip(stream_keys(stream), types, TYPES, strict=True)
    return [
        f"its key {key} is of the type {found}, not {wanted}"
        for key, found, wanted in of_keys
        if found not in (wanted, "none")
    ]


def remains_of(
    stream: str, found: list[bytes], meta: Any, body: Any, base: Any, last: bytes | None, *actual: Any
) -> Remains | None:
    """Say what is left of a stream; None if nothing is."""
    types = StreamKeys(*(str(kind, "ascii") for kind in found))
    others = ("lease", "incidents", "files", "file_ids", "blocks", "buckets")
    if set(types._replace(**dict.fromkeys(others, "none"))) == {"none"}:
        return None
    head, at, based, *expected = meta or [None, b"0-0", b"0-0", *(None for _ in COUNTED)]
    faults = foreign_keys(stream, types)
    if head is None:
        faults.append("its head is missing")
    elif loss := _find_loss([*chain.from_iterable(zip(expected, actual, strict=True))]):
        faults.append(loss)
    known = head or last
    return Remains(Position.parse(known) if known else None, _snapshot(at, body), _snapshot(based, base), tuple(faults))


def _snapshot(position: bytes | None, body: bytes | None) -> Snapshot | None:
    return None if position is None or body is None else Snapshot(Position.parse(position), body)
