"""The log of a stream as far back as labels reach, with what a store keeps beside it: ids, labels and incidents."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from app.storage import INCIDENTS_KEPT, Entry, IncidentRow
from app.streams.log.incidents import Incident
from core import Records


class Kept(Protocol):
    """What one stream needs of its past."""

    def find_id(self, client_id: str) -> int | None:
        """Give the seq of a known id."""

    def records(self, seqs: Iterable[int]) -> dict[int, Records]:
        """Give the records after all labels so far, by seq; those of forgotten samples are left out."""

    def incidents(self, seqs: Iterable[int]) -> dict[int, Incident]:
        """Give the known ones of these incidents."""

    def add_samples(self, entry: Entry, records: Records, changed: Sequence[Incident]) -> None:
        """Keep samples, and the incidents that they have changed."""

    def add_labels(self, entry: Entry, after: Records, changed: Sequence[Incident]) -> None:
        """Keep labels, the records of their samples after them, and the incidents that they have changed."""

    def forget_before(self, seq: int) -> None:
        """Forget the batches that end before a sample, with their ids and labels."""


class KeptLog:
    """A log in memory. `told` holds all incidents that there ever were, the others only what a store would keep."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.labelled: dict[int, Records] = {}
        self.told: dict[int, Incident] = {}
        self._batches: deque[Records] = deque()
        self._ids: dict[str, int] = {}
        self._index: dict[int, Incident] = {}

    def find_id(self, client_id: str) -> int | None:
        return self._ids.get(client_id)

    def records(self, seqs: Iterable[int]) -> dict[int, Records]:
        wanted, found = sorted(set(seqs)), dict[int, Records]()
        batches = iter(self._batches)
        batch = next(batches, None)
        for seq in wanted:
            if seq in self.labelled:
                found[seq] = self.labelled[seq]
                continue
            while batch is not None and batch.seq[-1] < seq:
                batch = next(batches, None)
            if batch is not None and batch.seq[0] <= seq:
                found[seq] = batch[seq - int(batch.seq[0])]
        return found

    def incidents(self, seqs: Iterable[int]) -> dict[int, Incident]:
        return {seq: self._index[seq] for seq in seqs if seq in self._index}

    def add_samples(self, entry: Entry, records: Records, changed: Sequence[Incident]) -> None:
        self.entries.append(entry)
        self._batches.append(records)
        self._ids.update(entry.named_samples())
        self._note(changed)

    def add_labels(self, entry: Entry, after: Records, changed: Sequence[Incident]) -> None:
        self.entries.append(entry)
        self.labelled.update((int(seq), after[i]) for i, seq in enumerate(after.seq))
        self._note(changed)

    def _note(self, changed: Sequence[Incident]) -> None:
        for incident in changed:
            self._index[incident.seq] = self.told[incident.seq] = incident
        while len(self._index) > INCIDENTS_KEPT:
            del self._index[min(self._index)]

    def forget_before(self, seq: int) -> None:
        while self._batches and self._batches[0].seq[-1] < seq:
            batch = self._batches.popleft()
            self._forget(self.entries.popleft(), batch.seq.tolist())
            while self.entries and self.entries[0].first_seq is None:
                self.entries.popleft()

    def _forget(self, entry: Entry, seqs: Sequence[int]) -> None:
        for client_id, at in entry.named_samples():
            if self._ids.get(client_id) == at:
                del self._ids[client_id]
        for at in seqs:
            self.labelled.pop(at, None)

    def rows(self) -> list[IncidentRow]:
        """Give the rows of the index."""
        return [self._index[seq].row() for seq in sorted(self._index)]
