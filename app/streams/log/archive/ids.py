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
FileIds = Sequence[Digests]
"""The digests of each block of a file."""
NO_IDS: Final[FileIds] = ()


def digests_of(ids: Iterable[str]) -> Digests:
    """Give the digests (n,) of client ids."""
    joined = b"".join(blake2b(name.encode(), digest_size=DIGEST_BYTES).digest() for name in ids)
    return np.frombuffer(joined, "<u4")


def ids_bytes(blocks: Sequence[Sequence[Entry]]) -> bytes:
    """Write the digests of the ids in the blocks of a file, sorted in each."""
    digests = [np.sort(digests_of(name for entry in block for name in entry.ids if name)) for block in blocks]
    return msgspec.msgpack.encode([column.tobytes() for column in digests]) if any(map(len, digests)) else b""


def digests_in(files: Iterable[FileIds]) -> Digests:
    """Give all digests of files, sorted: 4 bytes an id are what it takes to know new ids."""
    return np.sort(np.concatenate([np.empty(0, np.uint32), *(column for file in files for column in file)]))


def may_hold(digests: Digests, ids: Sequence[str]) -> list[str]:
    """Give those of some ids that may be among those with these sorted digests."""
    wanted = digests_of(ids)
    places = np.minimum(np.searchsorted(digests, wanted), max(len(digests) - 1, 0))
    is_there = digests[places] == wanted if len(digests) else np.zeros(len(ids), np.bool_)
    return [name for name, is_possible in zip(ids, is_there, strict=True) if is_possible]


def blocks_with(file: FileIds, ids: Sequence[str]) -> list[int]:
    """Give the numbers of the blocks of a file that may hold some of these ids."""
    wanted = digests_of(ids)
    return [number for number, column in enumerate(file) if np.isin(column, wanted).any()]


def read_ids(written: bytes) -> FileIds:
    """Read what ids_bytes wrote. Raises msgspec.DecodeError or ValueError for other bytes."""
    columns = msgspec.msgpack.decode(written, type=list[bytes]) if written else []
    return [np.frombuffer(column, "<u4") for column in columns]
