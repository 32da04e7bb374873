"""A store in one SQLite file: one process writes, others may read."""

import asyncio
import os
import resource
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path

from limits.aio.storage import MemoryStorage

from app.storage.blocks import NO_BUCKETS, StoredBlock, check_compact
from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import Cause, StoreCorrupt, StoreError, StoreUnavailable
from app.storage.files import FileRow, check_file
from app.storage.incidents import NO_INCIDENTS, IncidentRow, Mark, check_incidents
from app.storage.interface import NO_LABELS, Append, DocumentKind, Durability
from app.storage.log import Entry, Position, Snapshot, check_append, check_position, check_replace, last_trimmable
from app.storage.sqlite import compaction, wal, writes
from app.storage.sqlite.lock import FileLock
from app.storage.sqlite.opening import set_up
from app.storage.sqlite.reader import SqliteReader
from app.storage.sqlite.schema import CENSUS
from app.storage.sqlite.watch import FileWatch
from app.storage.sqlite.worker import Operation, SqliteWorker, T
from app.storage.summaries import SummaryRow
from app.storage.usage import Usage
from app.storage.write_refusals import WriteRefusals, records_outcomes, records_refusals

# Only a long reader makes a write-ahead log grow this far.
LONG_WAL_BYTES = 128 << 20
SYNCHRONOUS = {Durability.PROCESS: "NORMAL", Durability.FSYNC: "FULL"}
CHECK_SECONDS = 1.0
SUMMARIES_PER_STEP = 256


class SqliteStore(SqliteReader):
    """Keeps streams in a file: one thread writes, another reads."""

    is_exclusive = True
    retries = 0

    def __init__(self, path: Path, busy_seconds: float = 1.0, durability: Durability = Durability.PROCESS) -> None:
        super().__init__(path, busy_seconds)
        self._synchronous = SYNCHRONOUS[durability]
        self._tokens = count(1)
        self.windows = MemoryStorage()
        self.write_refusals = WriteRefusals()
        self._lock: FileLock | None = None
        self._checking: asyncio.Task[None] | None = None
        self.writer = SqliteWorker(self._connect_writer, "BEGIN IMMEDIATE")

    async def open(self) -> None:
        """Lock the file, create or check its tables, and finish the deletions of an earlier process."""
        self._lock = FileLock(self._resolve())
        self._lock.acquire()
        try:
            wal.refuse_mismatch(self.path)
            await self.writer.start()
            await self._begin()
            await self._reader.start()
            self._checking = asyncio.create_task(self._check_files())
        except BaseException:
            await self.close()
            raise

    async def _begin(self) -> None:
        try:
            await self.writer.run(_touch)
            await self._purge()
        except StoreUnavailable as error:
            if error.cause not in (Cause.FULL, Cause.FAILED):
                raise  # what is full can be read, and may have usage later

    async def close(self) -> None:
        """Finish the waiting calls and release the file."""
        if self._checking is not None:
            self._checking.cancel()
        is_ended = all([await worker.stop() for worker in (self._reader, self.writer)])
        if self._lock is not None and is_ended:  # a hanging thread may still write
            self._lock.release()

    async def check(self) -> list[str]:
        """Begin a write, and warn of a write-ahead log that cannot be reset."""
        await self.writer.run(_touch)
        usage = await self.usage()
        warnings = usage.warnings(f"the disk of {self.path}")
        if usage.wal_bytes > LONG_WAL_BYTES:
            warnings.append(f"the write-ahead file takes {usage.wal_bytes >> 20} MiB: is a long reader holding it?")
        return warnings

    async def usage(self) -> Usage:
        """Measure the files, and the disk or the file size limit of the process, whichever is fuller."""
        try:
            return await asyncio.to_thread(self._measure)
        except OSError as error:
            raise StoreUnavailable(f"cannot measure {self.path}: {error.strerror}") from error

    def wal_bytes(self) -> int:
        """Give the size of the write-ahead log."""
        return wal.size_of(wal.wal_path(self.path))

    async def acquire(self, stream: str, owner: str, seconds: float, keep_seconds: float = 0.0) -> int:
        """Grant every lease: the lock on the file keeps other writers out."""
        return next(self._tokens)

    async def ask(self, stream: str, owner: str) -> None:
        """Do nothing: there is nobody to ask."""

    async def wanted(self, owner: str) -> set[str]:
        """Give none: nobody asks."""
        return set()

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Give none: no lease can be lost."""
        return set()

    async def release(self, tokens: Mapping[str, int]) -> None:
        """Do nothing: leases do not end."""

    @records_outcomes
    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Create a stream."""
        check_position(snapshot.position)
        return await self.writer.run(partial(writes.create, stream=stream, snapshot=snapshot, bounds=bounds))

    @records_outcomes
    async def append(
        self,
        stream: str,
        after: Position,
        entry: Entry,
        labels: Mapping[int, bytes] = NO_LABELS,
        token: int = 0,
        incidents: Sequence[IncidentRow] = NO_INCIDENTS,
    ) -> None:
        """Add an entry at the head."""
        check_append(after, entry, labels)
        check_incidents(incidents)
        write = partial(writes.append, stream=stream, after=after, entry=entry, labels=dict(labels))
        await self.writer.run(partial(write, incidents=incidents))

    @records_refusals
    async def append_each(self, appends: Sequence[Append]) -> list[StoreError | None]:
        """Append to many logs, in one step of the thread."""
        for one in appends:
            check_append(one.after, one.entry, one.labels)
            check_incidents(one.incidents)
        outcomes = await self.writer.run(partial(writes.append_each, appends=appends))
        self.write_refusals.note(outcomes)
        return outcomes

    @records_refusals
    async def save_snapshot(
        self,
        stream: str,
        snapshot: Snapshot,
        keep_from_seq: int,
        token: int = 0,
        *,
        as_base: bool = False,
        keep_labels: bool = False,
    ) -> None:
        """Replace the snapshot and trim, step by step."""
        check_position(snapshot.position)
        last = last_trimmable(snapshot.position, keep_from_seq)
        save = partial(writes.save_snapshot, stream=stream, snapshot=snapshot, last=last, as_base=as_base)
        await self.writer.run(save)
        while await self.writer.run(partial(compaction.trim, stream=stream, last=last, keep_labels=keep_labels)):
            pass

    @records_refusals
    async def compact(
        self, stream: str, block: StoredBlock, buckets: Mapping[int, bytes] = NO_BUCKETS, token: int = 0
    ) -> None:
        """Put a block in the place of its entries, which are removed step by step."""
        check_compact(block, buckets)
        await self.writer.run(partial(compaction.put_block, stream=stream, block=block, buckets=buckets))
        while await self.writer.run(partial(compaction.remove_packed, stream=stream)):
            pass

    @records_refusals
    async def put_incidents(self, stream: str, rows: Sequence[IncidentRow], token: int = 0) -> None:
        """Put incidents into the index."""
        check_incidents(rows)
        await self.writer.run(partial(writes.put_incidents, stream=stream, rows=rows))

    @records_refusals
    async def put_file(
        self, stream: str, row: FileRow, token: int = 0, labels: Mapping[int, bytes] = NO_LABELS
    ) -> None:
        """Put a file into the index."""
        check_file(row)
        await self.writer.run(partial(writes.put_file, stream=stream, row=row, labels=dict(labels)))

    @records_refusals
    async def drop_files(self, stream: str, last_seq: int, token: int = 0) -> None:
        """Take files out of the index, and drop labels."""
        await self.writer.run(partial(writes.drop_files, stream=stream, last_seq=last_seq))

    async def move_changes(self, gone: Sequence[Mark], come: Sequence[Mark] = ()) -> None:
        """Move marks."""
        await self.writer.run(partial(writes.move_changes, gone=gone, come=come))

    async def put_summaries(self, rows: Sequence[SummaryRow]) -> None:
        """Keep the summaries of streams, a few at a time."""
        for begin in range(0, len(rows), SUMMARIES_PER_STEP):
            part = rows[begin : begin + SUMMARIES_PER_STEP]
            await self.writer.run(partial(writes.put_summaries, rows=part))

    @records_refusals
    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Replace the stream's state."""
        check_replace(after, snapshot)
        await self.writer.run(partial(writes.replace, stream=stream, after=after, snapshot=snapshot))
        await self._purge_if_possible()

    @records_refusals
    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Start at a snapshot, whatever is there."""
        check_position(snapshot.position)
        await self.writer.run(partial(writes.restore, stream=stream, snapshot=snapshot))
        await self._purge_if_possible()

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Delete a stream."""
        existed = await self.writer.run(partial(writes.delete, stream=stream))
        await self._purge_if_possible()
        return existed

    @records_outcomes
    async def put_document(self, kind: DocumentKind, name: str, body: bytes, expected: bytes | None = None) -> bool:
        """Keep a document in the place of the expected one."""
        return await self.writer.run(partial(writes.put_document, kind=kind, name=name, body=body, expected=expected))

    async def delete_document(self, kind: DocumentKind, name: str, expected: bytes) -> bool:
        """Delete the expected document."""
        return await self.writer.run(partial(writes.delete_document, kind=kind, name=name, expected=expected))

    async def _read(self, operation: Operation[T]) -> T:
        """Read; if the files cannot be read, let the writer, which watches them, say what happened to them."""
        try:
            return await super()._read(operation)
        except StoreUnavailable as error:
            if error.cause is not Cause.FAILED:
                raise
            raise await self._explain(error) from error
        except StoreCorrupt as error:
            raise await self._explain(error) from error

    async def _explain(self, error: StoreError) -> StoreError:
        try:
            await self.writer.run(_touch)
        except StoreUnavailable as fault:
            return fault if fault.cause is Cause.REPLACED else error
        except StoreError:
            pass
        return error

    def _measure(self) -> Usage:
        disk = os.statvfs(self.path.parent)
        size_bytes = disk.f_blocks * disk.f_frsize
        files = wal.size_of(self.path), self.wal_bytes()
        of_disk = Usage(size_bytes - disk.f_bavail * disk.f_frsize, size_bytes, *files)
        longest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        of_file = Usage(max(files), max(0, longest), *files)  # -1 is no limit
        return max(of_disk, of_file, key=lambda usage: usage.share)

    async def _check_files(self) -> None:
        """Check the files also while nobody writes: what is lost can still be saved then."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            with suppress(StoreError):
                await self.writer.run(_touch)

    async def _purge_if_possible(self) -> None:
        with suppress(StoreUnavailable):  # the stream is gone; the next purge removes the rest
            await self._purge()

    async def _purge(self) -> None:
        while await self.writer.run(writes.purge):
            pass

    def _connect_writer(self) -> sqlite3.Connection:
        assert self._lock is not None
        connection = self._connect("rwc")
        watch = FileWatch(self.path, self._lock.descriptor)
        try:
            watch.begin(connection, set_up(connection, self.path, self._synchronous))
            connection.executescript(CENSUS)
        except BaseException:
            connection.close()
            raise
        self.writer.watch = watch
        return connection


def _touch(connection: sqlite3.Connection) -> None:
    """Write without changing anything, so that a full or read-only file shows."""
    connection.execute("DELETE FROM doomed WHERE stream = -1")
