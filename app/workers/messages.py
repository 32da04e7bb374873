"""What workers send each other: records, and what became of each."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec import Raw, Struct

from app.sources.mapper import rules_of
from app.sources.source import Source
from app.storage import Bound
from app.streams.allowance import Allowance
from app.streams.batches.answer import COLUMNS, Answer
from app.streams.batches.records import Record
from app.streams.changes.ingest import Outcomes

MESSAGE_BYTES: Final = 4_194_304
"""A message ends with the stream that makes it this long: the records of a stream are never in two."""
MOST_PER_BODY_BYTE: Final = 5
"""A short number takes two bytes of JSON, and nine packed."""
_ENCODER: Final = msgspec.msgpack.Encoder()


class Row(Struct, array_like=True, frozen=True):
    """A record without its stream."""

    place: int
    sample: list[float | None] | dict[str, float | None]
    client_id: str
    time: float | None


class Part(Struct, array_like=True, frozen=True):
    """The records of a stream in order, and how many streams there may be if it is new."""

    stream: str
    bounds: tuple[Bound, ...]
    rows: list[Row]


class Message(Struct, array_like=True, frozen=True):
    """Parts, each packed, and the source of all records if they have one."""

    source: Source | None
    parts: list[Raw]


class RefusedRow(Struct, array_like=True, frozen=True):
    """The place of a record that was refused, the code of its problem, and the problem as a packed document."""

    place: int
    code: str
    problem: bytes


class Reply(Struct, array_like=True, frozen=True):
    """What became of each record, and which streams the holder has given up since.

    The columns of the records that were taken are bytes of arrays.
    """

    places: list[int]
    columns: list[bytes]
    refused: list[RefusedRow]
    released: list[str]

    def answer(self) -> Answer:
        """Give the answer to the records that were taken."""
        found = Answer.blank(0)
        for name, column in zip(COLUMNS, self.columns, strict=True):
            setattr(found, name, np.frombuffer(column, getattr(found, name).dtype))
        return found


_PART: Final = msgspec.msgpack.Decoder(Part)
_MESSAGE: Final = msgspec.msgpack.Decoder(Message)


async def packed(
    by_stream: Mapping[str, Sequence[Record]], allowances: Mapping[str, Allowance], source: Source | None
) -> AsyncIterator[tuple[list[str], bytes]]:
    """Give messages with the records of these streams, and the names of the streams in each."""
    streams, parts, size = list[str](), list[Raw](), 0
    for stream, records in by_stream.items():
        rows = [Row(record.place, record.sample, record.client_id, record.time) for record in records]  # type: ignore[arg-type]
        parts.append(Raw(_ENCODER.encode(Part(stream, tuple(allowances[stream].bounds), rows))))
        streams.append(stream)
        size += len(parts[-1])
        if size >= MESSAGE_BYTES:
            yield streams, _ENCODER.encode(Message(source, parts))
            streams, parts, size = [], [], 0
            await asyncio.sleep(0)
    if parts:
        yield streams, _ENCODER.encode(Message(source, parts))


async def unpacked(body: bytes) -> tuple[dict[str, list[Record]], dict[str, Allowance]]:
    """Read a message. Raises msgspec.DecodeError."""
    message = _MESSAGE.decode(body)
    rules = None if message.source is None else rules_of(message.source)
    by_stream, allowances = dict[str, list[Record]](), dict[str, Allowance]()
    for number, one in enumerate(message.parts):
        part = _PART.decode(one)
        by_stream[part.stream] = [
            Record(row.place, part.stream, row.sample, row.client_id, row.time, rules) for row in part.rows
        ]
        allowances[part.stream] = Allowance(part.bounds)
        if number % 100 == 99:
            await asyncio.sleep(0)
    return by_stream, allowances


def reply(outcomes: Outcomes, refused: Iterable[RefusedRow], released: list[str]) -> bytes:
    """Pack what became of the records of a message."""
    places = [record.place for records, _ in outcomes.taken for record in records]
    given = [answer for _, answer in outcomes.taken] or [Answer.blank(0)]
    columns = [np.concatenate([getattr(answer, name) for answer in given]).tobytes() for name in COLUMNS]
    return _ENCODER.encode(Reply(places, columns, list(refused), released))


def read_reply(body: bytes) -> Reply:
    """Read a reply."""
    return msgspec.msgpack.decode(body, type=Reply)
