"""Reads the streams of a store in memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from app.storage.blocks import KnownIds, StoredBlock, bucket_of
from app.storage.errors import StreamNotFound
from app.storage.files import FileRow
from app.storage.incidents import NEW, IncidentChange, IncidentKey, IncidentRow
from app.storage.interface import DocumentKind, Remains, Silence, StreamSize
from app.storage.log import Entry, Position, Snapshot
from app.storage.memory.stored import StoredStream
from app.storage.pages import collect_batches, possible_seqs, take_page


class MemoryReader:
    """Reads streams, each as it is stored."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.stored: dict[str, StoredStream] = {}
        self._documents: defaultdict[DocumentKind, dict[str, bytes]] = defaultdict(dict)
        self._lanes: defaultdict[str, set[IncidentChange]] = defaultdict(set)

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""
        stored = self.stored.get(stream)
        return None if stored is None else (stored.snapshot, stored.head)

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is there."""
        stored = self.stored.get(stream)
        return None if stored is None else Remains(stored.head, stored.snapshot, stored.base)

    async def packed_to(self, stream: str) -> Position | None:
        """Say where the newest block ends."""
        stored = self.stored.get(stream)
        return stored.blocks[-1].position if stored is not None and stored.blocks else None

    async def entries(self, stream: str, after: Position, limit: int) -> StoredBlock | list[Entry]:
        """Read a block, or a page of the log."""
        stored = self.stored.get(stream)
        if stored is None:
            return []
        if limit > 0 and (block := stored.block_after(after)) is not None:
            return block
        start = stored.count_until(after)
        return take_page(stored.log[start : start + limit])

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[StoredBlock | Entry]:
        """Read the blocks and batches that hold these samples."""
        stored = self.stored.get(stream)
        return [] if stored is None else collect_batches(possible_seqs(seqs), stored.next_batch)

    async def find_ids(self, stream: str, ids: Sequence[str], hashes: Sequence[int] = ()) -> KnownIds:
        """Give the seqs of known ids, and buckets."""
        stored = self.stored.get(stream)
        if stored is None:
            return KnownIds({})
        n_buckets = len(stored.buckets)
        numbers = {bucket_of(value, n_buckets) for value in hashes} if n_buckets else ()
        buckets = {number: stored.buckets[number] for number in numbers}
        return KnownIds({name: stored.ids[name] for name in ids if name in stored.ids}, n_buckets, buckets)

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        known = self.stored[stream].labels if stream in self.stored else {}
        return {seq: known[seq] for seq in possible_seqs(seqs) if seq in known}

    async def labels_until(self, stream: str, seq: int) -> dict[int, bytes]:
        """Give the records of labelled samples, in order."""
        known = self.stored[stream].labels if stream in self.stored else {}
        return {labelled: known[labelled] for labelled in sorted(known) if labelled <= seq}

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read incidents in order."""
        known = self.stored[stream].incidents if stream in self.stored else {}
        return [known[seq] for seq in sorted(known)]

    async def find_incidents(self, stream: str, seqs: Sequence[int]) -> dict[int, IncidentRow]:
        """Give the known ones of these incidents."""
        known = self.stored[stream].incidents if stream in self.stored else {}
        return {seq: known[seq] for seq in possible_seqs(seqs) if seq in known}

    async def files(self, stream: str) -> list[FileRow]:
        """Read the index of files in order."""
        known = self.stored[stream].files if stream in self.stored else {}
        return [known[seq]._replace(ids=b"") for seq in sorted(known)]

    async def file_ids(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the ids of files."""
        known = self.stored[stream].files if stream in self.stored else {}
        return {seq: known[seq].ids for seq in seqs if seq in known}

    async def newest_incidents(self, before: IncidentKey | None, limit: int) -> list[IncidentKey]:
        """List incidents of all streams."""
        keys = (
            IncidentKey(row.opened, stream, row.seq)
            for stream, stored in self.stored.items()
            for row in stored.incidents.values()
        )
        return sorted((key for key in keys if before is None or key < before), reverse=True)[:limit]

    async def changed_incidents(
        self, limit: int, lane: str = NEW, after: IncidentChange | None = None
    ) -> list[IncidentChange]:
        """Read the oldest marks of a lane."""
        return sorted(change for change in self._lanes[lane] if after is None or change > after)[:limit]

    async def count_changes(self, lane: str = NEW) -> int:
        """Count the marks of a lane."""
        return len(self._lanes[lane])

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""
        return sorted(name for name in self.stored if name > after)[:limit]

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long streams have been silent."""
        now, known = self._monotonic(), {name: self.stored[name] for name in streams if name in self.stored}
        return {name: Silence(now - stored.changed_at, stored.n_entries) for name, stored in known.items()}

    async def find_summaries(self, streams: Sequence[str]) -> dict[str, bytes]:
        """Give known summaries."""
        known = {name: self.stored[name].summary for name in streams if name in self.stored}
        return {name: summary for name, summary in known.items() if summary is not None}

    async def summaries(self, after: str, limit: int) -> list[tuple[str, bytes | None]]:
        """List streams in order with their summaries."""
        return [(name, self.stored[name].summary) for name in await self.streams(after, limit)]

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        stored = self._get(stream)
        bodies = (*(block.body for block in stored.blocks), *(entry.body for entry in stored.log))
        base_bytes = 0 if stored.base is None else len(stored.base.body)
        return StreamSize(stored.n_entries, sum(map(len, bodies)), len(stored.snapshot.body) + base_bytes)

    async def document(self, kind: DocumentKind, name: str) -> bytes | None:
        """Read a document."""
        return self._documents[kind].get(name)

    async def documents(self, kind: DocumentKind) -> dict[str, bytes]:
        """Read documents in order."""
        return dict(sorted(self._documents[kind].items()))

    def _get(self, stream: str) -> StoredStream:
        if stream not in self.stored:
            raise StreamNotFound(stream)
        return self.stored[stream]
