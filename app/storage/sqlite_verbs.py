"""What the SQLite store does, as plain functions of a connection inside a transaction."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import time
from typing import Any

import msgspec

from app.storage.base import (
    NO_BOUNDS,
    START,
    Bound,
    Entry,
    Position,
    Remains,
    Silence,
    Snapshot,
    StaleWriter,
    StoreCorrupt,
    StreamNotFound,
    StreamSize,
    TooManyStreams,
    base_is_due,
    collect_batches,
    find_gap,
    take_page,
)

# Steps this small keep other streams' appends from waiting for a big clean-up.
STEP_ENTRIES = 256
STEP_ROWS = 5_000
# SQLite's oldest limit on the number of variables in a statement is 999.
VARIABLES = 900

ENTRY_COLUMNS = "seq, sub, body, first_seq, ids"

# Files of the same version may lack this table: it came later.
BASES = """
CREATE TABLE IF NOT EXISTS bases (
    stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, sub INTEGER NOT NULL, body BLOB NOT NULL);
"""
SCHEMA = f"""{BASES}
CREATE TABLE streams (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    head_seq INTEGER NOT NULL, head_sub INTEGER NOT NULL, log_entries INTEGER NOT NULL, log_bytes INTEGER NOT NULL,
    changed_at REAL NOT NULL DEFAULT 0);
CREATE TABLE snapshots (
    stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, sub INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE log (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, sub INTEGER NOT NULL,
    first_seq INTEGER, ids BLOB, body BLOB NOT NULL, PRIMARY KEY (stream, seq, sub));
CREATE TABLE ids (stream INTEGER, id TEXT, seq INTEGER NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
CREATE TABLE labels (stream INTEGER, seq INTEGER, body BLOB NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
-- Numbers of streams that are gone but whose rows are still to be removed, a few at a time.
CREATE TABLE doomed (stream INTEGER PRIMARY KEY);
"""

# How many streams there are, kept by the connection that writes: to count a hundred thousand takes milliseconds.
CENSUS = """
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE census AS SELECT count(*) AS streams FROM main.streams;
CREATE TEMP TRIGGER born AFTER INSERT ON main.streams BEGIN UPDATE census SET streams = streams + 1; END;
CREATE TEMP TRIGGER gone AFTER DELETE ON main.streams BEGIN UPDATE census SET streams = streams - 1; END;
"""
# Names are ASCII: this comes after whatever can follow a prefix.
LAST = "\x7f"


def create(
    connection: sqlite3.Connection, stream: str, snapshot: Snapshot, bounds: Sequence[Bound] = NO_BOUNDS
) -> bool:
    """Begin a stream unless it exists."""
    if bounds and not _exists(connection, stream):
        _refuse_beyond(connection, stream, bounds)
    inserted = connection.execute(
        "INSERT INTO streams (name, head_seq, head_sub, log_entries, log_bytes, changed_at) "
        "VALUES (?, ?, ?, 0, 0, ?) ON CONFLICT DO NOTHING",
        (stream, *snapshot.position, time()),
    )
    if inserted.rowcount == 0:
        return False
    _put_snapshot(connection, "snapshots", inserted.lastrowid or 0, snapshot)
    return True


def _exists(connection: sqlite3.Connection, stream: str) -> bool:
    return connection.execute("SELECT 1 FROM streams WHERE name = ?", (stream,)).fetchone() is not None


def _refuse_beyond(connection: sqlite3.Connection, stream: str, bounds: Sequence[Bound]) -> None:
    for bound in bounds:
        count = _count_streams(connection, bound.prefix)
        if count >= bound.most:
            raise TooManyStreams(stream, bound, count)


def _count_streams(connection: sqlite3.Connection, prefix: str) -> int:
    if not prefix:
        return int(connection.execute("SELECT streams FROM census").fetchone()[0])
    named = "SELECT count(*) FROM streams WHERE name >= ? AND name < ?"
    return int(connection.execute(named, (prefix, prefix + LAST)).fetchone()[0])


def append(
    connection: sqlite3.Connection, stream: str, after: Position, entry: Entry, labels: Mapping[int, bytes]
) -> None:
    """Add an entry at the head."""
    number = _move_head(connection, stream, after, entry)
    if number is None:
        _refuse_unless_repeated(connection, stream, after, entry)
        return
    _put_entry(connection, number, entry)
    if entry.ids:
        connection.executemany(
            "INSERT INTO ids VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq",
            ((number, name, seq) for name, seq in entry.named_samples()),
        )
    if labels:
        connection.executemany(
            "INSERT INTO labels VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
            ((number, int(seq), body) for seq, body in labels.items()),
        )


def save_snapshot(
    connection: sqlite3.Connection, stream: str, snapshot: Snapshot, last: Position, *, as_base: bool = False
) -> None:
    """Replace the snapshot by one that is not older, and the base before the log is trimmed past it."""
    number, head = _find_stream(connection, stream)
    stored = _position(connection, "snapshots", number) or START  # one that is gone is replaced by any
    if not stored <= snapshot.position <= head:
        raise StaleWriter(stream, snapshot.position, stored if snapshot.position < stored else head)
    _put_snapshot(connection, "snapshots", number, snapshot)
    if as_base or base_is_due(_position(connection, "bases", number), snapshot.position, last):
        _put_snapshot(connection, "bases", number, snapshot)


def trim(connection: sqlite3.Connection, stream: str, last: Position) -> bool:
    """Drop some of the entries up to a position; True while there are more."""
    number, _ = _find_stream(connection, stream)
    last = min(last, *(_position(connection, table, number) or START for table in ("snapshots", "bases")))
    oldest = connection.execute(
        "SELECT seq, sub, x'', first_seq, ids, length(body) FROM log WHERE stream = ? AND (seq, sub) <= (?, ?) "
        "ORDER BY seq, sub LIMIT ?",
        (number, *last, STEP_ENTRIES),
    )
    dropped = list(_take_step(oldest))
    if dropped:
        _drop(connection, number, dropped)
    return bool(dropped)


def replace(connection: sqlite3.Connection, stream: str, after: Position, snapshot: Snapshot) -> None:
    """Give the stream a new number, with nothing under it but the snapshot."""
    number, head = _find_stream(connection, stream)
    if head != after:
        if head == snapshot.position and _read_snapshot(connection, "snapshots", number) == snapshot:
            return
        raise StaleWriter(stream, after, head)
    restore(connection, stream, snapshot)


def restore(connection: sqlite3.Connection, stream: str, snapshot: Snapshot) -> None:
    """Give the stream a new number, with nothing under it but the snapshot."""
    delete(connection, stream)
    create(connection, stream, snapshot)


def delete(connection: sqlite3.Connection, stream: str) -> bool:
    """Forget a stream; its rows go later, step by step."""
    connection.execute("INSERT INTO doomed SELECT number FROM streams WHERE name = ?", (stream,))
    return connection.execute("DELETE FROM streams WHERE name = ?", (stream,)).rowcount > 0


def purge(connection: sqlite3.Connection) -> bool:
    """Remove some rows of streams that are gone; True while there are more."""
    doomed = connection.execute("SELECT stream FROM doomed LIMIT 1").fetchone()
    if doomed is None:
        return False
    steps = (("log", "rowid", STEP_ENTRIES), ("ids", "id", STEP_ROWS), ("labels", "seq", STEP_ROWS))
    if not any(_remove_rows(connection, doomed[0], *step) for step in steps):
        connection.execute("DELETE FROM snapshots WHERE stream = ?", doomed)
        connection.execute("DELETE FROM bases WHERE stream = ?", doomed)
        connection.execute("DELETE FROM doomed WHERE stream = ?", doomed)
    return True


def load(connection: sqlite3.Connection, stream: str) -> tuple[Snapshot, Position] | None:
    """Read the snapshot and the head, and make sure that the log leads from one to the other."""
    try:
        number, head = _find_stream(connection, stream)
    except StreamNotFound:
        return None
    snapshot = _read_snapshot(connection, "snapshots", number)
    if snapshot is None:
        raise StoreCorrupt(stream, "the snapshot is missing")
    first = next(iter(_read_entries(connection, number, snapshot.position, 1)), None)
    last = connection.execute(
        "SELECT seq, sub FROM log WHERE stream = ? ORDER BY seq DESC, sub DESC LIMIT 1", (number,)
    ).fetchone()
    if gap := find_gap(snapshot.position, head, first, last and Position(*last)):
        raise StoreCorrupt(stream, gap)
    return snapshot, head


def inspect(connection: sqlite3.Connection, stream: str) -> Remains | None:
    """Read what is there, and count the log."""
    row = connection.execute("SELECT number, head_seq, head_sub, log_entries FROM streams WHERE name = ?", (stream,))
    found = row.fetchone()
    if found is None:
        return None
    number, seq, sub, expected = found
    (actual,) = connection.execute("SELECT count(*) FROM log WHERE stream = ?", (number,)).fetchone()
    faults = () if actual == expected else (f"the log has {actual} entries where {expected} were written",)
    newest, base = (_read_snapshot(connection, table, number) for table in ("snapshots", "bases"))
    return Remains(Position(seq, sub), newest, base, faults)


def entries(connection: sqlite3.Connection, stream: str, after: Position, limit: int) -> list[Entry]:
    """Read a page of the log."""
    return _read_entries(connection, _number(connection, stream), after, limit)


def entries_holding(connection: sqlite3.Connection, stream: str, seqs: Sequence[int]) -> list[Entry]:
    """Read the batches that hold these rising seqs."""
    number = _number(connection, stream)

    def next_batch(seq: int) -> Entry | None:
        found = _read_entries(connection, number, Position.before(seq), 1)
        while found and found[0].first_seq is None:  # no batch stands between label events of one seq
            found = _read_entries(connection, number, Position.before(found[0].position.seq + 1), 1)
        return found[0] if found else None

    return collect_batches(seqs, next_batch)


def find_ids(connection: sqlite3.Connection, stream: str, ids: Sequence[str]) -> dict[str, int]:
    """Give the seqs of known ids."""
    return dict(_select_among(connection, "SELECT id, seq FROM ids WHERE stream = ? AND id IN", stream, ids))


def find_labels(connection: sqlite3.Connection, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
    """Give the records of labelled samples."""
    return dict(_select_among(connection, "SELECT seq, body FROM labels WHERE stream = ? AND seq IN", stream, seqs))


def streams(connection: sqlite3.Connection, after: str, limit: int) -> list[str]:
    """List names in order."""
    rows = connection.execute("SELECT name FROM streams WHERE name > ? ORDER BY name LIMIT ?", (after, limit))
    return [name for (name,) in rows]


def note_changes(connection: sqlite3.Connection) -> None:
    """Give a file of before the column that says when streams changed; theirs count from now on."""
    if "changed_at" not in [row[1] for row in connection.execute("PRAGMA table_info(streams)")]:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ALTER TABLE streams ADD COLUMN changed_at REAL NOT NULL DEFAULT 0")
        connection.execute("UPDATE streams SET changed_at = ?", (time(),))
        connection.execute("COMMIT")


def silences(connection: sqlite3.Connection, streams: Sequence[str]) -> dict[str, Silence]:
    """Say how long streams are silent."""
    found: dict[str, Silence] = {}
    now, remaining = time(), iter(streams)
    while part := list(islice(remaining, VARIABLES)):
        marks = ", ".join("?" * len(part))
        query = f"SELECT name, changed_at, log_entries FROM streams WHERE name IN ({marks})"  # noqa: S608
        found |= {name: Silence(max(0.0, now - at), entries) for name, at, entries in connection.execute(query, part)}
    return found


def size(connection: sqlite3.Connection, stream: str) -> StreamSize:
    """Measure a stream."""
    row = connection.execute(
        "SELECT log_entries, log_bytes, coalesce(length(newest.body), 0) + coalesce(length(bases.body), 0) "
        "FROM streams LEFT JOIN snapshots newest ON newest.stream = number "
        "LEFT JOIN bases ON bases.stream = number WHERE name = ?",
        (stream,),
    ).fetchone()
    if row is None:
        raise StreamNotFound(stream)
    return StreamSize(*row)


def _number(connection: sqlite3.Connection, stream: str) -> int:
    """Give the stream's number; 0, which no stream has, if there is none."""
    row = connection.execute("SELECT number FROM streams WHERE name = ?", (stream,)).fetchone()
    return row[0] if row else 0


def _find_stream(connection: sqlite3.Connection, stream: str) -> tuple[int, Position]:
    row = connection.execute("SELECT number, head_seq, head_sub FROM streams WHERE name = ?", (stream,)).fetchone()
    if row is None:
        raise StreamNotFound(stream)
    return row[0], Position(row[1], row[2])


def _move_head(connection: sqlite3.Connection, stream: str, after: Position, entry: Entry) -> int | None:
    """Count an entry in, and give the stream's number; None, and nothing changed, if its head is not `after`."""
    row = connection.execute(
        "UPDATE streams SET head_seq = ?, head_sub = ?, log_entries = log_entries + 1, log_bytes = log_bytes + ?, "
        "changed_at = ? WHERE name = ? AND head_seq = ? AND head_sub = ? RETURNING number",
        (*entry.position, len(entry.body), time(), stream, *after),
    ).fetchone()
    return row[0] if row else None


def _refuse_unless_repeated(connection: sqlite3.Connection, stream: str, after: Position, entry: Entry) -> None:
    """Raise StaleWriter or StreamNotFound for an entry that is not the newest one come again."""
    number, head = _find_stream(connection, stream)
    if head != entry.position or _read_body(connection, number, head) != entry.body:
        raise StaleWriter(stream, after, head)


def _put_entry(connection: sqlite3.Connection, number: int, entry: Entry) -> None:
    packed = msgspec.msgpack.encode(entry.ids) if entry.ids else None
    connection.execute(
        f"INSERT INTO log (stream, {ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 (names of columns)
        (number, *entry.position, entry.body, entry.first_seq, packed),
    )


def _put_snapshot(connection: sqlite3.Connection, table: str, number: int, snapshot: Snapshot) -> None:
    query = f"REPLACE INTO {table} VALUES (?, ?, ?, ?)"  # noqa: S608 (names from this file)
    connection.execute(query, (number, *snapshot.position, snapshot.body))


def _position(connection: sqlite3.Connection, table: str, number: int) -> Position | None:
    query = f"SELECT seq, sub FROM {table} WHERE stream = ?"  # noqa: S608 (names from this file)
    row = connection.execute(query, (number,)).fetchone()
    return row and Position(*row)


def _read_snapshot(connection: sqlite3.Connection, table: str, number: int) -> Snapshot | None:
    query = f"SELECT seq, sub, body FROM {table} WHERE stream = ?"  # noqa: S608 (names from this file)
    row = connection.execute(query, (number,)).fetchone()
    return row and Snapshot(Position(row[0], row[1]), row[2])


def _read_body(connection: sqlite3.Connection, number: int, position: Position) -> bytes | None:
    key = (number, *position)
    row = connection.execute("SELECT body FROM log WHERE stream = ? AND seq = ? AND sub = ?", key).fetchone()
    return row[0] if row else None


def _read_entries(connection: sqlite3.Connection, number: int, after: Position, limit: int) -> list[Entry]:
    rows = connection.execute(
        f"SELECT {ENTRY_COLUMNS} FROM log WHERE stream = ? AND (seq, sub) > (?, ?) "  # noqa: S608 (names of columns)
        "ORDER BY seq, sub LIMIT ?",
        (number, *after, limit),
    )
    return take_page(_as_entry(*row) for row in rows)


def _as_entry(seq: int, sub: int, body: bytes, first_seq: int | None, packed: bytes | None) -> Entry:
    ids = msgspec.msgpack.decode(packed, type=tuple[str, ...]) if packed else ()
    return Entry(Position(seq, sub), body, first_seq, ids)


def _take_step(rows: Iterable[Sequence[object]]) -> Iterator[tuple[Entry, int]]:
    """Take entries, each with the size of its body, until they hold many samples."""
    samples = 0
    for *columns, size_bytes in rows:
        entry = _as_entry(*columns)  # type: ignore[arg-type]
        yield entry, size_bytes  # type: ignore[misc]
        samples += entry.position.seq - entry.first_seq + 1 if entry.first_seq else 0
        if samples >= STEP_ROWS:
            return


def _drop(connection: sqlite3.Connection, number: int, dropped: list[tuple[Entry, int]]) -> None:
    last = dropped[-1][0].position
    connection.execute("DELETE FROM log WHERE stream = ? AND (seq, sub) <= (?, ?)", (number, *last))
    connection.execute("DELETE FROM labels WHERE stream = ? AND seq <= ?", (number, last.seq))
    connection.executemany(
        "DELETE FROM ids WHERE stream = ? AND id = ? AND seq = ?",  # a newer sample may bear the same id
        ((number, name, seq) for entry, _ in dropped for name, seq in entry.named_samples()),
    )
    connection.execute(
        "UPDATE streams SET log_entries = log_entries - ?, log_bytes = log_bytes - ? WHERE number = ?",
        (len(dropped), sum(size_bytes for _, size_bytes in dropped), number),
    )


def _remove_rows(connection: sqlite3.Connection, number: int, table: str, key: str, limit: int) -> bool:
    removed = connection.execute(
        f"DELETE FROM {table} WHERE stream = ? AND {key} IN "  # noqa: S608 (names from this file)
        f"(SELECT {key} FROM {table} WHERE stream = ? LIMIT ?)",
        (number, number, limit),
    )
    return removed.rowcount > 0


def _select_among(
    connection: sqlite3.Connection, select: str, stream: str, values: Sequence[object]
) -> Iterator[tuple[Any, Any]]:
    number, remaining = _number(connection, stream), iter(values)
    while part := list(islice(remaining, VARIABLES)):
        marks = ", ".join("?" * len(part))
        yield from connection.execute(f"{select} ({marks})", (number, *part))
