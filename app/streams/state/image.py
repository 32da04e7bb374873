"""Images: a stream as bytes, its state together with its log, so that its samples can still be labelled elsewhere.

Bytes: MAGIC, the fields as msgpack, 8 bytes of BLAKE2b over everything before.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from app.storage import Entry, IncidentRow
from app.streams.log.blocks import MOST_BLOCK_ENTRIES, Block, pack
from app.streams.log.events import UnreadableEvent
from app.streams.log.horizon import Horizon
from app.streams.state.state import StreamState
from core import InvalidSnapshot

MAGIC: Final = b"ITANimage\x01"
DIGEST_BYTES: Final = 8
CHUNK_SAMPLES: Final = 10_000
READ_ENTRIES: Final = 256
"""So many are read before other tasks have their turn."""


class Image(msgspec.Struct, array_like=True):
    """A state, its log in chunks, the newest records of labelled samples by seq, and the rows of its incidents."""

    state: bytes
    chunks: list[bytes]
    labels: dict[int, bytes]
    incidents: list[IncidentRow]

    def to_bytes(self) -> bytes:
        """Write it."""
        body = MAGIC + _ENCODER.encode(self)
        return body + _digest(body)

    @staticmethod
    def is_written_in(body: bytes) -> bool:
        """Tell an image from a state alone."""
        return body.startswith(MAGIC)

    @classmethod
    def from_bytes(cls, body: bytes) -> "Image":
        """Read what to_bytes wrote. Raises InvalidSnapshot for anything else."""
        view = memoryview(body)
        if not cls.is_written_in(body) or _digest(view[:-DIGEST_BYTES]) != body[-DIGEST_BYTES:]:
            raise InvalidSnapshot("its checksum does not match: it is damaged or cut short")
        try:
            image: Image = _DECODER.decode(view[len(MAGIC) : -DIGEST_BYTES])
        except msgspec.DecodeError as error:
            raise InvalidSnapshot("its parts are not those of an image") from error
        return image

    def entries(self) -> Iterator[list[Entry]]:
        """Give the log, up to READ_ENTRIES at a time. Raises InvalidSnapshot."""
        for chunk in self.chunks:
            try:
                block = Block(chunk)
                for first in range(0, len(block), READ_ENTRIES):
                    yield block.entries(range(len(block))[first : first + READ_ENTRIES])
            except UnreadableEvent as error:
                raise InvalidSnapshot("a part of its log cannot be read") from error


def image_of(
    state: StreamState, log: Sequence[Entry], labels: Mapping[int, bytes], incidents: Sequence[IncidentRow]
) -> Image:
    """Make the image of a stream; the log begins with samples."""
    chunks, first = list[bytes](), 0
    for end in range(1, len(log) + 1):
        is_full = end - first == MOST_BLOCK_ENTRIES
        if is_full or end == len(log) or log[end].position.seq - log[first].position.seq > CHUNK_SAMPLES:
            chunks.append(pack(log[first:end]))
            first = end
    oldest = (log[0].first_seq if log else None) or state.detector.next_seq
    return Image(state.to_bytes(Horizon(oldest)), chunks, dict(labels), list(incidents))


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Image)


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()
