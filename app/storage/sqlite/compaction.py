"""What moves a log into blocks and trims it, as plain functions of a connection inside a transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app.storage.blocks import StoredBlock, is_repeated
from app.storage.errors import StaleWriter
from app.storage.log import START, Entry, Position
from app.storage.sqlite.rows import (
    BLOCK_COLUMNS,
    as_entry,
    find_stream,
    packed_to,
    read_body,
    read_entries,
    read_last_block,
    snapshot_position,
)
from app.storage.sqlite.schema import PACKED_VERSION, read_number

# Steps this small keep other streams' appends from waiting for a big clean-up.
STEP_ENTRIES = 256
STEP_SAMPLES = 5_000


def trim(connection: sqlite3.Connection, stream: str, last: Position, *, keep_labels: bool = False) -> bool:
    """Drop a block or some entries up to a position, with their labels or without; True while there are more."""
    number, _ = find_stream(connection, stream)
    last = min(last, *(snapshot_position(connection, table, number) or START for table in ("snapshots", "bases")))
    if _remove_packed(connection, number):
        return True
    newest = _drop_block(connection, number, last) or _remove_entries(connection, number, last)
    if newest is not None and not keep_labels:
        connection.execute("DELETE FROM labels WHERE stream = ? AND seq <= ?", (number, newest.seq))
    return newest is not None


def _drop_block(connection: sqlite3.Connection, number: int, last: Position) -> Position | None:
    """Drop the oldest block if it ends by a position, and give its end; with the last one the index of its ids."""
    row = connection.execute(
        "SELECT rowid, seq, sub, entries, length(body) FROM blocks WHERE stream = ? AND (seq, sub) <= (?, ?) "
        "ORDER BY seq, sub LIMIT 1",
        (number, *last),
    ).fetchone()
    if row is None:
        return None
    rowid, seq, sub, n_entries, size_bytes = row
    connection.execute("DELETE FROM blocks WHERE rowid = ?", (rowid,))
    if packed_to(connection, number) is None:
        connection.execute("DELETE FROM buckets WHERE stream = ?", (number,))
    _count(connection, number, -n_entries, -size_bytes)
    return Position(seq, sub)


def put_block(connection: sqlite3.Connection, stream: str, block: StoredBlock, buckets: Mapping[int, bytes]) -> None:
    """Put a block in the place of its entries, which are left to `remove_packed`."""
    number, head = find_stream(connection, stream)
    last = read_last_block(connection, number)
    oldest = read_entries(connection, number, START if last is None else last.position, 1)
    if is_repeated(stream, block, last, oldest[0] if oldest else None):
        return
    if read_body(connection, number, block.position) is None:
        raise StaleWriter(stream, block.position, head)
    connection.execute(
        f"INSERT INTO blocks (stream, {BLOCK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 (names of columns)
        (number, *block.position, *block.after, block.n_entries, block.body),
    )
    rows = ((number, bucket, body) for bucket, body in buckets.items())
    connection.executemany("REPLACE INTO buckets VALUES (?, ?, ?)", rows)
    _count(connection, number, block.n_entries, len(block.body))
    if read_number(connection, "user_version") < PACKED_VERSION:
        connection.execute(f"PRAGMA user_version = {PACKED_VERSION}")


def remove_packed(connection: sqlite3.Connection, stream: str) -> bool:
    """Remove some of the entries that a block holds; True while there are more."""
    return _remove_packed(connection, find_stream(connection, stream)[0])


def _remove_packed(connection: sqlite3.Connection, number: int) -> bool:
    end = packed_to(connection, number)
    return end is not None and _remove_entries(connection, number, end) is not None


def _remove_entries(connection: sqlite3.Connection, number: int, last: Position) -> Position | None:
    """Remove some of the entries up to a position, with their ids, and give the newest of them."""
    oldest = connection.execute(
        "SELECT seq, sub, x'', first_seq, ids, length(body) FROM log WHERE stream = ? AND (seq, sub) <= (?, ?) "
        "ORDER BY seq, sub LIMIT ?",
        (number, *last, STEP_ENTRIES),
    )
    removed = list(_take_step(oldest))
    if not removed:
        return None
    newest = removed[-1][0].position
    connection.execute("DELETE FROM log WHERE stream = ? AND (seq, sub) <= (?, ?)", (number, *newest))
    connection.executemany(
        "DELETE FROM ids WHERE stream = ? AND id = ? AND seq = ?",  # a newer sample may bear the same id
        ((number, name, seq) for entry, _ in removed for name, seq in entry.named_samples()),
    )
    _count(connection, number, -len(removed), -sum(size_bytes for _, size_bytes in removed))
    return newest


def _count(connection: sqlite3.Connection, number: int, n_entries: int, size_bytes: int) -> None:
    """Count entries, and bytes, that a log has gained."""
    connection.execute(
        "UPDATE streams SET log_entries = log_entries + ?, log_bytes = log_bytes + ? WHERE number = ?",
        (n_entries, size_bytes, number),
    )


def _take_step(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Entry, int]]:
    """Take entries, each with the size of its body, until they hold STEP_SAMPLES samples."""
    samples = 0
    for *columns, size_bytes in rows:
        entry = as_entry(*columns)
        yield entry, size_bytes
        samples += entry.n_samples
        if samples >= STEP_SAMPLES:
            return
