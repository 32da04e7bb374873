"""Finds the records of samples observed earlier, in the store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.storage.base import Entry, Store
from app.streams.events import BatchEvent, read_event, read_records
from app.streams.explaining import Explained
from app.streams.stepping import slices
from core import Records


@dataclass(frozen=True, slots=True)
class Ledger:
    """One stream's records by seq and by client id."""

    store: Store
    stream: str

    async def seqs(self, ids: Sequence[str], oldest_seq: int) -> dict[str, int]:
        """Give the newest seq of each id that is known within the horizon."""
        wanted = [client_id for client_id in ids if client_id]
        found = await self.store.find_ids(self.stream, wanted) if wanted else {}
        return {client_id: seq for client_id, seq in found.items() if seq >= oldest_seq}

    async def first_records(self, seqs: Iterable[int]) -> dict[int, Records]:
        """Give the records as they were when the samples were observed; those trimmed are left out."""
        wanted = sorted(set(seqs))
        if not wanted:
            return {}
        entries = await self.store.entries_holding(self.stream, wanted)
        return records_in(entries, wanted)

    async def first_explanations(self, seqs: Iterable[int]) -> dict[int, Explained]:
        """Give what was said of flagged samples when they were observed, for all batches that hold these seqs."""
        found: dict[int, Explained] = {}
        for entry in await self.store.entries_holding(self.stream, sorted(set(seqs))):
            event = read_event(entry.body)
            if isinstance(event, BatchEvent):
                found.update(event.explained)
        return found

    async def current_records(self, seqs: Iterable[int]) -> dict[int, Records]:
        """Give the records as they are now, after all labels so far; those trimmed are left out."""
        wanted = sorted(set(seqs))
        if not wanted:
            return {}
        labelled = await self.store.find_labels(self.stream, wanted)
        seqs = list(labelled)
        found: dict[int, Records] = {}
        async for part in slices(len(seqs)):
            found.update((seq, read_records(labelled[seq])) for seq in seqs[part])
        return found | await self.first_records(seq for seq in wanted if seq not in found)


def records_in(entries: Sequence[Entry], seqs: Sequence[int]) -> dict[int, Records]:
    """Cut single records out of batches; both in rising order."""
    found: dict[int, Records] = {}
    remaining = iter(seqs)
    seq = next(remaining, None)
    for entry in entries:
        event = read_event(entry.body)
        if not isinstance(event, BatchEvent):
            continue
        records = read_records(event.records)
        first, last = int(records.seq[0]), int(records.seq[-1])
        while seq is not None and seq <= last:
            if seq >= first:
                found[seq] = records[seq - first]
            seq = next(remaining, None)
    return found
