"""A store in one SQLite file: one process writes, others may read."""

import asyncio
import os
import resource
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, islice
from pathlib import Path
from urllib.parse import quote

from limits.aio.storage import MemoryStorage

from app.storage import sqlite_ahead as ahead
from app.storage import sqlite_verbs as verbs
from app.storage.base import (
    NO_BOUNDS,
    NO_LABELS,
    Bound,
    Cause,
    Durability,
    Entry,
    Position,
    Remains,
    Silence,
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
from app.storage.noting import adds, replaces
from app.storage.room import RefusedWrites, Room
from app.storage.sqlite_watch import Watch
from app.storage.sqlite_worker import SqliteWorker, cause_of

SCHEMA_VERSION = 1
APPLICATION_ID = int.from_bytes(b"itan")
# Only a long reader makes a write-ahead file grow so far.
LONG_AHEAD_BYTES = 128 << 20
SYNCHRONOUS = {Durability.PROCESS: "NORMAL", Durability.FSYNC: "FULL"}
# So many samples are looked for in one go, that others get their turn in between.
SEQS_PER_STEP = 1_000
LOOK_SECONDS = 1.0


class SqliteReader:
    """Reads the streams of a file, also while another process writes them."""

    application_id = APPLICATION_ID
    mode = "ro"

    def __init__(self, path: Path, busy_seconds: float = 1.0) -> None:
        self._path, self._busy_seconds = path, busy_seconds
        self._reader = SqliteWorker(self._connect_reader, "BEGIN")

    async def open(self) -> None:
        """Make sure that the file is whole."""
        ahead.refuse_mismatch(self._resolve())
        await self._reader.start()

    async def close(self) -> None:
        """Finish what waits."""
        await self._reader.stop()

    def exists(self) -> bool:
        """Tell whether there is a file."""
        return self._path.exists()

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""
        return await self._reader.run(partial(verbs.load, stream=stream))

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is there."""
        return await self._reader.run(partial(verbs.inspect, stream=stream))

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

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""
        return await self._reader.run(partial(verbs.streams, after=after, limit=limit))

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long streams are silent."""
        return await self._reader.run(partial(verbs.silences, streams=streams))

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        return await self._reader.run(partial(verbs.size, stream=stream))

    def _resolve(self) -> Path:
        """Follow all links: SQLite keeps its other files beside the file that it finds in the end."""
        self._path = Path(os.path.realpath(self._path))
        return self._path

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = f"file:{quote(str(self._path))}?mode={mode}"
        try:
            return sqlite3.connect(name, timeout=self._busy_seconds, isolation_level=None, uri=True)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"SQLite: {error}: {self._path}", cause_of(error)) from error

    def _connect_reader(self) -> sqlite3.Connection:
        """A connection that cannot write leaves the files as they are when it is closed."""
        connection = self._connect(self.mode)
        try:
            refuse_foreign(connection, self.application_id)
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'bases'").fetchone():
                connection.execute(verbs.BASES.replace("TABLE", "TEMP TABLE"))
        except BaseException:
            connection.close()
            raise
        return connection


class SqliteStore(SqliteReader):
    """Keeps streams in a file: one thread writes, group by group, another reads."""

    is_exclusive = True
    retries = 0

    def __init__(self, path: Path, busy_seconds: float = 1.0, durability: Durability = Durability.PROCESS) -> None:
        super().__init__(path, busy_seconds)
        self._synchronous = SYNCHRONOUS[durability]
        self._tokens = count(1)
        self.windows = MemoryStorage()
        self.refused = RefusedWrites()
        self._lock: FileLock | None = None
        self._looking: asyncio.Task[None] | None = None
        self._writer = SqliteWorker(self._connect_writer, "BEGIN IMMEDIATE")

    async def open(self) -> None:
        """Own the file, make or check its tables, and end what an earlier process left half removed."""
        self._lock = FileLock(self._resolve())
        self._lock.acquire()
        try:
            ahead.refuse_mismatch(self._path)
            await self._writer.start()
            await self._begin()
            await self._reader.start()
            self._looking = asyncio.create_task(self._look_around())
        except BaseException:
            await self.close()
            raise

    async def _begin(self) -> None:
        try:
            await self._writer.run(_touch)
            await self._purge()
        except StoreUnavailable as error:
            if error.cause not in (Cause.FULL, Cause.FAILED):
                raise  # what is full can be read, and may have room later

    async def close(self) -> None:
        """Finish what waits and give up the file."""
        if self._looking is not None:
            self._looking.cancel()
        is_ended = all([await worker.stop() for worker in (self._reader, self._writer)])
        if self._lock is not None and is_ended:  # a thread that hangs may yet write
            self._lock.release()

    async def check(self) -> list[str]:
        """Begin a write, and warn of a write-ahead file that cannot be reset."""
        await self._writer.run(_touch)
        room = await self.room()
        warnings = room.warnings(f"the disk of {self._path}")
        if room.wal_bytes > LONG_AHEAD_BYTES:
            warnings.append(f"the write-ahead file takes {room.wal_bytes >> 20} MiB: is a long reader holding it?")
        return warnings

    async def room(self) -> Room:
        """Measure the files, and the disk or the longest file that the process may write, whichever is fuller."""
        try:
            return await asyncio.to_thread(self._measure)
        except OSError as error:
            raise StoreUnavailable(f"cannot measure {self._path}: {error.strerror}") from error

    def ahead_bytes(self) -> int:
        """Measure the write-ahead file."""
        return ahead.size_of(ahead.ahead_of(self._path))

    async def acquire(self, stream: str, owner: str, seconds: float, keep_seconds: float = 0.0) -> int:
        """Grant every lease: the lock on the file keeps other writers out."""
        return next(self._tokens)

    async def ask(self, stream: str, owner: str) -> None:
        """Nobody to ask."""

    async def wanted(self, owner: str) -> set[str]:
        """Nobody asks."""
        return set()

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Lose none."""
        return set()

    async def release(self, tokens: Mapping[str, int]) -> None:
        """Nothing to end."""

    @adds
    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Begin a stream."""
        check_position(snapshot.position)
        return await self._writer.run(partial(verbs.create, stream=stream, snapshot=snapshot, bounds=bounds))

    @adds
    async def append(
        self, stream: str, after: Position, entry: Entry, labels: Mapping[int, bytes] = NO_LABELS, token: int = 0
    ) -> None:
        """Add an entry at the head."""
        check_append(after, entry, labels)
        await self._writer.run(partial(verbs.append, stream=stream, after=after, entry=entry, labels=dict(labels)))

    @replaces
    async def save_snapshot(
        self, stream: str, snapshot: Snapshot, keep_from_seq: int, token: int = 0, *, as_base: bool = False
    ) -> None:
        """Replace the snapshot and trim, step by step."""
        check_position(snapshot.position)
        last = last_trimmable(snapshot.position, keep_from_seq)
        save = partial(verbs.save_snapshot, stream=stream, snapshot=snapshot, last=last, as_base=as_base)
        await self._writer.run(save)
        while await self._writer.run(partial(verbs.trim, stream=stream, last=last)):
            pass

    @replaces
    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Go on from a foreign state."""
        check_replace(after, snapshot)
        await self._writer.run(partial(verbs.replace, stream=stream, after=after, snapshot=snapshot))
        await self._purge_if_possible()

    @replaces
    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Stand at a snapshot, whatever is there."""
        check_position(snapshot.position)
        await self._writer.run(partial(verbs.restore, stream=stream, snapshot=snapshot))
        await self._purge_if_possible()

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Forget a stream."""
        existed = await self._writer.run(partial(verbs.delete, stream=stream))
        await self._purge_if_possible()
        return existed

    def _measure(self) -> Room:
        disk = os.statvfs(self._path.parent)
        size_bytes = disk.f_blocks * disk.f_frsize
        files = ahead.size_of(self._path), self.ahead_bytes()
        of_disk = Room(size_bytes - disk.f_bavail * disk.f_frsize, size_bytes, *files)
        longest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        of_file = Room(max(files), max(0, longest), *files)  # -1 is no limit
        return max(of_disk, of_file, key=lambda room: room.share)

    async def _look_around(self) -> None:
        """Notice what happens to the files also while nobody writes: what is lost can still be saved then."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(StoreError):
                await self._writer.run(_touch)

    async def _purge_if_possible(self) -> None:
        with suppress(StoreUnavailable):  # what is asked for is done; the rest goes with the next purge
            await self._purge()

    async def _purge(self) -> None:
        while await self._writer.run(verbs.purge):
            pass

    def _connect_writer(self) -> sqlite3.Connection:
        assert self._lock is not None
        connection = self._connect("rwc")
        watch = Watch(self._path, self._lock.descriptor)
        try:
            watch.begin(connection, set_up(connection, self._path, self._synchronous))
            connection.executescript(verbs.CENSUS)
        except BaseException:
            connection.close()
            raise
        self._writer.watch = watch
        return connection


def _touch(connection: sqlite3.Connection) -> None:
    """Write something that changes nothing, so that a full or read-only file shows."""
    connection.execute("DELETE FROM doomed WHERE stream = -1")


def set_up(connection: sqlite3.Connection, path: Path, synchronous: str) -> bytes:
    """Prepare a file and a connection for writing, and give the mark of this opening."""
    refuse_foreign(connection)
    if not ahead.size_of(ahead.ahead_of(path)):
        with suppress(sqlite3.OperationalError):  # somebody reads
            # what is noted now must not itself depend on a write-ahead file
            connection.execute("PRAGMA journal_mode = DELETE")
    if _read_number(connection, "user_version") == 0:
        make_tables(connection)
    connection.execute(verbs.BASES)
    verbs.note_changes(connection)
    opening = ahead.new_opening()
    with suppress(sqlite3.OperationalError):  # a full disk: streams can still be read
        ahead.expect_any(connection, opening)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreUnavailable("SQLite: no write-ahead log on this file system")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA wal_autocheckpoint = 0")  # the watch does it
    connection.execute("PRAGMA journal_size_limit = 0")  # its size then tells what it holds
    return opening


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new store."""
    connection.executescript(
        f"BEGIN IMMEDIATE; {verbs.SCHEMA} PRAGMA application_id = {APPLICATION_ID}; "
        f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def refuse_foreign(connection: sqlite3.Connection, application_id: int = APPLICATION_ID) -> None:
    """Raise StoreError for a file that is not ours."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    signature = (_read_number(connection, "application_id"), _read_number(connection, "user_version"))
    if tables > 0 and signature != (application_id, SCHEMA_VERSION):
        raise StoreError("SQLite: the file belongs to another program or to a newer version")


def _read_number(connection: sqlite3.Connection, pragma: str) -> int:
    number: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return number
