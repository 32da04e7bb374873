"""Pages of the log: reads stop once they hold enough bytes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from app.storage.blocks import StoredBlock
from app.storage.log import MAX_SEQ, Entry

# One entry may hold a sample of 200 bytes, or ten thousand in 16 MB.
PAGE_BYTES = 1 << 22

Part = TypeVar("Part", Entry, StoredBlock | Entry)


def take_page(entries: Iterable[Part]) -> list[Part]:
    """Take entries up to the one whose body makes a page full."""
    page: list[Part] = []
    size_bytes = 0
    for entry in entries:
        page.append(entry)
        size_bytes += len(entry.body)
        if size_bytes >= PAGE_BYTES:
            break
    return page


def is_full(page: Iterable[StoredBlock | Entry]) -> bool:
    """Tell whether a page is full."""
    return sum(len(entry.body) for entry in page) >= PAGE_BYTES


def possible_seqs(seqs: Iterable[int]) -> list[int]:
    """Sort the distinct seqs that a sample can have; the others are merely unknown, however large."""
    return sorted({int(seq) for seq in seqs if 1 <= seq <= MAX_SEQ})


def collect_batches(seqs: Sequence[int], next_batch: Callable[[int], Part | None]) -> list[Part]:
    """Take a page of the blocks and batches that hold these sorted seqs.

    next_batch(seq) gives the first of them that ends at or after a seq.
    """
    return take_page(_batches(seqs, next_batch))


def _batches(seqs: Sequence[int], next_batch: Callable[[int], Part | None]) -> Iterator[Part]:
    found: Part | None = None
    for seq in seqs:
        if found is not None and found.holds(seq):
            continue
        entry = next_batch(seq)
        if entry is None:
            return
        if entry.holds(seq):
            found = entry
            yield entry
