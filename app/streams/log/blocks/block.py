"""Entries of a log as one block, and back."""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from app.storage import Entry, Position
from app.streams.log.blocks.container import Columns, writing
from app.streams.log.blocks.envelopes import Parsed, parse, rebuild
from app.streams.log.blocks.rows import count_rows, rows_from_arrays, rows_to_arrays
from app.streams.log.blocks.steps import Steps, at_once, in_turns
from app.streams.log.blocks.texts import Pieces, Texts, check_range, pieces_to_arrays, texts_to_arrays
from app.streams.log.events import UnreadableEvent, read_all_records
from core import InvalidSnapshot, Records

STEP_ENTRIES = 256
"""So many are packed before other tasks have their turn."""
NOT_A_BATCH = -1
WIDTHS = ("features", "sides", "altered")

Arrays = dict[str, npt.NDArray[Any]]


def pack(entries: Sequence[Entry]) -> bytes:
    """Write consecutive entries, at least one, as a block. Unpacked, it gives exactly these."""
    return at_once(_packing(entries))


async def pack_in_turns(entries: Sequence[Entry]) -> bytes:
    """Do what pack does; other tasks run in between."""
    return await in_turns(_packing(entries))


def unpack(body: bytes) -> list[Entry]:
    """Give the entries of a block. Raises UnreadableEvent if pack did not write it."""
    block = Block(body)
    return block.entries(range(len(block)))


def _packing(entries: Sequence[Entry]) -> Steps:
    """Pack step by step; each takes a few milliseconds."""
    parsed: list[Parsed] = []
    for step in _steps(entries):
        parsed += map(parse, entries[step])
        yield
    n_features = next((one.widths[0] for one in parsed if not one.is_raw), 0)
    parsed = [
        one if one.widths[0] == n_features else Parsed(entry.body) for one, entry in zip(parsed, entries, strict=True)
    ]
    while True:
        body = yield from _writing(entries, parsed)
        different = yield from _comparing(entries, body)
        if not different:
            return body
        # an earlier version wrote them otherwise
        parsed = [Parsed(entry.body) if i in different else parsed[i] for i, entry in enumerate(entries)]


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


class Block:
    """A block, of which no more is decoded than is asked for. Raises UnreadableEvent if pack did not write it."""

    def __init__(self, body: bytes) -> None:
        self._columns = Columns(body)
        self._seq = self._columns.read("entry.seq", "<i8")
        self._sub = self._entry("sub")
        self._first = self._entry("first")

    def __len__(self) -> int:
        return len(self._seq)

    def _entry(self, name: str) -> npt.NDArray[np.int64]:
        return self._columns.read(f"entry.{name}", "<i8", len(self._seq))

    def position(self, i: int) -> Position:
        """Give the position of an entry."""
        return Position(int(self._seq[i]), int(self._sub[i]))

    def after(self, position: Position) -> range:
        """Give the places of the entries after a position."""
        return range(bisect_right(range(len(self)), position, key=self.position), len(self))

    def holding(self, seqs: Iterable[int]) -> list[int]:
        """Give the places of the batches that hold these samples, in order."""
        batches = np.flatnonzero(self._first != NOT_A_BATCH)
        wanted = np.unique(np.fromiter(seqs, np.int64))
        ends = np.searchsorted(self._seq[batches], wanted)
        held = ends < len(batches)
        places = batches[ends[held]]
        found: list[int] = np.unique(places[self._first[places] <= wanted[held]]).tolist()
        return found

    def entries(self, places: Sequence[int]) -> list[Entry]:
        """Give the entries at these places."""
        try:
            bodies, ids = self._bodies(places), self._ids(places)
        except (IndexError, InvalidSnapshot, ValueError) as error:
            raise UnreadableEvent(f"a block's entries cannot be read: {error}") from error
        firsts = [None if first == NOT_A_BATCH else first for first in self._first[np.array(places, np.intp)].tolist()]
        return list(map(Entry, map(self.position, places), bodies, firsts, ids))

    def _ids(self, places: Sequence[int]) -> list[tuple[str, ...]]:
        texts = Texts(self._columns, "ids")
        return [texts.part(*run) for run in self._runs("ids", len(texts))[np.array(places, np.intp)].tolist()]

    def _bodies(self, places: Sequence[int]) -> list[bytes]:
        pieces, piece = Pieces(self._columns, "pieces"), self._entry("piece")
        check_range("entry.piece", piece, len(pieces))
        timed, at = self._entry("timed"), self._columns.read("entry.at", "<f8", len(self))
        return [
            pieces[int(piece[i])]
            if records is None
            else rebuild(pieces[int(piece[i])], records, float(at[i]), timed[i])
            for i, records in zip(places, self._records(places), strict=True)
        ]

    def _records(self, places: Sequence[int]) -> list[Records | None]:
        """Give the records of the entries at these places; None for those that have none, or are raw."""
        chosen = np.array(places, np.intp)
        runs = self._runs("rows", count_rows(self._columns))[chosen]
        widths = np.column_stack([self._entry(name) for name in WIDTHS])[chosen]
        found: list[Records | None] = [None] * len(places)
        for alike in np.unique(widths[runs[:, 0] < runs[:, 1]], axis=0).tolist():
            of_these = np.flatnonzero((widths == alike).all(1) & (runs[:, 0] < runs[:, 1]))
            rows = np.concatenate([np.arange(*run) for run in runs[of_these]])
            records, end = rows_from_arrays(self._columns, rows, alike), 0
            for place, (first, last) in zip(of_these.tolist(), runs[of_these].tolist(), strict=True):
                start, end = end, end + last - first
                found[place] = records[start:end]
        return found

    def _runs(self, name: str, total: int) -> npt.NDArray[np.int64]:
        """Give where the rows of each entry begin and end, (entries, 2), of so many in all."""
        counts = self._entry(name)
        ends = np.cumsum(counts)
        if (counts < 0).any() or (ends[-1] if len(ends) else 0) != total:
            raise UnreadableEvent(f"a block's {name} do not fit its entries")
        return np.column_stack([ends - counts, ends])
