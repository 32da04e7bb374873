"""Reads the streams of an SQLite file, also while another process writes them."""

import os
import sqlite3
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from app.storage.blocks import KnownIds, StoredBlock
from app.storage.errors import StoreUnavailable
from app.storage.files import FileRow
from app.storage.incidents import NEW, IncidentChange, IncidentKey, IncidentRow
from app.storage.interface import DocumentKind, Remains, Silence, StreamSize
from app.storage.log import Entry, Position, Snapshot
from app.storage.pages import is_full, possible_seqs
from app.storage.sqlite import reads, wal
from app.storage.sqlite.schema import APPLICATION_ID, LATER_TABLES, has_table, refuse_foreign, take_sources
from app.storage.sqlite.worker import Operation, SqliteWorker, T, cause_of

# Look for this many samples at a time, so that other reads get their turn in between.
SEQS_PER_STEP = 1_000


class SqliteReader:
    """Reads the streams of a file, also while another process writes them."""

    application_id = APPLICATION_ID
    mode = "ro"

    def __init__(self, path: Path, busy_seconds: float = 1.0) -> None:
        self.path, self._busy_seconds = path, busy_seconds
        self._reader = SqliteWorker(self._connect_reader, "BEGIN")

    async def open(self) -> None:
        """Check that database and -wal belong together, and open them."""
        wal.refuse_mismatch(self._resolve())
        await self._reader.start()

    async def close(self) -> None:
        """Finish the waiting reads."""
        await self._reader.stop()

    def exists(self) -> bool:
        """Tell whether there is a file."""
        return self.path.exists()

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""
        return await self._read(partial(reads.load, stream=stream))

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is left of a stream."""
        return await self._read(partial(reads.inspect, stream=stream))

    async def packed_to(self, stream: str) -> Position | None:
        """Say where the newest block ends."""
        return await self._read(partial(reads.end_of_blocks, stream=stream))

    async def entries(self, stream: str, after: Position, limit: int) -> StoredBlock | list[Entry]:
        """Read a block, or a page of the log."""
        return await self._read(partial(reads.entries, stream=stream, after=after, limit=limit))

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[StoredBlock | Entry]:
        """Read the blocks and batches that hold these samples."""
        remaining = iter(possible_seqs(seqs))
        found: dict[Position, StoredBlock | Entry] = {}
        while not is_full(found.values()) and (part := list(islice(remaining, SEQS_PER_STEP))):
            batches = await self._read(partial(reads.entries_holding, stream=stream, seqs=part))
            found.update((entry.position, entry) for entry in batches)
        return list(found.values())

    async def find_ids(self, stream: str, ids: Sequence[str], hashes: Sequence[int] = ()) -> KnownIds:
        """Give the seqs of known ids, and buckets."""
        return await self._read(partial(reads.find_ids, stream=stream, ids=ids, hashes=hashes))

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        return await self._read(partial(reads.find_labels, stream=stream, seqs=possible_seqs(seqs)))

    async def labels_until(self, stream: str, seq: int) -> dict[int, bytes]:
        """Give the records of labelled samples, in order."""
        return await self._read(partial(reads.labels_until, stream=stream, seq=seq))

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read incidents in order."""
        return await self._read(partial(reads.incidents, stream=stream))

    async def find_incidents(self, stream: str, seqs: Sequence[int]) -> dict[int, IncidentRow]:
        """Give the known ones of these incidents."""
        return await self._read(partial(reads.find_incidents, stream=stream, seqs=possible_seqs(seqs)))

    async def files(self, stream: str) -> list[FileRow]:
        """Read the index of files in order."""
        return await self._read(partial(reads.files, stream=stream))

    async def file_ids(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the ids of files."""
        return await self._read(partial(reads.file_ids, stream=stream, seqs=possible_seqs(seqs)))

    async def newest_incidents(self, before: IncidentKey | None, limit: int) -> list[IncidentKey]:
        """List incidents of all streams."""
        return await self._read(partial(reads.newest_incidents, before=before, limit=limit))

    async def changed_incidents(
        self, limit: int, lane: str = NEW, after: IncidentChange | None = None
    ) -> list[IncidentChange]:
        """Read the oldest marks of a lane."""
        return await self._read(partial(reads.changed_incidents, limit=limit, lane=lane, after=after))

    async def count_changes(self, lane: str = NEW) -> int:
        """Count the marks of a lane."""
        return await self._read(partial(reads.count_changes, lane=lane))

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""
        return await self._read(partial(reads.streams, after=after, limit=limit))

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long streams have been silent."""
        return await self._read(partial(reads.silences, streams=streams))

    async def find_summaries(self, streams: Sequence[str]) -> dict[str, bytes]:
        """Give known summaries."""
        return await self._read(partial(reads.find_summaries, streams=streams))

    async def summaries(self, after: str, limit: int) -> list[tuple[str, bytes | None]]:
        """List streams in order with their summaries."""
        return await self._read(partial(reads.summaries, after=after, limit=limit))

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        return await self._read(partial(reads.size, stream=stream))

    async def document(self, kind: DocumentKind, name: str) -> bytes | None:
        """Read a document."""
        return await self._read(partial(reads.document, kind=kind, name=name))

    async def documents(self, kind: DocumentKind) -> dict[str, bytes]:
        """Read documents in order."""
        return await self._read(partial(reads.documents, kind=kind))

    async def _read(self, operation: Operation[T]) -> T:
        """Run a read, in turn with the others."""
        return await self._reader.run(operation)

    def _resolve(self) -> Path:
        """Follow all links: SQLite keeps its other files beside the real file."""
        self.path = Path(os.path.realpath(self.path))
        return self.path

    def _connect(self, mode: str) -> sqlite3.Connection:
        name = f"file:{quote(str(self.path))}?mode={mode}"
        try:
            return sqlite3.connect(name, timeout=self._busy_seconds, isolation_level=None, uri=True)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"SQLite: {error}: {self.path}", cause_of(error)) from error

    def _connect_reader(self) -> sqlite3.Connection:
        """Connect read-only: closing the connection then leaves the files as they are."""
        connection = self._connect(self.mode)
        try:
            refuse_foreign(connection, self.application_id)
            missing = [name for name in LATER_TABLES if not has_table(connection, name)]
            for name in missing:
                connection.execute(LATER_TABLES[name].replace("TABLE", "TEMP TABLE"))
            if "documents" in missing:
                take_sources(connection)
        except BaseException:
            connection.close()
            raise
        return connection
