"""Rows of the tables, as objects."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from app.storage.blocks import StoredBlock
from app.storage.errors import StreamNotFound
from app.storage.log import Entry, Position, Snapshot
from app.storage.pages import take_page

ENTRY_COLUMNS = "seq, sub, body, first_seq, ids"
BLOCK_COLUMNS = "seq, sub, after_seq, after_sub, entries, body"
# SQLite's oldest limit on the number of variables in a statement is 999.
VARIABLES = 900


def number_of(connection: sqlite3.Connection, stream: str) -> int:
    """Give the stream's number; 0, which no stream has, if there is no such stream."""
    row = connection.execute("SELECT number FROM streams WHERE name = ?", (stream,)).fetchone()
    return row[0] if row else 0


def find_stream(connection: sqlite3.Connection, stream: str) -> tuple[int, Position]:
    """Give the stream's number and head. Raises StreamNotFound."""
    row = connection.execute("SELECT number, head_seq, head_sub FROM streams WHERE name = ?", (stream,)).fetchone()
    if row is None:
        raise StreamNotFound(stream)
    return row[0], Position(row[1], row[2])


def snapshot_position(connection: sqlite3.Connection, table: str, number: int) -> Position | None:
    """Give the position of a stream's snapshot, from the table snapshots or bases."""
    query = f"SELECT seq, sub FROM {table} WHERE stream = ?"  # noqa: S608 (names from this file)
    row = connection.execute(query, (number,)).fetchone()
    return row and Position(*row)


def read_snapshot(connection: sqlite3.Connection, table: str, number: int) -> Snapshot | None:
    """Read a stream's snapshot, from the table snapshots or bases."""
    query = f"SELECT seq, sub, body FROM {table} WHERE stream = ?"  # noqa: S608 (names from this file)
    row = connection.execute(query, (number,)).fetchone()
    return row and Snapshot(Position(row[0], row[1]), row[2])


def read_body(connection: sqlite3.Connection, number: int, position: Position) -> bytes | None:
    """Read the body of an entry."""
    key = (number, *position)
    row = connection.execute("SELECT body FROM log WHERE stream = ? AND seq = ? AND sub = ?", key).fetchone()
    return row[0] if row else None


def read_entries(connection: sqlite3.Connection, number: int, after: Position, limit: int) -> list[Entry]:
    """Read a page of a stream's log."""
    rows = connection.execute(
        f"SELECT {ENTRY_COLUMNS} FROM log WHERE stream = ? AND (seq, sub) > (?, ?) "  # noqa: S608 (names of columns)
        "ORDER BY seq, sub LIMIT ?",
        (number, *after, limit),
    )
    return take_page(as_entry(*row) for row in rows)


def read_block(connection: sqlite3.Connection, number: int, after: Position) -> StoredBlock | None:
    """Read the block that holds the first entry after a position, if a block does."""
    return _one_block(connection, "AND (seq, sub) > (?, ?) ORDER BY seq, sub", number, *after)


def read_last_block(connection: sqlite3.Connection, number: int) -> StoredBlock | None:
    """Read the newest block."""
    return _one_block(connection, "ORDER BY seq DESC, sub DESC", number)


def _one_block(connection: sqlite3.Connection, which: str, *given: int) -> StoredBlock | None:
    query = f"SELECT {BLOCK_COLUMNS} FROM blocks WHERE stream = ? {which} LIMIT 1"  # noqa: S608 (text above)
    row = connection.execute(query, given).fetchone()
    return row and StoredBlock(Position(row[2], row[3]), Position(row[0], row[1]), row[4], row[5])


def packed_to(connection: sqlite3.Connection, number: int) -> Position | None:
    """Give where the newest block ends."""
    query = "SELECT seq, sub FROM blocks WHERE stream = ? ORDER BY seq DESC, sub DESC LIMIT 1"
    row = connection.execute(query, (number,)).fetchone()
    return row and Position(*row)


def as_entry(seq: int, sub: int, body: bytes, first_seq: int | None, packed: bytes | None) -> Entry:
    """Make an entry of a row's columns."""
    ids = msgspec.msgpack.decode(packed, type=tuple[str, ...]) if packed else ()
    return Entry(Position(seq, sub), body, first_seq, ids)


def select_among(
    connection: sqlite3.Connection, select: str, stream: str, values: Sequence[object]
) -> Iterator[tuple[Any, ...]]:
    """Select the rows of a stream whose last column is among the values, part by part."""
    number, remaining = number_of(connection, stream), iter(values)
    while part := list(islice(remaining, VARIABLES)):
        marks = ", ".join("?" * len(part))
        yield from connection.execute(f"{select} ({marks})", (number, *part))
