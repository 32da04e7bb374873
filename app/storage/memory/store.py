"""A store in memory: the reference for the others, and for tests."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from time import monotonic, time

from limits.aio.storage import MemoryStorage

from app.storage.blocks import NO_BUCKETS, StoredBlock, check_compact
from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import Fenced, LeaseHeld, StaleWriter, StoreError, TooManyStreams
from app.storage.files import FileRow, check_file
from app.storage.incidents import MARKS_KEPT, NEW, NO_INCIDENTS, IncidentChange, IncidentRow, Mark, check_incidents
from app.storage.interface import NO_LABELS, Append, DocumentKind
from app.storage.log import (
    Entry,
    Position,
    Snapshot,
    base_is_due,
    check_append,
    check_position,
    check_replace,
    last_trimmable,
)
from app.storage.memory.reader import MemoryReader
from app.storage.memory.stored import StoredLease, StoredStream
from app.storage.summaries import SummaryRow
from app.storage.usage import Usage
from app.storage.write_refusals import WriteRefusals


class MemoryStore(MemoryReader):
    """Keeps streams as long as the process lives."""

    is_exclusive = False
    retries = 0

    def __init__(self, monotonic: Callable[[], float] = monotonic) -> None:
        super().__init__(monotonic)
        self.windows = MemoryStorage()
        self.write_refusals = WriteRefusals()
        self.leases: dict[str, StoredLease] = {}
        self._wanted: dict[str, set[str]] = {}
        self._tokens = count(1)

    async def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing: the streams stay until the object is gone."""

    async def usage(self) -> Usage:
        """Give no figures: no limit is known."""
        return Usage()

    async def check(self) -> list[str]:
        """Warn that nothing outlives the process."""
        return ["the memory store forgets everything when the process ends"]

    async def acquire(self, stream: str, owner: str, seconds: float, keep_seconds: float = 0.0) -> int:
        """Lease a stream."""
        now, lease = self._monotonic(), self._lease(stream)
        if lease is not None and lease.owner != owner:
            raise LeaseHeld(stream, lease.ends - now, lease.owner, max(0.0, lease.kept_until - now))
        token = next(self._tokens)
        self.leases[stream] = StoredLease(owner, token, now + seconds, now + keep_seconds)
        if stream in self.stored:
            self.stored[stream].fence = token
        return token

    async def ask(self, stream: str, owner: str) -> None:
        """Ask the holder for a stream."""
        self._wanted.setdefault(owner, set()).add(stream)

    async def wanted(self, owner: str) -> set[str]:
        """Give the streams that others have asked for."""
        return self._wanted.pop(owner, set())

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Extend leases."""
        kept = {stream: token for stream, token in tokens.items() if self._is_kept(stream, token)}
        ends = self._monotonic() + seconds
        for stream, token in kept.items():
            self.leases.setdefault(stream, StoredLease(owner, token, ends)).ends = ends
        return tokens.keys() - kept.keys()

    async def release(self, tokens: Mapping[str, int]) -> None:
        """End leases."""
        for stream, token in tokens.items():
            lease = self.leases.get(stream)
            if lease is not None and lease.token == token:
                del self.leases[stream]

    def _is_kept(self, stream: str, token: int) -> bool:
        """Tell whether nobody else has taken the lease since, even if it has ended."""
        lease, stored = self.leases.get(stream), self.stored.get(stream)
        return lease.token == token if lease else stored is not None and stored.fence == token

    def _lease(self, stream: str) -> StoredLease | None:
        """Give the lease if it has not ended."""
        lease = self.leases.get(stream)
        return lease if lease is not None and lease.ends > self._monotonic() else None

    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Create a stream."""
        check_position(snapshot.position)
        if stream in self.stored:
            return False
        lease = self._lease(stream)
        if lease is not None and token < lease.token:
            raise Fenced(stream, token, lease.token)
        for bound in bounds:
            count = len(self.stored)
            if bound.prefix:
                count = sum(name.startswith(bound.prefix) for name in self.stored)
            if count >= bound.most:
                raise TooManyStreams(stream, bound, count)
        self._put(stream, snapshot, token)
        return True

    def _put(self, stream: str, snapshot: Snapshot, fence: int) -> None:
        self.stored[stream] = StoredStream(snapshot, snapshot.position, fence=fence, changed_at=self._monotonic())

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
        stored = self._get_for(stream, token)
        if stored.head != after:
            if stored.log and (stored.log[-1].position, stored.log[-1].body) == (entry.position, entry.body):
                return
            raise StaleWriter(stream, after, stored.head)
        stored.log.append(entry)
        stored.head, stored.changed_at = entry.position, self._monotonic()
        stored.ids.update(entry.named_samples())
        stored.labels.update(labels)
        if incidents:
            stored.put_incidents(incidents)
            self._mark(stream, entry.position, incidents)

    def _mark(self, stream: str, position: Position, rows: Sequence[IncidentRow]) -> None:
        """Mark incidents as changed."""
        now = round(time() * 1000)
        changes = self._lanes[NEW]
        changes.update(IncidentChange(now, stream, row.seq, position) for row in rows if row.is_news)
        while len(changes) > MARKS_KEPT:
            changes.remove(min(changes))

    async def append_each(self, appends: Sequence[Append]) -> list[StoreError | None]:
        """Append to many logs."""
        for one in appends:
            check_append(one.after, one.entry, one.labels)
            check_incidents(one.incidents)
        outcomes: list[StoreError | None] = []
        for one in appends:
            try:
                await self.append(*one)
                outcomes.append(None)
            except StoreError as error:
                outcomes.append(error)
        return outcomes

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
        """Replace the snapshot and trim."""
        stored = self._get_for(stream, token)
        if snapshot.position < stored.snapshot.position:
            raise StaleWriter(stream, snapshot.position, stored.snapshot.position)
        if snapshot.position > stored.head:
            raise StaleWriter(stream, snapshot.position, stored.head)
        last = last_trimmable(snapshot.position, keep_from_seq)
        based = None if stored.base is None else stored.base.position
        if as_base or base_is_due(based, snapshot.position, last):
            stored.base = snapshot
        stored.snapshot = snapshot
        stored.trim(last, keep_labels=keep_labels)

    async def compact(
        self, stream: str, block: StoredBlock, buckets: Mapping[int, bytes] = NO_BUCKETS, token: int = 0
    ) -> None:
        """Put a block in the place of its entries."""
        check_compact(block, buckets)
        self._get_for(stream, token).compact(stream, block, buckets)

    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Replace the stream's state."""
        check_replace(after, snapshot)
        stored = self._get_for(stream, token)
        if stored.head != after:
            if stored.head == snapshot.position and stored.snapshot == snapshot:
                return
            raise StaleWriter(stream, after, stored.head)
        self._put(stream, snapshot, stored.fence)

    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Start at a snapshot, whatever is there."""
        check_position(snapshot.position)
        if stream in self.stored:
            self._get_for(stream, token)
        self._put(stream, snapshot, token)

    async def put_incidents(self, stream: str, rows: Sequence[IncidentRow], token: int = 0) -> None:
        """Put incidents into the index."""
        check_incidents(rows)
        self._get_for(stream, token).put_incidents(rows)

    async def put_file(
        self, stream: str, row: FileRow, token: int = 0, labels: Mapping[int, bytes] = NO_LABELS
    ) -> None:
        """Put a file into the index."""
        check_file(row)
        stored = self._get_for(stream, token)
        stored.files[row.seq] = row
        stored.labels.update(labels)

    async def drop_files(self, stream: str, last_seq: int, token: int = 0) -> None:
        """Take files out of the index, and drop labels."""
        stored = self._get_for(stream, token)
        stored.files = {seq: row for seq, row in stored.files.items() if seq > last_seq}
        stored.drop_labels(last_seq)

    async def move_changes(self, gone: Sequence[Mark], come: Sequence[Mark] = ()) -> None:
        """Move marks."""
        for lane, change in come:
            self._lanes[lane].add(change)
        for lane, change in gone:
            self._lanes[lane].discard(change)

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Delete a stream."""
        if stream in self.stored:
            self._get_for(stream, token)
            self.leases.pop(stream, None)
        return self.stored.pop(stream, None) is not None

    async def put_summaries(self, rows: Sequence[SummaryRow]) -> None:
        """Keep the summaries of streams."""
        for row in rows:
            stored = self.stored.get(row.stream)
            if stored is not None and (stored.summary is None if row.only_if_missing else row.token >= stored.fence):
                stored.summary = row.body

    async def put_document(self, kind: DocumentKind, name: str, body: bytes, expected: bytes | None = None) -> bool:
        """Keep a document in the place of the expected one."""
        if self._documents[kind].get(name) not in (expected, body):
            return False
        self._documents[kind][name] = body
        return True

    async def delete_document(self, kind: DocumentKind, name: str, expected: bytes) -> bool:
        """Delete the expected document."""
        if self._documents[kind].get(name) not in (expected, None):
            return False
        self._documents[kind].pop(name, None)
        return True

    def _get_for(self, stream: str, token: int) -> StoredStream:
        """Give a stream to a writer; Fenced if a newer writer has come."""
        stored = self._get(stream)
        if token < stored.fence:
            raise Fenced(stream, token, stored.fence)
        stored.fence = token
        return stored
