"""What a store in memory keeps of a stream."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.storage.files import FileRow
from app.storage.incidents import INCIDENTS_KEPT, IncidentRow
from app.storage.log import Entry, Position, Snapshot


@dataclass(slots=True)
class StoredStream:
    """Everything kept of one stream."""

    snapshot: Snapshot
    head: Position
    log: list[Entry] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    labels: dict[int, bytes] = field(default_factory=dict)
    incidents: dict[int, IncidentRow] = field(default_factory=dict)
    files: dict[int, FileRow] = field(default_factory=dict)
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

    def trim(self, last: Position, *, keep_labels: bool) -> None:
        """Drop the entries up to a position, with their ids, and their labels unless these are to be kept."""
        dropped = self.log[: self.count_until(last)]
        del self.log[: len(dropped)]
        for entry in dropped:
            self._forget_ids(entry)
        if dropped and not keep_labels:
            self.drop_labels(dropped[-1].position.seq)

    def drop_labels(self, last_seq: int) -> None:
        """Drop the labels of samples up to one."""
        for seq in [seq for seq in self.labels if seq <= last_seq]:
            del self.labels[seq]

    def put_incidents(self, rows: Sequence[IncidentRow]) -> None:
        """Put incidents into the index, and drop the oldest beyond what it keeps."""
        self.incidents.update((row.seq, row._replace(is_news=False)) for row in rows)
        for seq in sorted(self.incidents)[:-INCIDENTS_KEPT]:
            del self.incidents[seq]

    def _forget_ids(self, entry: Entry) -> None:
        for name, seq in entry.named_samples():
            if self.ids.get(name) == seq:  # a newer sample may bear the same id
                del self.ids[name]


@dataclass(slots=True)
class StoredLease:
    """Who may write, and until when."""

    owner: str
    token: int
    ends: float
    kept_until: float = 0.0
