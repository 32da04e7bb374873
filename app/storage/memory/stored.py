"""What a store in memory keeps of a stream."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.storage.blocks import StoredBlock, is_repeated
from app.storage.errors import StaleWriter
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
    blocks: list[StoredBlock] = field(default_factory=list)
    buckets: dict[int, bytes] = field(default_factory=dict)

    @property
    def n_entries(self) -> int:
        """Count the entries, also those in blocks."""
        return len(self.log) + sum(block.n_entries for block in self.blocks)

    def count_until(self, position: Position) -> int:
        """Count the entries at or before a position."""
        return bisect_right(self.log, position, key=lambda entry: entry.position)

    def block_after(self, position: Position) -> StoredBlock | None:
        """Give the block that holds the first entry after a position, if a block does."""
        return next((block for block in self.blocks if block.position > position), None)

    def compact(self, stream: str, block: StoredBlock, buckets: Mapping[int, bytes]) -> None:
        """Put a block in the place of its entries."""
        last = self.blocks[-1] if self.blocks else None
        if is_repeated(stream, block, last, self.log[0] if self.log else None):
            return
        packed = self.log[: self.count_until(block.position)]
        if not packed or packed[-1].position != block.position:
            raise StaleWriter(stream, block.position, self.head)
        self.blocks.append(block)
        self.buckets.update(buckets)
        del self.log[: len(packed)]
        for entry in packed:
            self._forget_ids(entry)

    def next_batch(self, seq: int) -> StoredBlock | Entry | None:
        """Give the first block or batch that ends at or after a sample."""
        if (block := self.block_after(Position.before(seq))) is not None:
            return block
        later = self.log[self.count_until(Position.before(seq)) :]
        return next((entry for entry in later if entry.first_seq is not None), None)

    def trim(self, last: Position, *, keep_labels: bool) -> None:
        """Drop the blocks and entries up to a position, with their ids, and labels unless these are kept."""
        blocks = [block for block in self.blocks if block.position <= last]
        del self.blocks[: len(blocks)]
        if not self.blocks:
            self.buckets.clear()
        dropped = self.log[: self.count_until(last)]
        del self.log[: len(dropped)]
        for entry in dropped:
            self._forget_ids(entry)
        if (gone := dropped or blocks) and not keep_labels:
            self.drop_labels(gone[-1].position.seq)

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
