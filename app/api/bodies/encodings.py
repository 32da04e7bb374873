"""Decodes compressed bodies, piece by piece: a few bytes may stand for gigabytes."""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import cramjam

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

INPUT_BYTES: Final = 65_536
PIECE_BYTES: Final = 262_144
MOST_PARTS: Final = 100
"""A body may consist of several compressed parts, one after another; each costs as much as it takes to begin one."""
GZIP: Final = 31
# HTTP allows no larger window (RFC 9659), and a frame of a few bytes could ask for 2 GB
WINDOW: Final = {int(zstd.DecompressionParameter.window_log_max): 23}
DECODERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.decompressobj(wbits=GZIP),
    "x-gzip": lambda: zlib.decompressobj(wbits=GZIP),
    "zstd": lambda: zstd.ZstdDecompressor(options=WINDOW),
}
SNAPPY: Final = "snappy"
"""One block without a frame, as Prometheus sends it."""
ENCODINGS: Final = frozenset((*DECODERS, SNAPPY))
IDENTITY: Final = ("", "identity")


class Undecodable(ValueError):
    """A body that is not what its content encoding says."""


def declared_size(body: bytes, encoding: str) -> int:
    """Give the size that a body says it will have; 0 if its encoding does not say it. Raises Undecodable."""
    try:
        return cramjam.snappy.decompress_raw_len(body) if encoding == SNAPPY else 0
    except cramjam.DecompressionError as error:
        raise Undecodable(str(error)) from error


def decoded_pieces(body: bytes, encoding: str) -> Iterator[bytes]:
    """Decode a body into pieces of at most PIECE_BYTES, some of them empty. Raises Undecodable.

    Snappy has one piece, of the declared size.
    """
    if encoding == SNAPPY:
        yield unblocked(body)
        return
    begin, part, n_parts = DECODERS[encoding], None, 0
    for start in range(0, len(body), INPUT_BYTES):
        given = body[start : start + INPUT_BYTES]
        while given:
            if part is None or part.eof:
                part, n_parts = begin(), n_parts + 1
                if n_parts > MOST_PARTS:
                    raise Undecodable(f"more than {MOST_PARTS} compressed parts")
            try:
                yield from _pieces(part, given)
            except (zlib.error, zstd.ZstdError) as error:
                raise Undecodable(str(error)) from error
            given = part.unused_data if part.eof else b""
    if part is None or not part.eof:
        raise Undecodable("it ends too early")


def unblocked(body: bytes) -> bytes:
    """Decode a block of snappy. Raises Undecodable."""
    try:
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise Undecodable(str(error)) from error


def _pieces(part: Any, given: bytes) -> Iterator[bytes]:
    """Decode what a part has of some input; what follows its end stays in its unused_data."""
    while not part.eof:
        piece = part.decompress(given, PIECE_BYTES)
        # zstd keeps the rest of the input itself
        given = getattr(part, "unconsumed_tail", b"")
        yield piece
        if not piece and not given:
            return
