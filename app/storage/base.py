"""What a store of streams promises, whatever keeps it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, Self

from limits.aio.storage import MemoryStorage

from app.storage.room import RefusedWrites, Room

# Lua and JSON clients count in doubles: up to here every whole number is exact in all of them.
MAX_SEQ = 2**53 - 1

# One entry may hold a sample of 200 bytes, or ten thousand in 16 MB.
PAGE_BYTES = 1 << 22

NO_LABELS: Mapping[int, bytes] = {}

# A stream whose snapshot is lost is rebuilt by replaying at most about so many samples.
BASE_SAMPLES = 10_000


class Durability(StrEnum):
    """What an acknowledged event survives."""

    PROCESS = "process"  # the end of the service's process
    FSYNC = "fsync"  # also a power loss
    REPLICAS = "replicas"  # also a fail-over to a replica


class StoreError(Exception):
    """Base of everything a store raises on purpose."""


class Cause(StrEnum):
    """Why a store cannot be used now."""

    UNREACHABLE = "unreachable"  # no answer
    FULL = "full"  # no room left: of a disk, or of Redis' memory
    READ_ONLY = "read_only"
    LOCKED = "locked"  # somebody else keeps it
    FAILED = "failed"  # the disk refuses
    REPLACED = "replaced"  # its files are not those that were opened: this does not pass by itself


class StoreUnavailable(StoreError):
    """The store cannot be used now: nothing is known to have changed, and trying again may work."""

    def __init__(self, reason: str, cause: Cause = Cause.UNREACHABLE) -> None:
        super().__init__(reason)
        self.reason, self.cause = reason, cause


class StaleWriter(StoreError):
    """The stream has moved on: the writer's copy is not the newest one."""

    def __init__(self, stream: str, expected: "Position", actual: "Position") -> None:
        super().__init__(f"stream {stream!r}: the writer stands at {expected}, the store at {actual}")
        self.stream, self.expected, self.actual = stream, expected, actual


class Fenced(StoreError):
    """Another writer has taken the stream over since this one got its token."""

    def __init__(self, stream: str, token: int, newest: int) -> None:
        super().__init__(f"stream {stream!r} was taken over by another writer: its token is {newest}, not {token}")
        self.stream, self.token, self.newest = stream, token, newest


class LeaseHeld(StoreError):
    """Another writer holds the stream, for so long unless it renews its lease.

    For `kept_seconds` it will not hand it over.
    """

    def __init__(self, stream: str, seconds: float, owner: str = "", kept_seconds: float = 0.0) -> None:
        super().__init__(
            f"stream {stream!r} is held by another worker, whose lease ends in {seconds:.1f} s if not renewed"
        )
        self.stream, self.seconds, self.owner, self.kept_seconds = stream, seconds, owner, kept_seconds


class StreamNotFound(StoreError):
    """There is no such stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream!r} does not exist")
        self.stream = stream


class StoreCorrupt(StoreError):
    """A part of what was stored is gone or damaged; `gap` says which."""

    def __init__(self, stream: str | None, gap: str) -> None:
        super().__init__(gap if stream is None else f"stream {stream!r}: {gap}")
        self.stream, self.gap = stream, gap


class Bound(NamedTuple):
    """At most so many streams with names that begin like this; for one API key, or (None) for all."""

    prefix: str
    most: int
    key: str | None = None

    @property
    def text(self) -> str:
        """Say what the bound is."""
        if self.key is None:
            return f"at most {self.most} streams (ITAN_MAX_STREAMS)"
        return f"at most {self.most} streams {self.prefix}* (limit of key {self.key!r})"


NO_BOUNDS: Sequence[Bound] = ()


class TooManyStreams(Exception):
    """As many streams exist already as may; nothing was changed."""

    def __init__(self, stream: str, bound: Bound, count: int) -> None:
        super().__init__(f"stream {stream!r} cannot be created: there are {count} streams, but {bound.text}")
        self.bound, self.count = bound, count
        self.limit_name, self.key = "max_streams" if bound.key is None else "streams", bound.key


class Position(NamedTuple):
    """Where an event stands in a stream's log: a batch at (seq of its last sample, 0), what follows at sub 1, 2, ..."""

    seq: int
    sub: int

    def __str__(self) -> str:
        return f"{self.seq}-{self.sub}"

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read what `str` wrote."""
        seq, _, sub = text.partition(b"-")
        return cls(int(seq), int(sub))

    @classmethod
    def before(cls, seq: int) -> Self:
        """Give the last place before all events of a sample; a sub below 0 would be none to Redis."""
        return cls(seq - 1, MAX_SEQ)


START: Final = Position(0, 0)
"""Before the first event."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the log: a batch of samples (first_seq is set) or a label event."""

    position: Position
    body: bytes
    first_seq: int | None = None
    ids: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        """Give the number of samples of a batch; 0 for a label event."""
        return 0 if self.first_seq is None else self.position.seq - self.first_seq + 1

    def holds(self, seq: int) -> bool:
        """Tell whether the sample is in this batch."""
        return self.first_seq is not None and self.first_seq <= seq <= self.position.seq

    def named_samples(self) -> Iterator[tuple[str, int]]:
        """Give (id, seq) of each sample that has a client id."""
        return ((name, seq) for seq, name in enumerate(self.ids, self.first_seq or 0) if name)

    def follows(self, position: Position) -> bool:
        """Tell whether this entry comes right after `position`, with nothing missing in between."""
        if self.first_seq is None:
            return self.position == (position.seq, position.sub + 1)
        return self.first_seq == position.seq + 1 <= self.position.seq and self.position.sub == 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a stream after the event at `position`."""

    position: Position
    body: bytes


@dataclass(frozen=True, slots=True)
class Remains:
    """What is there of a stream, damaged or not; None is what is gone.

    `base` is an older snapshot than the newest: the log leads on from both. `faults` says in words what is wrong beside
    a missing snapshot.
    """

    head: Position | None
    snapshot: Snapshot | None
    base: Snapshot | None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Silence:
    """How long nothing was written to a stream, by the store's own clock, and how long its log is."""

    seconds: float
    log_entries: int


@dataclass(frozen=True, slots=True)
class StreamSize:
    """What one stream takes; bytes of bodies alone, those of both snapshots together."""

    log_entries: int
    log_bytes: int
    snapshot_bytes: int


class Store(Protocol):
    """Keeps a snapshot, a log, an index of client ids and the labelled records of every stream.

    Any verb may raise StoreUnavailable. Verbs that write change everything they name or nothing, and may be repeated
    after a lost answer. Reading verbs answer "nothing" for a stream that does not exist, unless they say otherwise.

    A lease makes its holder the only writer of a stream, as long as all goes well; what makes sure of it is the token
    that comes with it: verbs that write take it, and raise Fenced if the stream has had a higher one.
    """

    is_exclusive: bool
    """Only one process at a time can use the store, so that leases would say nothing."""

    @property
    def windows(self) -> MemoryStorage:
        """Count what passes in a time, for all processes that use the store."""

    refused: RefusedWrites
    """Which writes it refused lately."""

    @property
    def retries(self) -> int:
        """How often a server was asked again after a failure."""

    async def open(self) -> None:
        """Take what the store needs; may be tried again after StoreUnavailable."""

    async def close(self) -> None:
        """Give it back; calls that wait are answered first."""

    async def check(self) -> list[str]:
        """Make sure that the store answers; return warnings about how it is set up."""

    async def room(self) -> Room:
        """Measure how full the store is."""

    async def acquire(self, stream: str, owner: str, seconds: float, keep_seconds: float = 0.0) -> int:
        """Lease a stream, which need not exist, and give a token higher than all before.

        Raises LeaseHeld, also to say for how long the new holder will keep it whoever asks; an owner of the same name
        gets it at once.
        """

    async def ask(self, stream: str, owner: str) -> None:
        """Ask the holder of a stream to leave it to others: it finds the wish when it looks."""

    async def wanted(self, owner: str) -> set[str]:
        """Give the streams that others have asked this owner for since it looked last."""

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Let leases end later, also ones that have ended if nobody came since; give the streams that are lost."""

    async def release(self, tokens: Mapping[str, int]) -> None:
        """End those of these leases that still stand."""

    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Begin a stream whose head is the snapshot; False, and nothing changed, if it exists.

        Raises TooManyStreams if it would be one more than a bound allows, however many are created at once.
        """

    async def append(
        self, stream: str, after: Position, entry: Entry, labels: Mapping[int, bytes] = NO_LABELS, token: int = 0
    ) -> None:
        """Add an entry if the log's head is `after`, with its ids and the newest records of labelled samples.

        Raises StaleWriter, StreamNotFound; ValueError if the entry does not follow `after`.
        """

    async def save_snapshot(
        self, stream: str, snapshot: Snapshot, keep_from_seq: int, token: int = 0, *, as_base: bool = False
    ) -> None:
        """Replace the snapshot, then trim the entries up to it that end before `keep_from_seq`, their ids and labels.

        It is stored a second time, as the base, if there is none, if the base is old or the log would no longer lead
        on from it, or if asked for. Raises StaleWriter if the stored snapshot is newer or the log does not reach this
        one, StreamNotFound.
        """

    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Go on from a foreign state: if the head is `after`, clear log, ids and labels, and stand at the snapshot.

        Raises StaleWriter, StreamNotFound; ValueError if the snapshot does not stand later than `after`.
        """

    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Let a stream stand at a snapshot, whatever is there of it, damaged or not; its log begins anew."""

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head. Raises StoreCorrupt if the log does not lead from one to the other."""

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is there of a stream, however damaged; None if nothing is."""

    async def entries(self, stream: str, after: Position, limit: int) -> list[Entry]:
        """Read up to `limit` entries later than `after`, in order; one that makes a page full is the last."""

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[Entry]:
        """Read the distinct batches that hold these samples, in order; one that makes a page full is the last.

        Unknown samples are left out; none is found only if no sample is known.
        """

    async def find_ids(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Give the newest seq of each known client id."""

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of those samples that were labelled."""

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Forget a stream, damaged ones too, and its lease; False if there was none."""

    async def streams(self, after: str, limit: int) -> list[str]:
        """List up to `limit` streams whose names come after `after`, in order."""

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say of those streams that exist and can be read how long each is silent."""

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream. Raises StreamNotFound."""


def check_append(after: Position, entry: Entry, labels: Mapping[int, bytes]) -> None:
    """Refuse an entry that no store could keep faithfully."""
    if not entry.follows(after):
        raise ValueError(f"an entry at {entry.position}, first_seq {entry.first_seq}, does not follow {after}")
    check_position(entry.position)
    if entry.ids and len(entry.ids) != entry.position.seq - (entry.first_seq or 0) + 1:
        raise ValueError(f"{len(entry.ids)} ids do not fit the batch {entry.first_seq} to {entry.position.seq}")
    if any(not 1 <= seq <= entry.position.seq for seq in labels):
        raise ValueError(f"labels must be for seqs 1 to {entry.position.seq}")


def check_replace(after: Position, snapshot: Snapshot) -> None:
    """Refuse a snapshot that would take a stream's position back."""
    check_position(snapshot.position)
    if snapshot.position <= after:
        raise ValueError(f"a replacing snapshot at {snapshot.position} does not stand later than {after}")


def check_position(position: Position) -> None:
    """Refuse numbers that some store would round."""
    if not (0 <= position.seq <= MAX_SEQ and 0 <= position.sub <= MAX_SEQ):
        raise ValueError(f"position {position} is outside 0 .. {MAX_SEQ}")


def base_is_due(base: Position | None, snapshot: Position, last: Position) -> bool:
    """Tell whether a snapshot is to be the base, before the log is trimmed up to `last`."""
    return base is None or base < last or snapshot.seq - base.seq >= BASE_SAMPLES


def last_trimmable(snapshot: Position, keep_from_seq: int) -> Position:
    """Give the position up to which the log may go, inclusive."""
    return min(snapshot, Position.before(keep_from_seq))


def possible_seqs(seqs: Iterable[int]) -> list[int]:
    """Sort the distinct seqs that a sample can have: others, however large, are merely unknown."""
    return sorted({int(seq) for seq in seqs if 1 <= seq <= MAX_SEQ})


def take_page(entries: Iterable[Entry]) -> list[Entry]:
    """Take entries up to the one whose body makes a page full."""
    page: list[Entry] = []
    size_bytes = 0
    for entry in entries:
        page.append(entry)
        size_bytes += len(entry.body)
        if size_bytes >= PAGE_BYTES:
            break
    return page


def is_full(page: Iterable[Entry]) -> bool:
    """Tell whether a page takes no more."""
    return sum(len(entry.body) for entry in page) >= PAGE_BYTES


def collect_batches(seqs: Sequence[int], next_batch: Callable[[int], Entry | None]) -> list[Entry]:
    """Take a page of the batches that hold rising `seqs`; next_batch(seq) is the first that ends at or after seq."""
    return take_page(_batches(seqs, next_batch))


def _batches(seqs: Sequence[int], next_batch: Callable[[int], Entry | None]) -> Iterator[Entry]:
    found: Entry | None = None
    for seq in seqs:
        if found is not None and found.holds(seq):
            continue
        entry = next_batch(seq)
        if entry is None:
            return
        if entry.holds(seq):
            found = entry
            yield entry


def find_gap(snapshot: Position, head: Position, first: Entry | None, last: Position | None) -> str | None:
    """Name what is missing between snapshot and head, given the first entry after the snapshot and the last of all."""
    if first is None and head != snapshot:
        return f"the log from the snapshot at {snapshot} to the head at {head} is missing"
    if first is not None and not first.follows(snapshot):
        return f"the snapshot ends at {snapshot}, the log goes on at {first.first_seq or first.position}"
    if last is not None and last != head:
        return f"the log ends at {last}, its head should be {head}"
    return None
