"""Reads a log page by page."""

import asyncio
from collections.abc import AsyncIterator

from app.storage.base import Entry, Position, Store

FIRST_ENTRIES = 4
MOST_ENTRIES = 256


async def pages(store: Store, stream: str, after: Position) -> AsyncIterator[list[Entry]]:
    """Give the entries later than a position, in pages of a few megabytes; others have their turn between."""
    limit = FIRST_ENTRIES
    while entries := await store.entries(stream, after, limit):
        yield entries
        await asyncio.sleep(0)
        after = entries[-1].position
        limit = min(2 * limit, MOST_ENTRIES)
