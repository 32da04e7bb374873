"""Named columns as bytes, read one by one.

Bytes: MAGIC, VERSION (2 bytes, little-endian), the length of the directory (4 bytes), the directory, the columns' data
in its order, 8 bytes of BLAKE2b over everything before. The directory is MessagePack: for each name the form, rows,
bytes a row and bytes of data.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from app.streams.log.blocks.columns import Column, decode, encode
from app.streams.log.blocks.steps import Steps
from app.streams.log.events import UnreadableEvent

MAGIC: Final = b"ITANblck"
VERSION: Final = 1
MOST_BYTES: Final = 1 << 28
"""More than any block holds when decoded: 10,000 samples of 256 features, all of them altered, take 64 MB."""
_HEADER: Final = Struct("<8sHI")
_DIGEST_BYTES: Final = 8
_DIRECTORY: Final = msgspec.msgpack.Decoder(dict[str, tuple[int, int, int, int]])


def writing(columns: Mapping[str, npt.NDArray[Any]]) -> Steps:
    """Write columns one by one; other work may come in between."""
    directory, data = {}, []
    for name, values in columns.items():
        column = encode(values)
        directory[name] = (column.form, column.n, column.width, len(column.data))
        data.append(column.data)
        yield
    listed = msgspec.msgpack.encode(directory)
    body = b"".join([_HEADER.pack(MAGIC, VERSION, len(listed)), listed, *data])
    return body + _digest(body)


class Columns:
    """The columns of a block; each is decoded when it is read first."""

    def __init__(self, body: bytes) -> None:
        self._body, self._found = memoryview(body), dict[str, npt.NDArray[np.uint8]]()
        directory, start = _directory(self._body)
        ends = accumulate((size for *_, size in directory.values()), initial=start)
        self._places = {name: (start, *entry) for start, (name, entry) in zip(ends, directory.items(), strict=False)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def shape(self, name: str) -> tuple[int, int]:
        """Give the rows of a column and the bytes of each; none if it is not there."""
        _, _, n, width, _ = self._places.get(name, (0, 0, 0, 0, 0))
        return n, width

    def read(self, name: str, kind: npt.DTypeLike, n: int | None = None) -> npt.NDArray[Any]:
        """Give a column (n,), or (n, k) if its rows hold several values. Raises UnreadableEvent."""
        try:
            if name not in self._found:
                start, form, rows, width, size = self._places[name]
                data = bytes(self._body[start : start + size])
                self._found[name] = decode(Column(form, rows, width, data))
            values = self._found[name].view(kind)
        except (KeyError, ValueError, TypeError) as error:
            raise UnreadableEvent(f"a block's column {name} cannot be read: {error}") from error
        if n is not None and len(values) != n:
            raise UnreadableEvent(f"a block's column {name} has {len(values)} rows instead of {n}")
        return values[:, 0] if values.shape[1:] == (1,) else values


def _directory(body: memoryview) -> tuple[dict[str, tuple[int, int, int, int]], int]:
    """Give the directory, checked, and where the data begins."""
    if len(body) < _HEADER.size + _DIGEST_BYTES or bytes(body[: len(MAGIC)]) != MAGIC:
        raise UnreadableEvent("a block does not begin with the mark of blocks")
    if _digest(body[:-_DIGEST_BYTES]) != body[-_DIGEST_BYTES:]:
        raise UnreadableEvent("a block's checksum does not match: it is damaged or cut short")
    _, version, length = _HEADER.unpack_from(body)
    if version != VERSION:
        raise UnreadableEvent(f"a block has version {version}, but this build reads only {VERSION}")
    start = _HEADER.size + length
    try:
        directory = _DIRECTORY.decode(body[_HEADER.size : min(start, len(body) - _DIGEST_BYTES)])
    except msgspec.DecodeError as error:
        raise UnreadableEvent(f"a block's directory cannot be read: {error}") from error
    if min((min(entry) for entry in directory.values()), default=0) < 0:
        raise UnreadableEvent("a block's directory has a size below 0")
    if start + sum(size for *_, size in directory.values()) != len(body) - _DIGEST_BYTES:
        raise UnreadableEvent("a block's columns do not fit its length")
    if sum(n * width for _, n, width, _ in directory.values()) > MOST_BYTES:
        raise UnreadableEvent(f"a block would take more than {MOST_BYTES} bytes")
    return directory, start


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
