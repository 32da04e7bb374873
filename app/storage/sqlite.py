"""A store in one SQLite file, for one process."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, islice
from pathlib import Path

from app.storage import sqlite_verbs as verbs
from app.storage.base import (
    NO_LABELS,
    Durability,
    Entry,
    Position,
    Renewal,
    Snapshot,
    StoreError,
    StoreUnavailable,
    StreamSize,
    check_append,
    check_position,
    check_replace,
    is_full,
    last_trimmable,
    possible_seqs,
)
from app.storage.filelock import FileLock
from app.storage.sqlite_worker import SqliteWorker

SCHEMA_VERSION = 1
APPLICATION_ID = int.from_bytes(b"itan")
# A write-ahead file that a long reader made grow is cut back to this when it can be.
WAL_KEPT_BYTES = 64 * 2**20
SYNCHRONOUS = {Durability.PROCESS: "NORMAL", Durability.FSYNC: "FULL"}
# So many samples are looked for in one go, that others get their turn in between.
SEQS_PER_STEP = 1_000


class SqliteStore:
    """Keeps streams in a file: one thread writes, group by group, another reads."""

    is_exclusive = True
    retries = 0

    def __init__(self, path: Path, busy_seconds: float = 1.0, durability: Durability = Durability.PROCESS) -> None:
        self._path, self._busy_seconds, self._synchronous = path, busy_seconds, SYNCHRONOUS[durability]
        self._tokens = count(1)
        self._lock = FileLock(path.with_name(path.name + ".lock"))
        self._writer = SqliteWorker(self._connect_writer, "BEGIN IMMEDIATE")
        self._reader = SqliteWorker(self._connect_reader, "BEGIN")

    async def open(self) -> None:
        """Own the file, make or check its tables, and end what an earlier process left half removed."""
        self._lock.acquire()
        try:
            await self._writer.start()
            await self._writer.run(_touch)
            await self._purge()
            await self._reader.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what waits and give up the file."""
        await self._reader.stop()
        await self._writer.stop()
        self._lock.release()

    async def check(self) -> list[str]:
        """Begin a write, and warn of a write-ahead file that cannot be reset."""
        await self._writer.run(_touch)
        size_bytes = self.wal_bytes()
        if size_bytes <= 2 * WAL_KEPT_BYTES:
            return []
        return [f"the write-ahead file takes {size_bytes >> 20} MiB: is a long reader holding it?"]

    def wal_bytes(self) -> int:
        """Measure the write-ahead file."""
        wal = self._path.with_name(self._path.name + "-wal")
        return wal.stat().st_size if wal.exists() else 0

    async def acquire(self, stream: str, owner: str, seconds: float) -> int:
        """Grant every lease: the lock on the file keeps other writers out."""
        return next(self._tokens)

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> Renewal:
        """Lose none."""
        return Renewal(set(), set())

    async def release(self, tokens: Mapping[str, int]) -> None:
        """Nothing to end."""

    async def create(self, stream: str, snapshot: Snapshot, token: int = 0) -> bool:
        """Begin a stream."""
        check_position(snapshot.position)
        return await self._writer.run(partial(verbs.create, stream=stream, snapshot=snapshot))

    async def append(
        self, stream: str, after: Position, entry: Entry, labels: Mapping[int, bytes] = NO_LABELS, token: int = 0
    ) -> None:
        """Add an entry at the head."""
        check_append(after, entry, labels)
        await self._writer.run(partial(verbs.append, stream=stream, after=after, entry=entry, labels=dict(labels)))

    async def save_snapshot(self, stream: str, snapshot: Snapshot, keep_from_seq: int, token: int = 0) -> None:
        """Replace the snapshot and trim, step by step."""
        check_position(snapshot.position)
        await self._writer.run(partial(verbs.save_snapshot, stream=stream, snapshot=snapshot))
        last = last_trimmable(snapshot.position, keep_from_seq)
        while await self._writer.run(partial(verbs.trim, stream=stream, last=last)):
            pass

    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Go on from a foreign state."""
        check_replace(after, snapshot)
        await self._writer.run(partial(verbs.replace, stream=stream, after=after, snapshot=snapshot))
        await self._purge_if_possible()

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""
        return await self._reader.run(partial(verbs.load, stream=stream))

    async def entries(self, stream: str, after: Position, limit: int) -> list[Entry]:
        """Read a page of the log."""
        return await self._reader.run(partial(verbs.entries, stream=stream, after=after, limit=limit))

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[Entry]:
        """Read the batches that hold these samples."""
        remaining = iter(possible_seqs(seqs))
        found: dict[Position, Entry] = {}
        while not is_full(found.values()) and (part := list(islice(remaining, SEQS_PER_STEP))):
            batches = await self._reader.run(partial(verbs.entries_holding, stream=stream, seqs=part))
            found.update((entry.position, entry) for entry in batches)
        return list(found.values())

    async def find_ids(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Give the seqs of known ids."""
        return await self._reader.run(partial(verbs.find_ids, stream=stream, ids=ids))

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        return await self._reader.run(partial(verbs.find_labels, stream=stream, seqs=possible_seqs(seqs)))

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Forget a stream."""
        existed = await self._writer.run(partial(verbs.delete, stream=stream))
        await self._purge_if_possible()
        return existed

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""
        return await self._reader.run(partial(verbs.streams, after=after, limit=limit))

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        return await self._reader.run(partial(verbs.size, stream=stream))

    async def _purge_if_possible(self) -> None:
        with suppress(StoreUnavailable):  # what is asked for is done; the rest goes with the next purge
            await self._purge()

    async def _purge(self) -> None:
        while await self._writer.run(verbs.purge):
            pass

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self._path, timeout=self._busy_seconds, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"SQLite: {error}: {self._path}") from error

    def _connect_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        try:
            _set_up(connection, self._synchronous)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection


def _touch(connection: sqlite3.Connection) -> None:
    """Write something that changes nothing, so that a full or read-only file shows."""
    connection.execute("DELETE FROM doomed WHERE stream = -1")


def _set_up(connection: sqlite3.Connection, synchronous: str) -> None:
    if _is_foreign(connection):
        raise StoreError("SQLite: the file belongs to another program or to a newer version")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable("SQLite: no write-ahead log on this file system")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
    if _read_number(connection, "user_version") == 0:
        connection.executescript(
            f"BEGIN IMMEDIATE; {verbs.SCHEMA} PRAGMA application_id = {APPLICATION_ID}; "
            f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )


def _is_foreign(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    signature = (_read_number(connection, "application_id"), _read_number(connection, "user_version"))
    return tables > 0 and signature != (APPLICATION_ID, SCHEMA_VERSION)


def _read_number(connection: sqlite3.Connection, pragma: str) -> int:
    number: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return number
