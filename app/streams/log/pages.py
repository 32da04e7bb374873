"""Reads a log page by page."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable

from app.storage import Entry, Position, Store

FIRST_ENTRIES = 4
MAX_ENTRIES = 256
NEWEST_SAMPLES = 10_000
"""What an earlier version did not know is made from so many of the newest samples: somebody waits for it."""


async def pages(store: Store, stream: str, after: Position) -> AsyncIterator[list[Entry]]:
    """Give the entries after a position, in pages of a few megabytes; other tasks run in between."""
    limit = FIRST_ENTRIES
    while entries := await store.entries(stream, after, limit):
        yield entries
        await asyncio.sleep(0)
        after = entries[-1].position
        limit = min(2 * limit, MAX_ENTRIES)


async def newest_entries(store: Store, stream: str, next_seq: int) -> AsyncIterator[Entry]:
    """Give the entries of the newest samples."""
    async for entries in pages(store, stream, Position(max(0, next_seq - 1 - NEWEST_SAMPLES), 0)):
        for entry in entries:
            yield entry


async def batches_holding(
    store: Store, stream: str, seqs: Iterable[int]
) -> AsyncIterator[tuple[list[Entry], list[int]]]:
    """Give the batches that hold these samples, in pages, each with the seqs that no earlier page held, rising."""
    remaining = sorted(set(seqs))
    while remaining and (entries := await store.entries_holding(stream, remaining)):
        yield entries, remaining
        await asyncio.sleep(0)
        remaining = remaining[bisect_right(remaining, entries[-1].position.seq) :]
