"""Reads samples back from a stream's log, by seq or by client id."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.storage import Entry
from app.streams.log.events import BatchEvent, read_event, read_records
from app.streams.log.explanations import Explained
from app.streams.log.log import Log
from app.streams.slices import slices
from core import Records


@dataclass(frozen=True, slots=True)
class LogReader:
    """The samples of one stream's log."""

    log: Log

    async def seqs(self, ids: Sequence[str], oldest_seq: int) -> dict[str, int]:
        """Give the newest seq of each known id, from oldest_seq on."""
        wanted = [client_id for client_id in ids if client_id]
        found = await self.log.find_ids(wanted) if wanted else {}
        return {client_id: seq for client_id, seq in found.items() if seq >= oldest_seq}

    async def original_rows(self, ids: Sequence[str], oldest_seq: int) -> dict[int, Records]:
        """Give the records of known ids as they were when the samples were observed, by the places of the ids."""
        seqs = await self.seqs(ids, oldest_seq)
        if not seqs:
            return {}
        records = await self.original_records(seqs.values())
        return {row: records[seqs[i]] for row, i in enumerate(ids) if i in seqs and seqs[i] in records}

    async def original_records(self, seqs: Iterable[int]) -> dict[int, Records]:
        """Give the records as they were when the samples were observed, by seq; trimmed ones are left out."""
        found: dict[int, Records] = {}
        async for entries, wanted in self.log.batches_holding(seqs):
            found |= records_in(entries, wanted)
        return found

    async def original_explanations(self, seqs: Iterable[int]) -> dict[int, Explained]:
        """Give the explanations from when samples were observed, by seq, of all batches that hold these samples."""
        found: dict[int, Explained] = {}
        async for entries, _ in self.log.batches_holding(seqs):
            for event in map(read_event, (entry.body for entry in entries)):
                if isinstance(event, BatchEvent):
                    found.update(event.explained)
        return found

    async def current_records(self, seqs: Iterable[int]) -> dict[int, Records]:
        """Give the records after all labels so far, by seq; trimmed ones are left out."""
        wanted = sorted(set(seqs))
        if not wanted:
            return {}
        labelled = await self.log.find_labels(wanted)
        seqs = list(labelled)
        found: dict[int, Records] = {}
        async for part in slices(len(seqs)):
            found.update((seq, read_records(labelled[seq])) for seq in seqs[part])
        return found | await self.original_records(seq for seq in wanted if seq not in found)


def records_in(entries: Sequence[Entry], seqs: Sequence[int]) -> dict[int, Records]:
    """Cut single records out of batches; both are in rising order."""
    found: dict[int, Records] = {}
    for entry in entries:
        event = read_event(entry.body)
        if isinstance(event, BatchEvent):
            records = read_records(event.records)
            first, last = int(records.seq[0]), int(records.seq[-1])
            held = seqs[bisect_left(seqs, first) : bisect_right(seqs, last)]
            # a copy: a view would keep the whole batch in memory
            chosen = records[np.array(held, np.intp) - first]
            found |= {seq: chosen[row] for row, seq in enumerate(held)}
    return found
