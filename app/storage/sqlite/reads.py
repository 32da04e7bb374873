"""What reads an SQLite store, as plain functions of a connection inside a transaction."""

import json
import sqlite3
from collections.abc import Sequence
from time import time

from app.storage.blocks import KnownIds, StoredBlock, bucket_of
from app.storage.errors import StoreCorrupt, StreamNotFound
from app.storage.files import FileRow
from app.storage.incidents import IncidentChange, IncidentKey, IncidentRow, lane_bounds, parse_mark
from app.storage.interface import DocumentKind, Remains, Silence, StreamSize
from app.storage.log import Entry, Position, Snapshot, find_gap
from app.storage.pages import collect_batches
from app.storage.sqlite.rows import (
    find_stream,
    number_of,
    packed_to,
    read_block,
    read_entries,
    read_snapshot,
    select_among,
)


def load(connection: sqlite3.Connection, stream: str) -> tuple[Snapshot, Position] | None:
    """Read the snapshot and the head, and make sure that the log leads from one to the other."""
    try:
        number, head = find_stream(connection, stream)
    except StreamNotFound:
        return None
    snapshot = read_snapshot(connection, "snapshots", number)
    if snapshot is None:
        raise StoreCorrupt(stream, "the snapshot is missing")
    begin, packed = snapshot.position, packed_to(connection, number)
    if packed is not None and packed > begin:  # a copy under way
        block = read_block(connection, number, begin)
        begin = packed if block is not None and block.after <= begin else begin
    first = next(iter(read_entries(connection, number, begin, 1)), None)
    last = connection.execute(
        "SELECT seq, sub FROM log WHERE stream = ? ORDER BY seq DESC, sub DESC LIMIT 1", (number,)
    ).fetchone()
    if gap := find_gap(begin, head, first, last and Position(*last)):
        raise StoreCorrupt(stream, gap)
    return snapshot, head


def inspect(connection: sqlite3.Connection, stream: str) -> Remains | None:
    """Read what is left of a stream, and count its log."""
    row = connection.execute("SELECT number, head_seq, head_sub, log_entries FROM streams WHERE name = ?", (stream,))
    found = row.fetchone()
    if found is None:
        return None
    number, seq, sub, expected = found
    count = "SELECT (SELECT count(*) FROM log WHERE stream = ?1), (SELECT total(entries) FROM blocks WHERE stream = ?1)"
    actual = int(sum(connection.execute(count, (number,)).fetchone()))
    faults = () if actual == expected else (f"the log has {actual} entries where {expected} were written",)
    newest, base = (read_snapshot(connection, table, number) for table in ("snapshots", "bases"))
    return Remains(Position(seq, sub), newest, base, faults)


def end_of_blocks(connection: sqlite3.Connection, stream: str) -> Position | None:
    """Say where the newest block ends."""
    return packed_to(connection, number_of(connection, stream))


def entries(connection: sqlite3.Connection, stream: str, after: Position, limit: int) -> StoredBlock | list[Entry]:
    """Read a block, or a page of the log."""
    number = number_of(connection, stream)
    block = read_block(connection, number, after) if limit > 0 else None
    return block or read_entries(connection, number, after, limit)


def entries_holding(connection: sqlite3.Connection, stream: str, seqs: Sequence[int]) -> list[StoredBlock | Entry]:
    """Read the blocks and batches that hold these sorted seqs."""
    number = number_of(connection, stream)
    packed = packed_to(connection, number)

    def next_batch(seq: int) -> StoredBlock | Entry | None:
        if packed is not None and seq <= packed.seq:
            return read_block(connection, number, Position.before(seq))
        found = read_entries(connection, number, Position.before(seq), 1)
        while found and found[0].first_seq is None:  # no batch stands between label events of one seq
            found = read_entries(connection, number, Position.before(found[0].position.seq + 1), 1)
        return found[0] if found else None

    return collect_batches(seqs, next_batch)


def find_ids(connection: sqlite3.Connection, stream: str, ids: Sequence[str], hashes: Sequence[int]) -> KnownIds:
    """Give the seqs of known ids, and buckets."""
    seqs = dict(select_among(connection, "SELECT id, seq FROM ids WHERE stream = ? AND id IN", stream, ids))
    count = "SELECT coalesce(max(number) + 1, 0) FROM buckets WHERE stream = ?"
    (n_buckets,) = connection.execute(count, (number_of(connection, stream),)).fetchone()
    numbers = sorted({bucket_of(value, n_buckets) for value in hashes}) if n_buckets else ()
    select = "SELECT number, body FROM buckets WHERE stream = ? AND number IN"
    return KnownIds(seqs, n_buckets, dict(select_among(connection, select, stream, numbers)))


def find_labels(connection: sqlite3.Connection, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
    """Give the records of labelled samples."""
    return dict(select_among(connection, "SELECT seq, body FROM labels WHERE stream = ? AND seq IN", stream, seqs))


def labels_until(connection: sqlite3.Connection, stream: str, seq: int) -> dict[int, bytes]:
    """Give the records of labelled samples, in order."""
    given = (number_of(connection, stream), seq)
    return dict(connection.execute("SELECT seq, body FROM labels WHERE stream = ? AND seq <= ? ORDER BY seq", given))


def incidents(connection: sqlite3.Connection, stream: str) -> list[IncidentRow]:
    """Read incidents in order."""
    number = number_of(connection, stream)
    rows = connection.execute("SELECT seq, opened, body FROM incidents WHERE stream = ? ORDER BY seq", (number,))
    return [IncidentRow(*row) for row in rows]


def find_incidents(connection: sqlite3.Connection, stream: str, seqs: Sequence[int]) -> dict[int, IncidentRow]:
    """Give the known ones of these incidents."""
    select = "SELECT seq, opened, body FROM incidents WHERE stream = ? AND seq IN"
    return {row[0]: IncidentRow(*row) for row in select_among(connection, select, stream, seqs)}


def files(connection: sqlite3.Connection, stream: str) -> list[FileRow]:
    """Read the index of files in order."""
    number = number_of(connection, stream)
    return [
        FileRow(*row)
        for row in connection.execute("SELECT seq, body FROM files WHERE stream = ? ORDER BY seq", (number,))
    ]


def file_ids(connection: sqlite3.Connection, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
    """Give the ids of files."""
    return dict(select_among(connection, "SELECT seq, ids FROM files WHERE stream = ? AND seq IN", stream, seqs))


def newest_incidents(connection: sqlite3.Connection, before: IncidentKey | None, limit: int) -> list[IncidentKey]:
    """List incidents of all streams."""
    where = "" if before is None else "WHERE opened <= ? AND (opened, name, seq) < (?, ?, ?)"
    rows = connection.execute(
        f"SELECT opened, name, seq FROM incidents JOIN streams ON number = stream {where} "  # noqa: S608 (text above)
        "ORDER BY opened DESC, name DESC, seq DESC LIMIT ?",
        (limit,) if before is None else (before.opened, *before, limit),
    )
    return [IncidentKey(*row) for row in rows]


def changed_incidents(
    connection: sqlite3.Connection, limit: int, lane: str, after: IncidentChange | None
) -> list[IncidentChange]:
    """Read the oldest marks of a lane."""
    select = "SELECT mark FROM incident_changes WHERE mark > ? AND mark < ? ORDER BY mark LIMIT ?"
    return [parse_mark(mark.encode()) for (mark,) in connection.execute(select, (*lane_bounds(lane, after), limit))]


def count_changes(connection: sqlite3.Connection, lane: str) -> int:
    """Count the marks of a lane."""
    count = "SELECT count(*) FROM incident_changes WHERE mark > ? AND mark < ?"
    found: int = connection.execute(count, lane_bounds(lane)).fetchone()[0]
    return found


def streams(connection: sqlite3.Connection, after: str, limit: int) -> list[str]:
    """List names in order."""
    rows = connection.execute("SELECT name FROM streams WHERE name > ? ORDER BY name LIMIT ?", (after, limit))
    return [name for (name,) in rows]


def silences(connection: sqlite3.Connection, streams: Sequence[str]) -> dict[str, Silence]:
    """Say how long streams have been silent."""
    now = time()
    rows = connection.execute(
        "SELECT name, changed_at, log_entries FROM streams WHERE name IN (SELECT value FROM json_each(?))",
        (json.dumps(list(streams)),),
    )
    return {name: Silence(max(0.0, now - at), entries) for name, at, entries in rows}


def find_summaries(connection: sqlite3.Connection, streams: Sequence[str]) -> dict[str, bytes]:
    """Give known summaries."""
    select = (
        "SELECT name, body FROM streams JOIN summaries ON stream = number "
        "WHERE name IN (SELECT value FROM json_each(?))"
    )
    return dict(connection.execute(select, (json.dumps(list(streams)),)))


def summaries(connection: sqlite3.Connection, after: str, limit: int) -> list[tuple[str, bytes | None]]:
    """List streams in order with their summaries."""
    select = (
        "SELECT name, body FROM streams LEFT JOIN summaries ON stream = number WHERE name > ? ORDER BY name LIMIT ?"
    )
    return list(connection.execute(select, (after, limit)))


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


def document(connection: sqlite3.Connection, kind: DocumentKind, name: str) -> bytes | None:
    """Read a document."""
    row = connection.execute("SELECT body FROM documents WHERE kind = ? AND name = ?", (kind, name)).fetchone()
    return row[0] if row else None


def documents(connection: sqlite3.Connection, kind: DocumentKind) -> dict[str, bytes]:
    """Read documents in order."""
    return dict(connection.execute("SELECT name, body FROM documents WHERE kind = ? ORDER BY name", (kind,)))
