"""Reads the log of a stream; everything outside a store reads a log through this."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.storage import START, Entry, IncidentRow, Position, Remains, Snapshot

if TYPE_CHECKING:
    from app.streams.log.archive.tier import Archived

FIRST_ENTRIES = 4
MAX_ENTRIES = 256
NEWEST_SAMPLES = 10_000
"""What an earlier version did not know is made from so many of the newest samples: somebody waits for it."""


class Source(Protocol):
    """What streams are read from: a store, or a reader of one. Its methods do what those of a Store do."""

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is left of a stream."""

    async def entries(self, stream: str, after: Position, limit: int) -> list[Entry]:
        """Read a page of the log."""

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[Entry]:
        """Read the batches that hold these samples."""

    async def find_ids(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Give the seqs of known ids."""

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read the index of incidents."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log of one stream."""

    store: Source
    stream: str
    archived: "Archived | None" = None
    """What of it was moved to the archive; None without one."""

    @property
    def kept(self) -> "Log":
        """Give the part that the store keeps."""
        return self

    async def oldest_seq(self, head: Position) -> int:
        """Give the oldest sample in the log, or the next one to come after the head."""
        entries = await self.entries(START, 1)
        return first_seq(entries[0]) if entries else head.seq + 1

    async def entries(self, after: Position, limit: int) -> list[Entry]:
        """Read up to `limit` entries after `after`, in order, or fewer once they fill a page."""
        return await self.store.entries(self.stream, after, limit)

    async def entries_holding(self, seqs: Sequence[int]) -> list[Entry]:
        """Read the distinct batches that hold these samples, in order, or fewer once they fill a page.

        Unknown samples are left out; the result is empty only if no sample is known.
        """
        return await self.store.entries_holding(self.stream, seqs)

    async def find_ids(self, ids: Sequence[str]) -> dict[str, int]:
        """Give the newest seq of each known client id."""
        return await self.store.find_ids(self.stream, ids)

    async def find_labels(self, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of the labelled ones among these samples."""
        return await self.store.find_labels(self.stream, seqs)

    async def pages(self, after: Position) -> AsyncIterator[list[Entry]]:
        """Give the entries after a position, in pages of a few megabytes; other tasks run in between."""
        limit = FIRST_ENTRIES
        while entries := await self.entries(after, limit):
            yield entries
            await asyncio.sleep(0)
            after = entries[-1].position
            limit = min(2 * limit, MAX_ENTRIES)

    async def newest_entries(self, next_seq: int) -> AsyncIterator[Entry]:
        """Give the entries of the newest samples."""
        async for entries in self.pages(Position(max(0, next_seq - 1 - NEWEST_SAMPLES), 0)):
            for entry in entries:
                yield entry

    async def batches_holding(self, seqs: Iterable[int]) -> AsyncIterator[tuple[list[Entry], list[int]]]:
        """Give the batches that hold these samples, in pages, each with the seqs that no earlier page held, rising."""
        remaining = sorted(set(seqs))
        while remaining and (entries := await self.entries_holding(remaining)):
            yield entries, remaining
            await asyncio.sleep(0)
            remaining = remaining[bisect_right(remaining, entries[-1].position.seq) :]


def first_seq(entry: Entry) -> int:
    """Give the first sample at or after an entry: after a label event, the next one."""
    return entry.position.seq + 1 if entry.first_seq is None else entry.first_seq
