"""Reads the log of a stream; everything outside a store reads a log through this."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from app.storage import (
    START,
    Entry,
    IncidentRow,
    KnownIds,
    Position,
    Remains,
    Snapshot,
    StoreCorrupt,
    StoredBlock,
    is_full,
)
from app.streams.log.blocks import Block, Part
from app.streams.log.events import UnreadableEvent
from app.streams.log.id_index import candidates, digest_of, value_of

if TYPE_CHECKING:
    from app.streams.log.archive.tier import Archived

FIRST_ENTRIES = 4
MAX_ENTRIES = 256
CHECKED_ENTRIES = 64
"""So many entries of a block are checked before other tasks have their turn."""
NEWEST_SAMPLES = 10_000
"""What an earlier version did not know is made from so many of the newest samples: somebody waits for it."""

Page = TypeVar("Page", bound=Sequence[Entry])


class Source(Protocol):
    """What streams are read from: a store, or a reader of one. Its methods do what those of a Store do."""

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head."""

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is left of a stream."""

    async def packed_to(self, stream: str) -> Position | None:
        """Say where the newest block ends."""

    async def entries(self, stream: str, after: Position, limit: int) -> StoredBlock | list[Entry]:
        """Read a block, or a page of the log."""

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[StoredBlock | Entry]:
        """Read the blocks and batches that hold these samples."""

    async def find_ids(self, stream: str, ids: Sequence[str], hashes: Sequence[int] = ()) -> KnownIds:
        """Give the seqs of known ids outside blocks, and buckets of the index of the others."""

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read the index of incidents."""


@dataclass(slots=True)
class Hint:
    """What was true of a log when it was last read: ids are asked for in one step if it is still so."""

    has_blocks: bool = False


@dataclass(frozen=True, slots=True)
class Log:
    """The log of one stream."""

    store: Source
    stream: str
    archived: "Archived | None" = None
    """What of it was moved to the archive; None without one."""
    hint: Hint = field(default_factory=Hint, compare=False, repr=False)

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
        page: list[Entry] = []
        while len(page) < limit and not is_full(page):
            part = await self.store.entries(self.stream, after, limit - len(page))
            if not isinstance(part, StoredBlock):
                return page + part
            block = self._opened(part)
            page += self._unpacked(part, block, block.after(after)[: limit - len(page)])
            after = page[-1].position
        return page

    async def part(self, after: Position, limit: int) -> Sequence[Entry]:
        """Read as entries does, but of a block only what is looked at."""
        part = await self.store.entries(self.stream, after, limit)
        if not isinstance(part, StoredBlock):
            return part
        block = self._opened(part)
        return Part(block, block.after(after))

    async def entries_holding(self, seqs: Sequence[int]) -> list[Entry]:
        """Read the distinct batches that hold these samples, in order, or fewer once they fill a page.

        Unknown samples are left out; the result is empty only if no sample is known.
        """
        found: list[Entry] = []
        for part in await self.store.entries_holding(self.stream, seqs):
            if isinstance(part, StoredBlock):
                block = self._opened(part)
                found += self._unpacked(part, block, block.holding(seq for seq in seqs if part.holds(seq)))
                await asyncio.sleep(0)
            else:
                found.append(part)
        return found

    async def find_ids(self, ids: Sequence[str]) -> dict[str, int]:
        """Give the newest seq of each known client id."""
        digests = {name: digest_of(name) for name in ids} if self.hint.has_blocks else {}
        known = await self.store.find_ids(self.stream, ids, list(map(value_of, digests.values())))
        if known.n_buckets and not self.hint.has_blocks:
            self.hint.has_blocks = True
            return await Log.find_ids(self, ids)
        missing = {name: digest for name, digest in digests.items() if name not in known.seqs}
        return known.seqs | await self._named(candidates(missing, known))

    async def _named(self, wanted: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Give the newest of the seqs of each id whose sample has that id."""
        names: dict[int, str] = {}
        remaining = sorted({seq for seqs in wanted.values() for seq in seqs})
        while remaining and (parts := await self.store.entries_holding(self.stream, remaining)):
            for part in parts:
                until = bisect_right(remaining, part.position.seq)
                names |= self._names_in(part, remaining[:until])
                remaining = remaining[until:]
                await asyncio.sleep(0)
        found = {name: [seq for seq in seqs if names.get(seq) == name] for name, seqs in wanted.items()}
        return {name: max(seqs) for name, seqs in found.items() if seqs}

    def _names_in(self, part: StoredBlock | Entry, seqs: Sequence[int]) -> dict[int, str]:
        """Give the client ids of samples in a block or a batch, by seq."""
        if isinstance(part, Entry):
            return {seq: name for name, seq in part.named_samples()}
        try:
            return self._opened(part).names(seqs)
        except UnreadableEvent as error:
            raise self._damaged(part, str(error)) from error

    async def find_labels(self, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of the labelled ones among these samples."""
        return await self.store.find_labels(self.stream, seqs)

    async def damaged_blocks(self) -> AsyncIterator[tuple[StoredBlock, StoreCorrupt]]:
        """Read all blocks in the store, and give those that cannot be read; other tasks run in between."""
        after = START
        while isinstance(stored := await self.store.entries(self.stream, after, 1), StoredBlock):
            try:
                block = self._opened(stored)
                for start in range(0, len(block), CHECKED_ENTRIES):
                    self._unpacked(stored, block, range(len(block))[start : start + CHECKED_ENTRIES])
                    await asyncio.sleep(0)
            except StoreCorrupt as error:
                yield stored, error
            after = stored.position

    def _opened(self, stored: StoredBlock) -> Block:
        """Open a block. Raises StoreCorrupt if it cannot be read."""
        try:
            block = Block(stored.body)
        except UnreadableEvent as error:
            raise self._damaged(stored, str(error)) from error
        if len(block) != stored.n_entries or block.position(len(block) - 1) != stored.position:
            raise self._damaged(stored, "it holds other entries")
        return block

    def _unpacked(self, stored: StoredBlock, block: Block, places: Sequence[int]) -> list[Entry]:
        """Read entries of a block. Raises StoreCorrupt if they cannot be read."""
        try:
            return block.entries(places)
        except UnreadableEvent as error:
            raise self._damaged(stored, str(error)) from error

    def _damaged(self, stored: StoredBlock, reason: str) -> StoreCorrupt:
        block = f"the block up to {stored.position}, samples {stored.after.seq + 1} to {stored.position.seq},"
        return StoreCorrupt(self.stream, f"{block} cannot be read: {reason}")

    def pages(self, after: Position) -> AsyncIterator[list[Entry]]:
        """Give the entries after a position, in pages of a few megabytes; other tasks run in between."""
        return _following(self.entries, after)

    def parts(self, after: Position) -> AsyncIterator[Sequence[Entry]]:
        """Give the entries after a position, as pages does, for those who look at few of them."""
        return _following(self.part, after)

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


async def _following(read: Callable[[Position, int], Awaitable[Page]], after: Position) -> AsyncIterator[Page]:
    """Read page after page, at first a short one; other tasks run in between."""
    limit = FIRST_ENTRIES
    while entries := await read(after, limit):
        yield entries
        await asyncio.sleep(0)
        after = end_of(entries)
        limit = min(2 * limit, MAX_ENTRIES)


def end_of(entries: Sequence[Entry]) -> Position:
    """Give the position of the last of these entries."""
    return entries.end if isinstance(entries, Part) else entries[-1].position
