"""What the index in the store says of an archived file.

A file is announced in the index before it is written: so the next writer knows of it, whatever happens to this one.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from app.storage import Entry, FileRow, Position, StoreCorrupt

VERSION: Final = 1


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive entries in a file, up to the one at `last`, and where their bytes are."""

    last: Position
    start: int
    size: int


class ArchivedFile(msgspec.Struct, frozen=True, array_like=True):
    """The entries of a log from `first` to `last`; first_seq is the first sample. Without blocks it is only announced.

    is_followed says that a batch follows them: then no label event can still come at the seq of the last.
    """

    version: int
    name: str
    first: Position
    last: Position
    first_seq: int
    n_samples: int
    is_followed: bool
    blocks: tuple[Block, ...] | None = None

    @property
    def is_written(self) -> bool:
        """Tell whether the file is there; otherwise it is only announced."""
        return self.blocks is not None

    def row(self, ids: bytes = b"") -> FileRow:
        """Give it as a row of the index."""
        return FileRow(self.last.seq, _ENCODER.encode(self), ids)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ArchivedFile)


def announced(name: str, entries: Sequence[Entry], *, is_followed: bool) -> ArchivedFile:
    """Give the file that is to hold these entries."""
    batches = [entry for entry in entries if entry.first_seq is not None]
    last = entries[-1].position
    first_seq = batches[0].first_seq if batches else last.seq + 1
    n_samples = sum(entry.n_samples for entry in batches)
    return ArchivedFile(VERSION, name, entries[0].position, last, first_seq or 1, n_samples, is_followed)


def read_files(stream: str, rows: Sequence[FileRow]) -> list[ArchivedFile]:
    """Read the index. Raises StoreCorrupt."""
    try:
        return [_DECODER.decode(row.body) for row in rows]
    except msgspec.DecodeError as error:
        raise StoreCorrupt(stream, f"the index of its archived files: {error}") from error
