"""Which client ids archived blocks may hold, by 4 bytes of a digest of each: a wrong guess costs a read.

Among 100,000 archived ids, a new one is taken for a known one once in 43,000 times.
"""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from app.storage import Entry

DIGEST_BYTES: Final = 4

Digests = npt.NDArray[np.uint32]


def digests_of(ids: Iterable[str]) -> Digests:
    """Give the digests (n,) of client ids."""
    joined = b"".join(blake2b(name.encode(), digest_size=DIGEST_BYTES).digest() for name in ids)
    return np.frombuffer(joined, "<u4")


def ids_bytes(blocks: Sequence[Sequence[Entry]]) -> bytes:
    """Write the digests of the ids in the blocks of a file, sorted in each."""
    digests = [np.sort(digests_of(name for entry in block for name in entry.ids if name)) for block in blocks]
    return msgspec.msgpack.encode([column.tobytes() for column in digests]) if any(map(len, digests)) else b""


class KnownIds:
    """Digests of the ids in the blocks of several files; `places` says which block each is in."""

    def __init__(self, digests: Digests, places: npt.NDArray[np.uint32]) -> None:
        order = np.argsort(digests, kind="stable")
        self._digests, self._places = digests[order], places[order]

    @classmethod
    def of(cls, files: Sequence[bytes]) -> "KnownIds":
        """Read what ids_bytes wrote of files; a place is the number of the file * 2**16 + that of the block in it."""
        digests, places = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
        for number, written in enumerate(files):
            blocks = msgspec.msgpack.decode(written, type=list[bytes]) if written else []
            for block, column in enumerate(blocks):
                digests.append(np.frombuffer(column, "<u4"))
                places.append(np.full(len(digests[-1]), number << 16 | block, np.uint32))
        return cls(np.concatenate(digests), np.concatenate(places))

    @property
    def size_bytes(self) -> int:
        """Give the bytes in memory."""
        return int(self._digests.nbytes + self._places.nbytes)

    def blocks_with(self, ids: Sequence[str]) -> list[tuple[int, int]]:
        """Give the blocks, (file, block), that may hold one of these ids, in order."""
        wanted = digests_of(ids)
        begin, end = (np.searchsorted(self._digests, wanted, side) for side in ("left", "right"))
        found = {int(place) for i in np.flatnonzero(begin < end) for place in self._places[begin[i] : end[i]]}
        return [(place >> 16, place & 0xFFFF) for place in sorted(found)]
