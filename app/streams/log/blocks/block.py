"""A block as the entries that it holds."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from app.storage import Entry, Position
from app.streams.log.blocks.container import MOST_BYTES, Columns
from app.streams.log.blocks.envelopes import rebuild
from app.streams.log.blocks.rows import count_rows, rows_from_arrays
from app.streams.log.blocks.texts import Pieces, Texts, check_range
from app.streams.log.events import UnreadableEvent
from app.streams.log.seen import Seen, seen_in, seen_of
from core import InvalidSnapshot, Records

NOT_A_BATCH = -1
MOST_BLOCK_ENTRIES: Final = 1 << 14
"""Nobody packs more; a forged block of a few bytes may tell of millions."""
WIDTHS = ("features", "sides", "altered")


class Block:
    """A block, of which no more is decoded than is asked for. Raises UnreadableEvent if pack did not write it."""

    def __init__(self, body: bytes) -> None:
        self._columns = Columns(body)
        if (n := self._columns.shape("entry.seq")[0]) > MOST_BLOCK_ENTRIES:
            raise UnreadableEvent(f"a block has {n} entries, more than {MOST_BLOCK_ENTRIES}")
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
        found: list[int] = np.unique(self._held(seqs)[1]).tolist()
        return found

    def _held(self, seqs: Iterable[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Give those of these samples that are here, rising, and the places of their batches."""
        batches = np.flatnonzero(self._first != NOT_A_BATCH)
        wanted = np.unique(np.fromiter(seqs, np.int64))
        ends = np.searchsorted(self._seq[batches], wanted)
        wanted, places = wanted[ends < len(batches)], batches[ends[ends < len(batches)]]
        held = self._first[places] <= wanted
        return wanted[held], places[held]

    def names(self, seqs: Iterable[int]) -> dict[int, str]:
        """Give the client ids of those of these samples that are here and have one, and read nothing else."""
        texts = Texts(self._columns, "ids")
        runs = self._runs("ids", len(texts))
        held, places = self._held(seqs)
        rows = runs[places, 0] + held - self._first[places]
        named = rows < runs[places, 1]
        texts.check_total(rows[named])
        try:
            found = zip(held[named].tolist(), texts.at(rows[named]), strict=True)
            return {seq: name for seq, name in found if name}
        except (IndexError, ValueError) as error:
            raise UnreadableEvent(f"a block's ids cannot be read: {error}") from error

    def entries(self, places: Sequence[int]) -> list[Entry]:
        """Give the entries at these places."""
        try:
            bodies, ids = self._bodies(places), self._ids(places)
        except (IndexError, InvalidSnapshot, ValueError) as error:
            raise UnreadableEvent(f"a block's entries cannot be read: {error}") from error
        chosen = np.array(places, np.intp)
        positions = map(Position, self._seq[chosen].tolist(), self._sub[chosen].tolist())
        firsts = [None if first == NOT_A_BATCH else first for first in self._first[chosen].tolist()]
        return list(map(Entry, positions, bodies, firsts, ids))

    def seen(self, places: range) -> Seen | None:
        """Give what seen_in gives of the entries at these places, without reading their values."""
        chosen = np.array([i for i in places if self._first[i] != NOT_A_BATCH], np.intp)
        counts = self._entry("rows")[chosen]
        if not len(chosen):
            return None
        if not counts.all():  # a batch is raw
            return seen_in(self.entries(places))
        runs = self._runs("rows", count_rows(self._columns))[chosen]
        records = rows_from_arrays(self._columns, places_of(runs), (0, 0, 0))
        at = self._columns.read("entry.at", "<f8", len(self))[chosen]
        return seen_of(records, np.repeat(at, counts))

    def _ids(self, places: Sequence[int]) -> list[tuple[str, ...]]:
        texts = Texts(self._columns, "ids")
        runs = self._runs("ids", len(texts))[np.array(places, np.intp)]
        chosen, ends = places_of(runs), np.cumsum(runs[:, 1] - runs[:, 0]).tolist()
        texts.check_total(chosen)
        names = texts.at(chosen)
        return [tuple(names[start:end]) for start, end in pairwise([0, *ends])]

    def _bodies(self, places: Sequence[int]) -> list[bytes]:
        pieces, piece = Pieces(self._columns, "pieces"), self._entry("piece")
        check_range("entry.piece", piece, len(pieces))
        chosen = np.array(places, np.intp)
        pieces.check_total(piece[chosen])
        columns = piece, self._columns.read("entry.at", "<f8", len(self)), self._entry("timed")
        rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
        return [
            pieces[number] if records is None else rebuild(pieces[number], records, at, is_timed)
            for (number, at, is_timed), records in zip(rows, self._records(places), strict=True)
        ]

    def _records(self, places: Sequence[int]) -> list[Records | None]:
        """Give the records of the entries at these places; None for those that have none, or are raw."""
        chosen = np.array(places, np.intp)
        runs = self._runs("rows", count_rows(self._columns))[chosen]
        widths = np.column_stack([self._entry(name) for name in WIDTHS])[chosen]
        found: list[Records | None] = [None] * len(places)
        size_bytes = 0
        for alike in np.unique(widths[runs[:, 0] < runs[:, 1]], axis=0).tolist():
            of_these = np.flatnonzero((widths == alike).all(1) & (runs[:, 0] < runs[:, 1]))
            records, end = rows_from_arrays(self._columns, places_of(runs[of_these]), alike), 0
            for place, (first, last) in zip(of_these.tolist(), runs[of_these].tolist(), strict=True):
                start, end = end, end + last - first
                found[place] = records[start:end]
            size_bytes += records.rows.nbytes
            if size_bytes > MOST_BYTES:
                raise UnreadableEvent(f"a block's rows would take more than {MOST_BYTES} bytes")
        return found

    def _runs(self, name: str, total: int) -> npt.NDArray[np.int64]:
        """Give where the rows of each entry begin and end, (entries, 2), of so many in all."""
        counts = self._entry(name)
        ends = np.cumsum(counts)
        if (counts < 0).any() or (ends[-1] if len(ends) else 0) != total:
            raise UnreadableEvent(f"a block's {name} do not fit its entries")
        return np.column_stack([ends - counts, ends])


def places_of(runs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Give the rows between the beginnings and the ends of runs (k, 2)."""
    counts = runs[:, 1] - runs[:, 0]
    before = np.cumsum(counts) - counts
    places: npt.NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(runs[:, 0] - before, counts)
    return places


def unpack(body: bytes) -> list[Entry]:
    """Give the entries of a block. Raises UnreadableEvent if pack did not write it."""
    block = Block(body)
    return block.entries(range(len(block)))
