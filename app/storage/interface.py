"""What every store of streams promises, whatever keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from app.storage.blocks import NO_BUCKETS, KnownIds, StoredBlock
from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import StoreError
from app.storage.files import FileRow
from app.storage.incidents import NEW, NO_INCIDENTS, IncidentChange, IncidentKey, IncidentRow, Mark
from app.storage.log import Entry, Position, Snapshot
from app.storage.summaries import SummaryRow
from app.storage.usage import Usage
from app.storage.write_refusals import WriteRefusals

if TYPE_CHECKING:
    from limits.aio.storage import MemoryStorage

NO_LABELS: Mapping[int, bytes] = {}


class Durability(StrEnum):
    """What an acknowledged event survives."""

    PROCESS = "process"  # the end of the service's process
    FSYNC = "fsync"  # also a power loss
    REPLICAS = "replicas"  # also a fail-over to a replica


class DocumentKind(StrEnum):
    """What the store keeps by name beside the streams."""

    SOURCE = "source"
    RULE = "rule"
    TEMPLATE = "template"
    WINDOW = "window"
    ERASURE = "erasure"
    """A deleted stream whose archived files are to be erased."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of a stream, damaged or not; None means gone.

    `base` is an older snapshot than `snapshot`: the log continues both. `faults` says in words what else is wrong.
    """

    head: Position | None
    snapshot: Snapshot | None
    base: Snapshot | None
    faults: tuple[str, ...] = ()


class Append(NamedTuple):
    """What a stream's writer appends: the arguments of Store.append."""

    stream: str
    after: Position
    entry: Entry
    labels: Mapping[int, bytes] = NO_LABELS
    token: int = 0
    incidents: Sequence[IncidentRow] = NO_INCIDENTS


@dataclass(frozen=True, slots=True)
class Silence:
    """How long nothing was written to a stream, by the store's own clock, and how long its log is."""

    seconds: float
    log_entries: int


@dataclass(frozen=True, slots=True)
class StreamSize:
    """The size of one stream: its entries, also those in blocks; bytes of bodies and blocks, of both snapshots."""

    log_entries: int
    log_bytes: int
    snapshot_bytes: int


class Store(Protocol):
    """Keeps a snapshot, a log, and indexes of ids, labels and incidents of every stream; documents beside them.

    Any method may raise StoreUnavailable. A write changes everything it names or nothing, and may be repeated after a
    lost answer. A read gives "nothing" for a stream that does not exist, unless it says otherwise.

    A lease makes its holder the only writer of a stream as long as all goes well. Its fencing token enforces that: each
    write carries the token, and raises Fenced if the stream has seen a higher one.
    """

    is_exclusive: bool
    """Only one process at a time can use the store, so leases mean nothing."""

    @property
    def windows(self) -> "MemoryStorage":
        """Count requests in sliding windows, shared by all processes that use the store."""

    write_refusals: WriteRefusals
    """Which writes the store refused recently."""

    @property
    def retries(self) -> int:
        """How often a command was sent again after a failure."""

    async def open(self) -> None:
        """Open the store; may be tried again after StoreUnavailable."""

    async def close(self) -> None:
        """Answer the calls that wait, then close the store."""

    async def check(self) -> list[str]:
        """Check that the store answers; give warnings about how it is set up."""

    async def usage(self) -> Usage:
        """Measure how full the store is."""

    async def acquire(self, stream: str, owner: str, seconds: float, keep_seconds: float = 0.0) -> int:
        """Lease a stream, which need not exist, and give a token higher than all before.

        The holder will not hand the stream over for `keep_seconds`. Raises LeaseHeld if another owner has the lease.
        """

    async def ask(self, stream: str, owner: str) -> None:
        """Ask `owner`, who holds the stream, to hand it over; it finds the request at its next `wanted`."""

    async def wanted(self, owner: str) -> set[str]:
        """Give the streams that others have asked this owner for since its last call."""

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Extend leases, even ended ones that nobody has taken since; give the streams that are lost."""

    async def release(self, tokens: Mapping[str, int]) -> None:
        """End those of these leases that are still held."""

    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Create a stream whose head is the snapshot; False, and nothing changed, if it exists.

        Raises TooManyStreams if a bound allows no more, however many are created at once.
        """

    async def append(
        self,
        stream: str,
        after: Position,
        entry: Entry,
        labels: Mapping[int, bytes] = NO_LABELS,
        token: int = 0,
        incidents: Sequence[IncidentRow] = NO_INCIDENTS,
    ) -> None:
        """Add an entry, its ids, the records of labelled samples, and incidents, if the log's head is `after`.

        The index keeps the newest INCIDENTS_KEPT incidents of a stream. Marks of changes may stay though the append
        fails. Raises StaleWriter, StreamNotFound; ValueError if the entry does not follow `after`.
        """

    async def append_each(self, appends: Sequence[Append]) -> list[StoreError | None]:
        """Append to the logs of many streams: for each the error that append would raise, or None."""

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
        """Replace the snapshot, then trim older entries that end before `keep_from_seq`, with their ids and labels.

        With keep_labels the labels stay until drop_files, since the samples are archived.

        The snapshot also becomes the base if there is none, if the base is old, if the trimmed log would not continue
        it, or with as_base. Raises StreamNotFound, or StaleWriter if the stored snapshot is newer or the log does not
        reach this one.
        """

    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Replace the stream's state: if the head is `after`, clear log, ids and labels, and start at the snapshot.

        Raises StaleWriter, StreamNotFound; ValueError if the snapshot does not stand later than `after`.
        """

    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Start a stream at a snapshot, whatever is left of it, with an empty log."""

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head. Raises StoreCorrupt if the log between them has a gap."""

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is left of a stream, however damaged; None if nothing is."""

    async def compact(
        self, stream: str, block: StoredBlock, buckets: Mapping[int, bytes] = NO_BUCKETS, token: int = 0
    ) -> None:
        """Put a block in the place of the entries that it holds, and buckets in the index of the ids in blocks.

        The block goes on from the last one, or begins with the oldest entry. The snapshot may stand before its end.
        The labels stay, and so do the ids of later entries. From now on every read gives the block; the entries are
        removed after that, step by step, and what a crash leaves of them the next call removes.
        Raises StreamNotFound, or StaleWriter if the block does not go on from what is there.
        """

    async def packed_to(self, stream: str) -> Position | None:
        """Say where the newest block ends; None without one."""

    async def entries(self, stream: str, after: Position, limit: int) -> StoredBlock | list[Entry]:
        """Read up to `limit` entries after `after`, in order, or fewer once they fill a page.

        If the first of them is in a block, read that block instead, whatever the limit.
        """

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[StoredBlock | Entry]:
        """Read the distinct blocks and batches that hold these samples, in order, or fewer once they fill a page.

        Unknown samples are left out; the result is empty only if no sample is known.
        """

    async def find_ids(self, stream: str, ids: Sequence[str], hashes: Sequence[int] = ()) -> KnownIds:
        """Give the newest seq of each client id that is known outside blocks, and the buckets of the hashes.

        An id that was moved into a block meanwhile is in one of the two.
        """

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of the labelled ones among these samples."""

    async def labels_until(self, stream: str, seq: int) -> dict[int, bytes]:
        """Give the records of all labelled samples up to this one, in order."""

    async def put_incidents(self, stream: str, rows: Sequence[IncidentRow], token: int = 0) -> None:
        """Put incidents that the log told of earlier into the index; this is no news. Raises StreamNotFound."""

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read the incidents of a stream, in order."""

    async def find_incidents(self, stream: str, seqs: Sequence[int]) -> dict[int, IncidentRow]:
        """Give the known ones of these incidents."""

    async def put_file(
        self, stream: str, row: FileRow, token: int = 0, labels: Mapping[int, bytes] = NO_LABELS
    ) -> None:
        """Put an archived file into the index, in place of another that ends at the same sample, and add labels.

        Raises StreamNotFound, Fenced. A stream that is replaced, restored or deleted loses its index.
        """

    async def drop_files(self, stream: str, last_seq: int, token: int = 0) -> None:
        """Take the files that end at or before a sample out of the index, then the labels of such samples."""

    async def files(self, stream: str) -> list[FileRow]:
        """Read the index of archived files, in order, without their ids."""

    async def file_ids(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the ids of those of these files that are known."""

    async def newest_incidents(self, before: IncidentKey | None, limit: int) -> list[IncidentKey]:
        """List incidents of all streams, the newest first, from before a place on; some may be gone from the index."""

    async def changed_incidents(
        self, limit: int, lane: str = NEW, after: IncidentChange | None = None
    ) -> list[IncidentChange]:
        """Read the oldest marks of changed incidents in a lane; a later change of an incident has a mark of its own."""

    async def count_changes(self, lane: str = NEW) -> int:
        """Count the marks of a lane."""

    async def move_changes(self, gone: Sequence[Mark], come: Sequence[Mark] = ()) -> None:
        """Remove marks, and put others into lanes. If it stops in between, those that come are there first."""

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Delete a stream, even a damaged one, and its lease; False if there was none."""

    async def streams(self, after: str, limit: int) -> list[str]:
        """List up to `limit` streams whose names come after `after`, in order."""

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long each stream has been silent; leave out those that do not exist or cannot be read."""

    async def put_summaries(self, rows: Sequence[SummaryRow]) -> None:
        """Keep the summaries of streams; those of deleted streams, or with a token that is not the newest, are dropped.

        A stream that is created, replaced, restored or deleted loses its summary.
        """

    async def find_summaries(self, streams: Sequence[str]) -> dict[str, bytes]:
        """Give the summaries of those of these streams that have one."""

    async def summaries(self, after: str, limit: int) -> list[tuple[str, bytes | None]]:
        """List up to `limit` streams whose names come after `after`, in order, with their summaries or None.

        There may be fewer, but none only if no more streams come.
        """

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream. Raises StreamNotFound."""

    async def put_document(self, kind: DocumentKind, name: str, body: bytes, expected: bytes | None = None) -> bool:
        """Keep a document in the place of the expected one, or of none.

        False, with nothing changed, if there is another; True also if this body is there already.
        """

    async def document(self, kind: DocumentKind, name: str) -> bytes | None:
        """Read a document; None if there is none of that kind and name."""

    async def documents(self, kind: DocumentKind) -> dict[str, bytes]:
        """Read all documents of a kind, in order of their names."""

    async def delete_document(self, kind: DocumentKind, name: str, expected: bytes) -> bool:
        """Delete the expected document.

        False, with nothing changed, if there is another; True also if there is none any more.
        """
