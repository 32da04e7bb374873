"""Entries of a log written as one block."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from app.storage import Entry
from app.streams.log.blocks.block import MOST_BLOCK_ENTRIES, NOT_A_BATCH, WIDTHS, Block
from app.streams.log.blocks.container import writing
from app.streams.log.blocks.envelopes import Parsed, parse
from app.streams.log.blocks.rows import rows_to_arrays
from app.streams.log.blocks.steps import Steps, at_once, in_turns
from app.streams.log.blocks.texts import pieces_to_arrays, texts_to_arrays
from app.streams.log.events import UnreadableEvent, read_all_records
from core import Records

STEP_ENTRIES = 256
"""So many are packed before other tasks have their turn."""

Arrays = dict[str, npt.NDArray[Any]]


def pack(entries: Sequence[Entry]) -> bytes:
    """Write consecutive entries, at least one, as a block that gives them back; else raise ValueError."""
    return at_once(_packing(entries))


async def pack_in_turns(entries: Sequence[Entry]) -> bytes:
    """Do what pack does; other tasks run in between."""
    return await in_turns(_packing(entries))


def _packing(entries: Sequence[Entry]) -> Steps:
    """Pack step by step; each takes a few milliseconds."""
    if len(entries) > MOST_BLOCK_ENTRIES:
        raise ValueError(f"{len(entries)} entries are more than a block holds")
    parsed: list[Parsed] = []
    for step in _steps(entries):
        parsed += map(parse, entries[step])
        yield
    n_features = next((one.widths[0] for one in parsed if not one.is_raw), 0)
    parsed = [
        one if one.widths[0] == n_features else Parsed(entry.body) for one, entry in zip(parsed, entries, strict=True)
    ]
    try:
        body = yield from _writing(entries, parsed)
    except UnreadableEvent:  # under a right checksum, rows hold what nothing writes
        parsed = [Parsed(entry.body) for entry in entries]
        body = yield from _writing(entries, parsed)
    if different := (yield from _comparing(entries, body)):
        # an earlier version wrote them otherwise
        parsed = [Parsed(entry.body) if i in different else parsed[i] for i, entry in enumerate(entries)]
        body = yield from _writing(entries, parsed)
        if (yield from _comparing(entries, body)):
            raise ValueError("a block of these entries would not give them back")
    return body


def _steps(entries: Sequence[Any]) -> Iterator[slice]:
    return (slice(start, start + STEP_ENTRIES) for start in range(0, len(entries), STEP_ENTRIES))


def _comparing(entries: Sequence[Entry], body: bytes) -> Generator[None, None, set[int]]:
    """Find the entries that a block does not give back as they are."""
    block, different = Block(body), set[int]()
    for step in _steps(entries):
        places = range(len(entries))[step]
        different.update(i for i, back in zip(places, block.entries(places), strict=True) if back != entries[i])
        yield
    return different


def _writing(entries: Sequence[Entry], parsed: Sequence[Parsed]) -> Steps:
    arrays = _entry_arrays(entries, parsed)
    yield
    records = []
    for step in _steps(parsed):
        if blobs := [one.records for one in parsed[step] if not one.is_raw]:
            records.append(read_all_records(blobs))
        yield
    if records:
        arrays |= rows_to_arrays(Records.concatenate(records))
    return (yield from writing(arrays))


def _entry_arrays(entries: Sequence[Entry], parsed: Sequence[Parsed]) -> Arrays:
    places = {piece: place for place, piece in enumerate(dict.fromkeys(one.piece for one in parsed))}
    columns = {
        "seq": [entry.position.seq for entry in entries],
        "sub": [entry.position.sub for entry in entries],
        "first": [NOT_A_BATCH if entry.first_seq is None else entry.first_seq for entry in entries],
        "ids": [len(entry.ids) for entry in entries],
        "piece": [places[one.piece] for one in parsed],
        "rows": [one.n_rows for one in parsed],
        "timed": [one.is_timed for one in parsed],
    }
    columns |= {name: [one.widths[i] for one in parsed] for i, name in enumerate(WIDTHS)}
    arrays: Arrays = {f"entry.{name}": np.array(values, np.int64) for name, values in columns.items()}
    arrays["entry.at"] = np.array([one.at for one in parsed])
    arrays |= texts_to_arrays("ids", [name for entry in entries for name in entry.ids])
    return arrays | pieces_to_arrays("pieces", list(places))
