"""A store in memory: it defines what the others do, and serves tests."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.storage.base import (
    NO_LABELS,
    Entry,
    Position,
    Snapshot,
    StaleWriter,
    StreamNotFound,
    StreamSize,
    check_append,
    check_position,
    check_replace,
    collect_batches,
    last_trimmable,
    possible_seqs,
)


@dataclass(slots=True)
class StoredStream:
    """All that is kept of one stream."""

    snapshot: Snapshot
    head: Position
    log: list[Entry] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    labels: dict[int, bytes] = field(default_factory=dict)

    def count_until(self, position: Position) -> int:
        """Count the entries at or before a position."""
        return bisect_right(self.log, position, key=lambda entry: entry.position)

    def next_batch(self, seq: int) -> Entry | None:
        """Give the first batch that ends at or after a sample."""
        later = self.log[self.count_until(Position(seq, -1)) :]
        return next((entry for entry in later if entry.first_seq is not None), None)

    def trim(self, last: Position) -> None:
        """Drop the entries up to a position, with what was known by them."""
        dropped = self.log[: self.count_until(last)]
        del self.log[: len(dropped)]
        for entry in dropped:
            self._forget(entry)

    def _forget(self, entry: Entry) -> None:
        for name, seq in entry.named_samples():
            if self.ids.get(name) == seq:  # a newer sample may bear the same id
                del self.ids[name]
        for seq in [seq for seq in self.labels if entry.holds(seq)]:
            del self.labels[seq]


class MemoryStore:
    """Keeps streams as long as the process lives."""

    def __init__(self) -> None:
        self._streams: dict[str, StoredStream] = {}

    async def open(self) -> None:
        """Nothing to take."""

    async def close(self) -> None:
        """Nothing to give back: what was stored stays until the object goes."""

    async def check(self) -> list[str]:
        """Warn that nothing outlives the process."""
        return ["the memory store forgets everything when the process ends"]

    async def create(self, stream: str, snapshot: Snapshot) -> bool:
        """Begin a stream."""
        check_position(snapshot.position)
        if stream in self._streams:
            return False
        self._streams[stream] = StoredStream(snapshot, snapshot.position)
        return True

    async def append(self, stream: str, after: Position, entry: Entry, labels: Mapping[int, bytes] = NO_LABELS) -> None:
        """Add an entry at the head."""
        check_append(after, entry, labels)
        stored = self._get(stream)
        if stored.head != after:
            if stored.log and (stored.log[-1].position, stored.log[-1].body) == (entry.position, entry.body):
                return
            raise StaleWriter(stream, after, stored.head)
        stored.log.append(entry)
        stored.head = entry.position
        stored.ids.update(entry.named_samples())
        stored.labels.update(labels)

    async def save_snapshot(self, stream: str, snapshot: Snapshot, keep_from_seq: int) -> None:
        """Replace the snapshot and trim."""
        stored = self._get(stream)
        if snapshot.position < stored.snapshot.position:
            raise StaleWriter(stream, snapshot.position, stored.snapshot.position)
        if snapshot.position > stored.head:
            raise StaleWriter(stream, snapshot.position, stored.head)
        stored.snapshot = snapshot
        stored.trim(last_trimmable(snapshot.position, keep_from_seq))

    async def replace(self, stream: str, after: Position, snapshot: Snapshot) -> None:
        """Go on from a foreign state."""
        check_replace(after, snapshot)
        stored = self._get(stream)
        if stored.head != after:
            if stored.head == snapshot.position and stored.snapshot == snapshot:
                return
            raise StaleWriter(stream, after, stored.head)
        self._streams[stream] = StoredStream(snapshot, snapshot.position)

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""
        stored = self._streams.get(stream)
        return None if stored is None else (stored.snapshot, stored.head)

    async def entries(self, stream: str, after: Position, limit: int) -> list[Entry]:
        """Read a page of the log."""
        stored = self._streams.get(stream)
        if stored is None:
            return []
        start = stored.count_until(after)
        return stored.log[start : start + limit]

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[Entry]:
        """Read the batches that hold these samples."""
        stored = self._streams.get(stream)
        return [] if stored is None else collect_batches(possible_seqs(seqs), stored.next_batch)

    async def find_ids(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Give the seqs of known ids."""
        known = self._streams[stream].ids if stream in self._streams else {}
        return {name: known[name] for name in ids if name in known}

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        known = self._streams[stream].labels if stream in self._streams else {}
        return {seq: known[seq] for seq in possible_seqs(seqs) if seq in known}

    async def delete(self, stream: str) -> bool:
        """Forget a stream."""
        return self._streams.pop(stream, None) is not None

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""
        return sorted(name for name in self._streams if name > after)[:limit]

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        stored = self._get(stream)
        log_bytes = sum(len(entry.body) for entry in stored.log)
        return StreamSize(len(stored.log), log_bytes, len(stored.snapshot.body))

    def _get(self, stream: str) -> StoredStream:
        if stream not in self._streams:
            raise StreamNotFound(stream)
        return self._streams[stream]
