"""Named columns as bytes, read one by one.

Bytes: MAGIC, VERSION (2 bytes, little-endian), the length of the directory and that of its compressed form (4 bytes
each), the latter, the columns' data in its order, 8 bytes of BLAKE2b over everything before. The directory is
MessagePack: for each name the form, rows, bytes a row, and bytes of data or, if these are few, the data.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from struct import Struct
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from app.streams.log.blocks.columns import Column, compressed, decode, decompressed, encode
from app.streams.log.blocks.steps import Steps
from app.streams.log.events import UnreadableEvent

MAGIC: Final = b"ITANblck"
VERSION: Final = 1
MOST_BYTES: Final = 1 << 28
"""More than any block holds when decoded: 10,000 samples of 256 features, all of them altered, take 64 MB."""
SHORT_BYTES: Final = 16
MOST_DIRECTORY_BYTES: Final = 1 << 20
_HEADER: Final = Struct("<8sHII")
_DIGEST_BYTES: Final = 8
_DIRECTORY: Final = msgspec.msgpack.Decoder(dict[str, tuple[int, int, int, int | bytes]])


def writing(columns: Mapping[str, npt.NDArray[Any]]) -> Steps:
    """Write columns one by one; other work may come in between."""
    directory: dict[str, tuple[int, int, int, int | bytes]] = {}
    long = []
    for name, values in columns.items():
        form, n, width, data = encode(values)
        is_short = len(data) <= SHORT_BYTES
        directory[name] = (form, n, width, data if is_short else len(data))
        if not is_short:
            long.append(data)
        yield
    listed = msgspec.msgpack.encode(directory)
    packed = compressed(listed)
    body = b"".join([_HEADER.pack(MAGIC, VERSION, len(listed), len(packed)), packed, *long])
    return body + _digest(body)


class Columns:
    """The columns of a block; each is decoded when it is read first."""

    def __init__(self, body: bytes) -> None:
        _check_sealed(body)
        self._columns, self._found = _columns(body[:-_DIGEST_BYTES]), dict[str, npt.NDArray[np.uint8]]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def shape(self, name: str) -> tuple[int, int]:
        """Give the rows of a column and the bytes of each; none if it is not there."""
        column = self._columns.get(name)
        return (column.n, column.width) if column else (0, 0)

    def read(self, name: str, kind: npt.DTypeLike, n: int | None = None) -> npt.NDArray[Any]:
        """Give a column (n,), or (n, k) if its rows hold several values. Raises UnreadableEvent."""
        try:
            if n is not None and self._columns[name].n != n:
                raise UnreadableEvent(f"a block's column {name} has {self._columns[name].n} rows instead of {n}")
            if name not in self._found:
                self._found[name] = decode(self._columns[name])
            values = self._found[name].view(kind)
        except (KeyError, ValueError, TypeError) as error:
            raise UnreadableEvent(f"a block's column {name} cannot be read: {error}") from error
        return values[:, 0] if values.shape[1:] == (1,) else values


def _check_sealed(body: bytes) -> None:
    if len(body) < _HEADER.size + _DIGEST_BYTES or not body.startswith(MAGIC):
        raise UnreadableEvent("a block does not begin with the mark of blocks")
    if _digest(memoryview(body)[:-_DIGEST_BYTES]) != body[-_DIGEST_BYTES:]:
        raise UnreadableEvent("a block's checksum does not match: it is damaged or cut short")


def _columns(body: bytes) -> dict[str, Column]:
    """Give the columns of which a block consists, without its checksum."""
    _, version, length, packed = _HEADER.unpack_from(body)
    if version != VERSION:
        raise UnreadableEvent(f"a block has version {version}, but this build reads only {VERSION}")
    if length > MOST_DIRECTORY_BYTES:
        raise UnreadableEvent(f"a block's directory would take more than {MOST_DIRECTORY_BYTES} bytes")
    start = _HEADER.size + packed
    try:
        directory = _DIRECTORY.decode(decompressed(body[_HEADER.size : start], length))
    except ValueError as error:
        raise UnreadableEvent(f"a block's directory cannot be read: {error}") from error
    columns = {}
    for name, (form, n, width, data) in directory.items():
        if isinstance(data, int):
            data, start = body[start : start + max(data, 0)], start + max(data, 0)
        columns[name] = Column(form, n, width, data)
    if start != len(body):
        raise UnreadableEvent("a block's columns do not fit its length")
    if any(column.n < 0 or column.width < 0 for column in columns.values()):
        raise UnreadableEvent("a block's column has a size below 0")
    if sum(column.n * column.width for column in columns.values()) > MOST_BYTES:
        raise UnreadableEvent(f"a block would take more than {MOST_BYTES} bytes")
    return columns


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
