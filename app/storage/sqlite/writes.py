"""What changes an SQLite store, as plain functions of a connection inside a transaction."""

import sqlite3
from collections.abc import Mapping, Sequence
from time import time

import msgspec

from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import StaleWriter, StoreError, TooManyStreams
from app.storage.files import FileRow
from app.storage.incidents import (
    INCIDENTS_KEPT,
    MARKS_KEPT,
    NEW,
    NO_INCIDENTS,
    IncidentChange,
    IncidentRow,
    Mark,
    lane_bounds,
)
from app.storage.interface import Append, DocumentKind
from app.storage.log import START, Entry, Position, Snapshot, base_is_due
from app.storage.sqlite.reads import document
from app.storage.sqlite.rows import ENTRY_COLUMNS, find_stream, read_body, read_snapshot, snapshot_position
from app.storage.summaries import SummaryRow

# Steps this small keep other streams' appends from waiting for a big clean-up.
STEP_ENTRIES = 256
STEP_ROWS = 5_000
STEP_BLOCKS = 16
# Names are ASCII: this sorts after whatever can follow a prefix.
LAST = "\x7f"


def create(
    connection: sqlite3.Connection, stream: str, snapshot: Snapshot, bounds: Sequence[Bound] = NO_BOUNDS
) -> bool:
    """Create a stream unless it exists."""
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
    connection: sqlite3.Connection,
    stream: str,
    after: Position,
    entry: Entry,
    labels: Mapping[int, bytes],
    incidents: Sequence[IncidentRow] = NO_INCIDENTS,
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
        _put_labels(connection, number, labels)
    if incidents:
        _put_incidents(connection, number, incidents)
        _mark_changes(connection, stream, entry.position, incidents)


def _put_labels(connection: sqlite3.Connection, number: int, labels: Mapping[int, bytes]) -> None:
    connection.executemany(
        "INSERT INTO labels VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
        ((number, int(seq), body) for seq, body in labels.items()),
    )


def append_each(connection: sqlite3.Connection, appends: Sequence[Append]) -> list[StoreError | None]:
    """Add entries to the logs of many streams; what refuses one has changed nothing."""
    outcomes: list[StoreError | None] = []
    for one in appends:
        try:
            append(connection, one.stream, one.after, one.entry, one.labels, one.incidents)
            outcomes.append(None)
        except StoreError as error:
            outcomes.append(error)
    return outcomes


def _move_head(connection: sqlite3.Connection, stream: str, after: Position, entry: Entry) -> int | None:
    """Move the head to an entry, and give the stream's number; None, and nothing changed, if it was not at `after`."""
    row = connection.execute(
        "UPDATE streams SET head_seq = ?, head_sub = ?, log_entries = log_entries + 1, log_bytes = log_bytes + ?, "
        "changed_at = ? WHERE name = ? AND head_seq = ? AND head_sub = ? RETURNING number",
        (*entry.position, len(entry.body), time(), stream, *after),
    ).fetchone()
    return row[0] if row else None


def _refuse_unless_repeated(connection: sqlite3.Connection, stream: str, after: Position, entry: Entry) -> None:
    """Raise StaleWriter or StreamNotFound unless the entry repeats the newest one."""
    number, head = find_stream(connection, stream)
    if head != entry.position or read_body(connection, number, head) != entry.body:
        raise StaleWriter(stream, after, head)


def _put_entry(connection: sqlite3.Connection, number: int, entry: Entry) -> None:
    packed = msgspec.msgpack.encode(entry.ids) if entry.ids else None
    connection.execute(
        f"INSERT INTO log (stream, {ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 (names of columns)
        (number, *entry.position, entry.body, entry.first_seq, packed),
    )


def save_snapshot(
    connection: sqlite3.Connection, stream: str, snapshot: Snapshot, last: Position, *, as_base: bool = False
) -> None:
    """Replace the snapshot by a newer one, and the base if it is due."""
    number, head = find_stream(connection, stream)
    stored = snapshot_position(connection, "snapshots", number) or START  # any snapshot may replace a lost one
    if not stored <= snapshot.position <= head:
        raise StaleWriter(stream, snapshot.position, stored if snapshot.position < stored else head)
    _put_snapshot(connection, "snapshots", number, snapshot)
    if as_base or base_is_due(snapshot_position(connection, "bases", number), snapshot.position, last):
        _put_snapshot(connection, "bases", number, snapshot)


def _put_snapshot(connection: sqlite3.Connection, table: str, number: int, snapshot: Snapshot) -> None:
    query = f"REPLACE INTO {table} VALUES (?, ?, ?, ?)"  # noqa: S608 (names from this file)
    connection.execute(query, (number, *snapshot.position, snapshot.body))


def put_file(connection: sqlite3.Connection, stream: str, row: FileRow, labels: Mapping[int, bytes]) -> None:
    """Put a file into the index, and add labels."""
    number, _ = find_stream(connection, stream)
    connection.execute("REPLACE INTO files VALUES (?, ?, ?, ?)", (number, *row))
    _put_labels(connection, number, labels)


def drop_files(connection: sqlite3.Connection, stream: str, last_seq: int) -> None:
    """Take files out of the index, and drop labels."""
    number, _ = find_stream(connection, stream)
    connection.execute("DELETE FROM files WHERE stream = ? AND seq <= ?", (number, last_seq))
    connection.execute("DELETE FROM labels WHERE stream = ? AND seq <= ?", (number, last_seq))


def put_incidents(connection: sqlite3.Connection, stream: str, rows: Sequence[IncidentRow]) -> None:
    """Put incidents into the index."""
    number, _ = find_stream(connection, stream)
    _put_incidents(connection, number, rows)


def _put_incidents(connection: sqlite3.Connection, number: int, rows: Sequence[IncidentRow]) -> None:
    """Put incidents into the index, and drop the oldest beyond what it keeps."""
    connection.executemany(
        "REPLACE INTO incidents VALUES (?, ?, ?, ?)", ((number, row.seq, row.opened, row.body) for row in rows)
    )
    connection.execute(
        "DELETE FROM incidents WHERE stream = ? AND seq <= "
        "(SELECT seq FROM incidents WHERE stream = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (number, number, INCIDENTS_KEPT),
    )


def _mark_changes(connection: sqlite3.Connection, stream: str, position: Position, rows: Sequence[IncidentRow]) -> None:
    """Mark incidents as changed, and drop the oldest marks beyond what the list keeps."""
    now = round(time() * 1000)
    marks = [(str(IncidentChange(now, stream, row.seq, position)),) for row in rows if row.is_news]
    if marks:
        connection.executemany("INSERT OR IGNORE INTO incident_changes VALUES (?)", marks)
        oldest = "SELECT mark FROM incident_changes WHERE mark < ? ORDER BY mark DESC LIMIT 1 OFFSET ?"
        given = (lane_bounds(NEW)[1], MARKS_KEPT)
        connection.execute(f"DELETE FROM incident_changes WHERE mark <= ({oldest})", given)  # noqa: S608 (text above)


def move_changes(connection: sqlite3.Connection, gone: Sequence[Mark], come: Sequence[Mark]) -> None:
    """Move marks."""
    connection.executemany("INSERT OR IGNORE INTO incident_changes VALUES (?)", ((str(mark),) for mark in come))
    connection.executemany("DELETE FROM incident_changes WHERE mark = ?", ((str(mark),) for mark in gone))


def put_summaries(connection: sqlite3.Connection, rows: Sequence[SummaryRow]) -> None:
    """Keep the summaries of streams."""
    for row in rows:
        verb = "IGNORE" if row.only_if_missing else "REPLACE"
        select = "SELECT number, ? FROM streams WHERE name = ?"
        connection.execute(f"INSERT OR {verb} INTO summaries {select}", (row.body, row.stream))


def replace(connection: sqlite3.Connection, stream: str, after: Position, snapshot: Snapshot) -> None:
    """Give the stream a new number and the snapshot, and leave its old rows to `purge`."""
    number, head = find_stream(connection, stream)
    if head != after:
        if head == snapshot.position and read_snapshot(connection, "snapshots", number) == snapshot:
            return
        raise StaleWriter(stream, after, head)
    restore(connection, stream, snapshot)


def restore(connection: sqlite3.Connection, stream: str, snapshot: Snapshot) -> None:
    """Give the stream a new number and the snapshot, and leave its old rows to `purge`."""
    delete(connection, stream)
    create(connection, stream, snapshot)


def delete(connection: sqlite3.Connection, stream: str) -> bool:
    """Delete a stream; its rows are removed later, step by step."""
    connection.execute("INSERT INTO doomed SELECT number FROM streams WHERE name = ?", (stream,))
    return connection.execute("DELETE FROM streams WHERE name = ?", (stream,)).rowcount > 0


def purge(connection: sqlite3.Connection) -> bool:
    """Remove some rows of deleted streams; True while there are more."""
    doomed = connection.execute("SELECT stream FROM doomed LIMIT 1").fetchone()
    if doomed is None:
        return False
    steps = (
        ("log", "rowid", STEP_ENTRIES),
        ("ids", "id", STEP_ROWS),
        ("labels", "seq", STEP_ROWS),
        ("incidents", "seq", STEP_ROWS),
        ("blocks", "rowid", STEP_BLOCKS),
        ("buckets", "number", STEP_ROWS),
    )
    if not any(_remove_rows(connection, doomed[0], *step) for step in steps):
        for table in ("snapshots", "bases", "summaries", "files"):
            connection.execute(f"DELETE FROM {table} WHERE stream = ?", doomed)  # noqa: S608 (names above)
        connection.execute("DELETE FROM doomed WHERE stream = ?", doomed)
    return True


def _remove_rows(connection: sqlite3.Connection, number: int, table: str, key: str, limit: int) -> bool:
    removed = connection.execute(
        f"DELETE FROM {table} WHERE stream = ? AND {key} IN "  # noqa: S608 (names from this file)
        f"(SELECT {key} FROM {table} WHERE stream = ? LIMIT ?)",
        (number, number, limit),
    )
    return removed.rowcount > 0


def put_document(
    connection: sqlite3.Connection, kind: DocumentKind, name: str, body: bytes, expected: bytes | None = None
) -> bool:
    """Keep a document in the place of the expected one."""
    if document(connection, kind, name) not in (expected, body):
        return False
    connection.execute("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, name, body))
    return True


def delete_document(connection: sqlite3.Connection, kind: DocumentKind, name: str, expected: bytes) -> bool:
    """Delete the expected document."""
    if document(connection, kind, name) not in (expected, None):
        return False
    connection.execute("DELETE FROM documents WHERE kind = ? AND name = ?", (kind, name))
    return True
