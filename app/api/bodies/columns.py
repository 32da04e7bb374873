"""Reads the columns of a body, one element per sample, piece by piece, and names each invalid element."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from app.api.bodies.json_tree import REPEATED, read_tree, repeated_name
from app.api.bodies.reading import InvalidJson
from app.api.bodies.row_faults import id_fault, row_fault, time_fault
from app.api.bodies.splitting import ELEMENT_BYTES, Piece, TooLong, split
from app.api.schemas.types import ArraySample, ClientId, Moment, NamedSample
from app.streams.errors import MOST_NAMED, InvalidIds, InvalidSamples, InvalidTimestamps, Refused, more_than
from app.streams.faults import Fault, Faults

Row = ArraySample | NamedSample

_ROW = msgspec.json.Decoder(ArraySample | NamedSample)
_ROWS = msgspec.json.Decoder(list[ArraySample | NamedSample])
LIMIT_SETTING = "ITAN_MAX_BATCH_SAMPLES"
SHORT = f"flat, and no longer than {ELEMENT_BYTES} bytes"


@dataclass(frozen=True, slots=True)
class Column:
    """The name of a column, how its elements are read, and how invalid ones are explained and refused."""

    name: str
    read_all: Callable[[bytes], Sequence[Any]]
    read_one: Callable[[bytes], Any]
    fault: Callable[[Any], Fault]
    refused: type[Refused]
    setting: str = LIMIT_SETTING


def read_rows(text: bytes) -> list[Row]:
    """Read an array of samples. Raises ValueError if one may name a value twice."""
    rows = _ROWS.decode(text)
    refuse_dropped(text, count_names(rows), names_of(rows))
    return rows


def read_row(text: bytes) -> Row:
    """Read one sample. Raises ValueError if it names a value twice."""
    row: Row = _ROW.decode(text)
    refuse_repeated(text, count_names([row]), names_of([row]))
    return row


def refuse_repeated(text: bytes, names: int, texts: Iterable[str]) -> None:
    """Raise ValueError if an object in the text has a name twice; `names` and `texts` are what was decoded of it."""
    try:
        refuse_dropped(text, names, texts)
    except ValueError:
        if repeated_name(read_tree(text)) is not None:
            raise


def refuse_dropped(text: bytes, names: int, texts: Iterable[str]) -> None:
    """Raise ValueError unless the text has as many colons as the decoded names and texts account for."""
    if b"\\" in text or text.count(b":") != names + "".join(texts).count(":"):
        raise ValueError(REPEATED)


def count_names(rows: Iterable[Row]) -> int:
    """Count the names of object samples."""
    return sum(len(row) for row in rows if isinstance(row, dict))


def names_of(rows: Iterable[Row]) -> Iterable[str]:
    """Give the names of object samples."""
    return (name for row in rows if isinstance(row, dict) for name in row)


SAMPLES = Column("samples", read_rows, read_row, row_fault, InvalidSamples)
POINTS = Column("points", read_rows, read_row, row_fault, InvalidSamples)
IDS = Column(
    "ids",
    msgspec.json.Decoder(list[ClientId | None]).decode,
    msgspec.json.Decoder(ClientId | None).decode,
    id_fault,
    InvalidIds,
)
TIMESTAMPS = Column(
    "timestamps",
    msgspec.json.Decoder(list[Moment | None]).decode,
    msgspec.json.Decoder(Moment | None).decode,
    time_fault,
    InvalidTimestamps,
)


async def elements(
    column: Column, raw: Raw, limit: int, faults: Faults
) -> AsyncIterator[tuple[Sequence[Any], Sequence[int]]]:
    """Give the elements of a column with their places, piece by piece; add the invalid ones to the faults."""
    array, n = bytes(raw), 0
    if not array.startswith(b"["):
        value = read_tree(array) if len(array) <= ELEMENT_BYTES else f"{len(array)} bytes"
        raise column.refused(column.name, value, f"an array of {column.name}")
    try:
        for piece in split(array):
            n = piece.first + len(piece)
            if n > limit:
                raise more_than(limit, column.name, column.setting)
            yield read_piece(column, piece, faults)
            # let other requests run
            await asyncio.sleep(0)
    except TooLong as error:
        raise column.refused(f"{column.name}[{error.place}]", f"part of {len(array)} bytes", SHORT) from None
    if not n:
        raise column.refused(column.name, [], "an array of at least one entry")


async def read_column(column: Column, raw: Raw | UnsetType, limit: int) -> list[Any]:
    """Read what comes beside the samples, piece by piece; nothing if there is none."""
    values, faults = list[Any](), Faults()
    if raw is not UNSET:
        async for part, _ in elements(column, raw, limit, faults):
            values += part
    column.refused.for_any(faults)
    return values


def read_piece(column: Column, piece: Piece, faults: Faults) -> tuple[Sequence[Any], Sequence[int]]:
    """Read some elements; give those that can be read, with their places."""
    try:
        return column.read_all(piece.array()), range(piece.first, piece.first + len(piece))
    except ValueError:
        pass  # one of them is wrong
    values, places = [], []
    for place, element in enumerate(piece.elements, piece.first):
        try:
            values.append(column.read_one(element))
            places.append(place)
        except ValueError:
            add_fault(column, place, element, faults)
    return values, places


def add_fault(column: Column, place: int, element: bytes, faults: Faults) -> None:
    """Add what is wrong with an element; InvalidJson for a name that occurs twice."""
    if len(faults) >= MOST_NAMED:
        faults.count([place])
        return
    tree, field = read_tree(element), f"{column.name}[{place}]"
    refuse_repeated_in(tree, field)
    fault = column.fault(tree)
    faults.add(place, field + fault.field, fault.value, fault.limit)


def refuse_repeated_in(tree: Any, field: str) -> None:
    """Raise InvalidJson for a name that occurs twice in an object of an element."""
    if (repeated := repeated_name(tree)) is not None:
        path, value = repeated
        raise InvalidJson(field + path, value, REPEATED)
