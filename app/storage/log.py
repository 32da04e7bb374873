"""What a stream's log holds: entries at their positions, and the snapshots that replay starts from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

# Lua and JSON clients count in doubles: up to here every whole number is exact in all of them.
MAX_SEQ = 2**53 - 1

# Rebuilding a stream that lost its snapshot replays at most about this many samples.
BASE_SAMPLES = 10_000


class Position(NamedTuple):
    """A place in a stream's log: a batch stands at (last seq, 0), the label events after it at sub 1, 2, ..."""

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
        """Give the last position before all events of a sample; Redis takes no number below 0."""
        return cls(seq - 1, MAX_SEQ) if seq > 0 else cls(0, 0)


START: Final = Position(0, 0)
"""Before the first event."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the log: a batch of samples (first_seq is set), or labels or another event after a sample."""

    position: Position
    body: bytes
    first_seq: int | None = None
    ids: tuple[str, ...] = ()

    @property
    def after(self) -> Position:
        """Give a position that this entry follows."""
        seq, sub = self.position
        return Position(seq, sub - 1) if self.first_seq is None else Position(self.first_seq - 1, 0)

    @property
    def n_samples(self) -> int:
        """Give the number of samples of a batch; 0 for another event."""
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


def base_is_due(base: Position | None, snapshot: Position, last: Position) -> bool:
    """Tell whether a snapshot must become the base before the log is trimmed up to `last`."""
    return base is None or base < last or snapshot.seq - base.seq >= BASE_SAMPLES


def last_trimmable(snapshot: Position, keep_from_seq: int) -> Position:
    """Give the last position that trimming may remove."""
    return min(snapshot, Position.before(keep_from_seq))


def find_gap(snapshot: Position, head: Position, first: Entry | None, last: Position | None) -> str | None:
    """Name what is missing between snapshot and head, given the first entry after the snapshot and the last of all."""
    if first is None and head != snapshot:
        return f"the log from the snapshot at {snapshot} to the head at {head} is missing"
    if first is not None and not first.follows(snapshot):
        return f"the snapshot ends at {snapshot}, the log goes on at {first.first_seq or first.position}"
    if last is not None and last != head:
        return f"the log ends at {last}, its head should be {head}"
    return None


def check_append(after: Position, entry: Entry, labels: Mapping[int, bytes]) -> None:
    """Raise ValueError for an entry that does not follow, or that some store could not keep exactly."""
    if not entry.follows(after):
        raise ValueError(f"an entry at {entry.position}, first_seq {entry.first_seq}, does not follow {after}")
    check_position(entry.position)
    if entry.ids and len(entry.ids) != entry.position.seq - (entry.first_seq or 0) + 1:
        raise ValueError(f"{len(entry.ids)} ids do not fit the batch {entry.first_seq} to {entry.position.seq}")
    if any(not 1 <= seq <= entry.position.seq for seq in labels):
        raise ValueError(f"labels must be for seqs 1 to {entry.position.seq}")


def check_replace(after: Position, snapshot: Snapshot) -> None:
    """Raise ValueError for a snapshot that would take the stream's position back."""
    check_position(snapshot.position)
    if snapshot.position <= after:
        raise ValueError(f"a replacing snapshot at {snapshot.position} does not stand later than {after}")


def check_position(position: Position) -> None:
    """Raise ValueError for numbers that some store would round."""
    if not (0 <= position.seq <= MAX_SEQ and 0 <= position.sub <= MAX_SEQ):
        raise ValueError(f"position {position} is outside 0 .. {MAX_SEQ}")
