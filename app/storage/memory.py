"""A store in memory: the reference for the others, and for tests."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic, time

from limits.aio.storage import MemoryStorage

from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import Fenced, LeaseHeld, StaleWriter, StoreError, StreamNotFound, TooManyStreams
from app.storage.incidents import (
    INCIDENTS_KEPT,
    MARKS_KEPT,
    NEW,
    NO_INCIDENTS,
    IncidentChange,
    IncidentKey,
    IncidentRow,
    Mark,
    check_incidents,
)
from app.storage.interface import NO_LABELS, Append, DocumentKind, Remains, Silence, StreamSize
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
from app.storage.pages import collect_batches, possible_seqs, take_page
from app.storage.summaries import SummaryRow
from app.storage.usage import Usage
from app.storage.write_refusals import WriteRefusals


@dataclass(slots=True)
class StoredStream:
    """Everything kept of one stream."""

    snapshot: Snapshot
    head: Position
    log: list[Entry] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    labels: dict[int, bytes] = field(default_factory=dict)
    incidents: dict[int, IncidentRow] = field(default_factory=dict)
    fence: int = 0
    changed_at: float = 0.0
    base: Snapshot | None = None
    summary: bytes | None = None

    def count_until(self, position: Position) -> int:
        """Count the entries at or before a position."""
        return bisect_right(self.log, position, key=lambda entry: entry.position)

    def next_batch(self, seq: int) -> Entry | None:
        """Give the first batch that ends at or after a sample."""
        later = self.log[self.count_until(Position.before(seq)) :]
        return next((entry for entry in later if entry.first_seq is not None), None)

    def trim(self, last: Position) -> None:
        """Drop the entries up to a position, with their ids and labels."""
        dropped = self.log[: self.count_until(last)]
        del self.log[: len(dropped)]
        for entry in dropped:
            self._forget(entry)

    def put_incidents(self, rows: Sequence[IncidentRow]) -> None:
        """Put incidents into the index, and drop the oldest beyond what it keeps."""
        self.incidents.update((row.seq, row._replace(is_news=False)) for row in rows)
        for seq in sorted(self.incidents)[:-INCIDENTS_KEPT]:
            del self.incidents[seq]

    def _forget(self, entry: Entry) -> None:
        for name, seq in entry.named_samples():
            if self.ids.get(name) == seq:  # a newer sample may bear the same id
                del self.ids[name]
        for seq in [seq for seq in self.labels if entry.holds(seq)]:
            del self.labels[seq]


@dataclass(slots=True)
class StoredLease:
    """Who may write, and until when."""

    owner: str
    token: int
    ends: float
    kept_until: float = 0.0


class MemoryStore:
    """Keeps streams as long as the process lives."""

    is_exclusive = False
    retries = 0

    def __init__(self, monotonic: Callable[[], float] = monotonic) -> None:
        self._monotonic = monotonic
        self.windows = MemoryStorage()
        self.write_refusals = WriteRefusals()
        self.stored: dict[str, StoredStream] = {}
        self.leases: dict[str, StoredLease] = {}
        self._wanted: dict[str, set[str]] = {}
        self._documents: defaultdict[DocumentKind, dict[str, bytes]] = defaultdict(dict)
        self._lanes: defaultdict[str, set[IncidentChange]] = defaultdict(set)
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
        self, stream: str, snapshot: Snapshot, keep_from_seq: int, token: int = 0, *, as_base: bool = False
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
        stored.trim(last)

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

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""
        stored = self.stored.get(stream)
        return None if stored is None else (stored.snapshot, stored.head)

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is there."""
        stored = self.stored.get(stream)
        return None if stored is None else Remains(stored.head, stored.snapshot, stored.base)

    async def entries(self, stream: str, after: Position, limit: int) -> list[Entry]:
        """Read a page of the log."""
        stored = self.stored.get(stream)
        if stored is None:
            return []
        start = stored.count_until(after)
        return take_page(stored.log[start : start + limit])

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[Entry]:
        """Read the batches that hold these samples."""
        stored = self.stored.get(stream)
        return [] if stored is None else collect_batches(possible_seqs(seqs), stored.next_batch)

    async def find_ids(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Give the seqs of known ids."""
        known = self.stored[stream].ids if stream in self.stored else {}
        return {name: known[name] for name in ids if name in known}

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        known = self.stored[stream].labels if stream in self.stored else {}
        return {seq: known[seq] for seq in possible_seqs(seqs) if seq in known}

    async def put_incidents(self, stream: str, rows: Sequence[IncidentRow], token: int = 0) -> None:
        """Put incidents into the index."""
        check_incidents(rows)
        self._get_for(stream, token).put_incidents(rows)

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read incidents in order."""
        known = self.stored[stream].incidents if stream in self.stored else {}
        return [known[seq] for seq in sorted(known)]

    async def find_incidents(self, stream: str, seqs: Sequence[int]) -> dict[int, IncidentRow]:
        """Give the known ones of these incidents."""
        known = self.stored[stream].incidents if stream in self.stored else {}
        return {seq: known[seq] for seq in possible_seqs(seqs) if seq in known}

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

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""
        return sorted(name for name in self.stored if name > after)[:limit]

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long streams have been silent."""
        now, known = self._monotonic(), {name: self.stored[name] for name in streams if name in self.stored}
        return {name: Silence(now - stored.changed_at, len(stored.log)) for name, stored in known.items()}

    async def put_summaries(self, rows: Sequence[SummaryRow]) -> None:
        """Keep the summaries of streams."""
        for row in rows:
            stored = self.stored.get(row.stream)
            if stored is not None and (stored.summary is None if row.only_if_missing else row.token >= stored.fence):
                stored.summary = row.body

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
        log_bytes = sum(len(entry.body) for entry in stored.log)
        base_bytes = 0 if stored.base is None else len(stored.base.body)
        return StreamSize(len(stored.log), log_bytes, len(stored.snapshot.body) + base_bytes)

    async def put_document(self, kind: DocumentKind, name: str, body: bytes) -> bool:
        """Keep a document."""
        is_new = name not in self._documents[kind]
        self._documents[kind][name] = body
        return is_new

    async def document(self, kind: DocumentKind, name: str) -> bytes | None:
        """Read a document."""
        return self._documents[kind].get(name)

    async def documents(self, kind: DocumentKind) -> dict[str, bytes]:
        """Read documents in order."""
        return dict(sorted(self._documents[kind].items()))

    async def delete_document(self, kind: DocumentKind, name: str) -> bool:
        """Delete a document."""
        return self._documents[kind].pop(name, None) is not None

    def _get(self, stream: str) -> StoredStream:
        if stream not in self.stored:
            raise StreamNotFound(stream)
        return self.stored[stream]

    def _get_for(self, stream: str, token: int) -> StoredStream:
        """Give a stream to a writer; Fenced if a newer writer has come."""
        stored = self._get(stream)
        if token < stored.fence:
            raise Fenced(stream, token, stored.fence)
        stored.fence = token
        return stored
