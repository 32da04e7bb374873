"""Blocks: runs of consecutive entries of a log as one body each, and the index of the client ids in them.

What a block and a bucket of the index hold is the caller's; the store knows where a block lies, and which bucket a hash
belongs to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from app.storage.errors import StaleWriter
from app.storage.log import START, Entry, Position


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A run of entries: those after `after`, up to the one at `position`."""

    after: Position
    position: Position
    n_entries: int
    body: bytes

    def holds(self, seq: int) -> bool:
        """Tell whether the sample is in this block."""
        return self.after.seq < seq <= self.position.seq


class KnownIds(NamedTuple):
    """The newest seqs of client ids outside blocks, and some buckets of the index of ids in blocks.

    The index has the buckets 0 to n_buckets - 1.
    """

    seqs: dict[str, int]
    n_buckets: int = 0
    buckets: Mapping[int, bytes] = {}


NO_BUCKETS: Mapping[int, bytes] = {}


def bucket_of(value: int, n_buckets: int) -> int:
    """Give the bucket of a hash, by linear hashing: one more bucket takes its content from one other.

    >>> [bucket_of(13, n) for n in (1, 2, 3, 5, 6, 8, 14)]
    [0, 1, 1, 1, 5, 5, 13]
    """
    size = 1 << (n_buckets.bit_length() - 1)
    number = value % (2 * size)
    return number if number < n_buckets else number % size


def split_from(number: int) -> int:
    """Give the bucket whose content a new bucket shares.

    >>> [split_from(number) for number in range(1, 9)]
    [0, 0, 1, 0, 1, 2, 3, 0]
    """
    return number - (1 << (number.bit_length() - 1))


def check_compact(block: StoredBlock, buckets: Mapping[int, bytes]) -> None:
    """Raise ValueError for a block without entries, or for buckets without a number."""
    if block.position <= block.after or block.n_entries < 1:
        raise ValueError(f"a block of {block.n_entries} entries from {block.after} to {block.position}")
    if any(number < 0 for number in buckets):
        raise ValueError("buckets have numbers from 0 on")


def is_repeated(stream: str, block: StoredBlock, last: StoredBlock | None, oldest: Entry | None) -> bool:
    """Tell whether a block is the last one already. Raises StaleWriter unless it goes on from it.

    oldest is the first entry after the last block.
    """
    if last is not None and last.position >= block.position:
        if (last.after, last.position, last.body) == (block.after, block.position, block.body):
            return True
        raise StaleWriter(stream, block.after, last.position)
    follows = last.position == block.after if last is not None else oldest is not None and oldest.follows(block.after)
    if not follows:
        raise StaleWriter(stream, block.after, last.position if last is not None else START)
    return False
