"""Moves entries of a log into blocks."""

from typing import Final

from app.storage import START, Entry, Position, Store, StoredBlock, is_full
from app.streams.log.blocks import pack_in_turns
from app.streams.log.id_index import Growth

LEAST_SAMPLES: Final = 512
"""A block holds so many samples: each is packed once, and what waits for the next block is short."""
MOST_SAMPLES: Final = 2048
MOST_ENTRIES: Final = 512
"""A block holds no more, but for its last entry: a late label reads and decodes one block."""


async def compact(store: Store, stream: str, until: Position, oldest_seq: int, token: int = 0) -> int:
    """Move the oldest entries that are not in a block into one, if those up to a position fill it.

    Give the number of its samples, 0 if none was made. Ids of samples before oldest_seq need not be found any more.
    """
    packed = await store.packed_to(stream)
    begin = START if packed is None else packed
    if until.seq - max(begin.seq, oldest_seq - 1) < LEAST_SAMPLES:
        return 0
    entries = await _unpacked(store, stream, begin, until)
    n_samples = sum(entry.n_samples for entry in entries)
    if n_samples < LEAST_SAMPLES:
        return 0
    block = StoredBlock(packed or entries[0].after, entries[-1].position, len(entries), await pack_in_turns(entries))
    growth = Growth(entries, oldest_seq, block.position.seq - oldest_seq + 1)
    n_buckets = (await store.find_ids(stream, (), [0])).n_buckets
    present = (await store.find_ids(stream, (), growth.needed(n_buckets))).buckets  # the hash of a bucket: its number
    buckets = growth.buckets(n_buckets, present)
    await store.compact(stream, block, buckets, token)
    return n_samples


async def _unpacked(store: Store, stream: str, after: Position, until: Position) -> list[Entry]:
    """Read the entries of the next block."""
    found: list[Entry] = []
    n_samples = 0
    while len(found) < MOST_ENTRIES and n_samples < MOST_SAMPLES and not is_full(found):
        page = await store.entries(stream, found[-1].position if found else after, MOST_ENTRIES - len(found))
        if isinstance(page, StoredBlock) or not page:
            break
        for entry in page:
            if entry.position > until or n_samples >= MOST_SAMPLES:
                return found
            found.append(entry)
            n_samples += entry.n_samples
    return found
