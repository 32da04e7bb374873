"""Parquet files as blocks."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.bulk.reading.blocks import BLOCK_ROWS, Block, Names
from app.bulk.rows import Floats
from app.counts import counted
from app.replay.reading.cells import BadTable
from app.replay.reading.columns import Columns, refuse_no_features
from app.replay.reading.labels import LabelReader
from app.replay.reading.table import Meaning
from app.replay.reading.tally import Tally
from app.replay.reading.times import TimeReader
from app.streams.batches.timestamps import EARLIEST, LATEST

LINE: Final = re.compile(r"\bline (\d+)")
IS_NUMBER: Final = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)


class ParquetFile:
    """One .parquet file; its rows are counted from 1."""

    row = "row"

    def __init__(self, path: str, columns: Columns, meaning: Meaning) -> None:
        self.path, self._columns = path, columns
        self._label = LabelReader(columns.label, meaning.label_values) if columns.label else None
        given = meaning.timestamp_unit, meaning.timezone
        self._time = TimeReader(columns.timestamp, *given) if columns.timestamp else None
        self._known = TimeReader(columns.known, *given) if columns.known else None
        self._blank: list[int] = []

    def survey(self) -> tuple[Sequence[str], list[str]]:
        """Look through the file; give its features, and what was guessed. Raises BadTable."""
        with self._open() as file, rows_counted():
            features = self._columns.features_of(file.schema_arrow.names)
            self._refuse_text(file.schema_arrow, features)
            tallies = [Tally(name) for name in features]
            for batch, first in self._batches(file, [*features, *self._columns.others]):
                self._survey(batch, first, tallies)
            if self._label:
                self._label.settle()
            if not self._columns.features:
                refuse_no_features(tallies)
        notes = [note for time in (self._time, self._known) if time for note in time.notes()]
        if self._blank:
            without = f"{counted(len(self._blank), 'row')} without any value, the first is row {self._blank[0]}"
            notes.append(f"left out: {without}")
        return features, notes

    def blocks(self, stream: str, features: Sequence[str]) -> Iterator[Block]:
        """Give the rows, with these features in order; the stream is for rows that name none. Raises BadTable."""
        names = Names(self.row)
        with self._open() as file, rows_counted():
            for batch, first in self._batches(file, [*features, *self._columns.others]):
                block = self._block(batch, first, stream, features)
                names.check(block.streams.tolist(), block.ids.tolist(), block.rows.tolist())
                yield block

    def _open(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise BadTable(f"it cannot be read as Parquet: {error}") from None

    def _batches(self, file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Give record batches, each with the number of its first row."""
        if absent := [name for name in columns if name not in file.schema_arrow.names]:
            raise BadTable(f"no column {', '.join(absent)}; there are {', '.join(file.schema_arrow.names)}")
        first = 1
        try:
            for batch in file.iter_batches(BLOCK_ROWS, columns=list(dict.fromkeys(columns))):
                yield batch, first
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise BadTable(f"the rows from {first} on cannot be read: {error}") from None

    @staticmethod
    def _refuse_text(schema: pa.Schema, features: Sequence[str]) -> None:
        others = {name: schema.field(name).type for name in features}
        if odd := [f"{name} ({kind})" for name, kind in others.items() if not any(is_it(kind) for is_it in IS_NUMBER)]:
            advice = "leave out with --drop, or name all features with --columns"
            raise BadTable(f"no feature, since it holds no numbers: {', '.join(odd)}; {advice}")

    def _survey(self, batch: pa.RecordBatch, first: int, tallies: Sequence[Tally]) -> None:
        if not batch.num_rows:
            return
        X = self._values(batch, first, [tally.name for tally in tallies])
        for tally, column in zip(tallies, X.T, strict=True):
            tally.n_missing += int(np.isnan(column).sum())
            tally.count(column)
        self._blank += (first + np.flatnonzero(np.isnan(X).all(axis=1))).tolist()
        if self._label:
            for row, cell in enumerate(texts(batch.column(self._label.column)), start=first):
                self._label.survey(row, cell)

    def _block(self, batch: pa.RecordBatch, first: int, stream: str, features: Sequence[str]) -> Block:
        X, n = self._values(batch, first, features), batch.num_rows
        unknown = np.full(n, np.nan)
        block = Block(
            self._names(batch, self._columns.stream, stream),
            X,
            self._times(batch, first, self._time, needed=True) if self._time else unknown,
            self._names(batch, self._columns.id, None),
            self._labels(batch, first),
            self._times(batch, first, self._known, needed=False) if self._known else unknown,
            np.arange(first, first + n),
        )
        kept = ~np.isnan(X).all(axis=1)
        return block if kept.all() else Block(*(getattr(block, name)[kept] for name in Block.__slots__))

    def _values(self, batch: pa.RecordBatch, first: int, features: Sequence[str]) -> Floats:
        columns = [to_floats(batch.column(name)) for name in features]
        X: Floats = np.column_stack(columns) if columns else np.empty((batch.num_rows, 0))
        if len(odd := np.argwhere(np.isinf(X))):
            row, column = odd[0].tolist()
            raise BadTable(f"row {first + row}, column {features[column]}: {X[row, column]} is not a finite number")
        return X

    @staticmethod
    def _names(batch: pa.RecordBatch, column: str | None, otherwise: str | None) -> np.ndarray[Any, Any]:
        if column is None:
            return np.full(batch.num_rows, otherwise, np.object_)
        found = [name or None for name in texts(batch.column(column))]
        return np.array(found, np.object_)

    def _labels(self, batch: pa.RecordBatch, first: int) -> np.ndarray[Any, np.dtype[np.int8]]:
        found = np.zeros(batch.num_rows, np.int8)
        if self._label:
            for place, cell in enumerate(texts(batch.column(self._label.column))):
                label = self._label.read(first + place, cell)
                found[place] = 0 if label is None else 1 if label else -1
        return found

    def _times(self, batch: pa.RecordBatch, first: int, reader: TimeReader, *, needed: bool) -> Floats:
        column = batch.column(reader.column)
        if pa.types.is_temporal(column.type):
            if (times := utc_seconds(column, reader)) is not None and not (needed and column.null_count):
                return times
            column = moments(column, reader)
        read: Callable[[int, str], float | None] = reader.read if needed else reader.read_if_given
        cells = column.to_pylist() if pa.types.is_string(column.type) else [*map(said, to_floats(column).tolist())]
        return np.array([read(first + place, cell or "") for place, cell in enumerate(cells)], np.float64)


@contextmanager
def rows_counted() -> Iterator[None]:
    """Speak of rows where readers of text speak of lines."""
    try:
        yield
    except BadTable as error:
        raise BadTable(LINE.sub(r"row \1", str(error))) from None


def utc_seconds(column: pa.Array, reader: TimeReader) -> Floats | None:
    """Give plausible times of a type of their own in epoch seconds; None if each has to be looked at."""
    is_naive = getattr(column.type, "tz", None) is None
    if is_naive and reader.zone is not None:
        return None
    times = to_floats(in_microseconds(column, reader).cast(pa.int64())) / 1e6
    if not bool(((times >= EARLIEST) & (times <= LATEST) | np.isnan(times)).all()):
        return None
    reader.n_naive += len(times) if is_naive else 0
    return times


def in_microseconds(column: pa.Array, reader: TimeReader) -> pa.Array:
    """Give times of one type. Raises BadTable."""
    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise BadTable(f"the column {reader.column} holds {kind}, which says no moment")
    return column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)


def moments(column: pa.Array, reader: TimeReader) -> pa.Array:
    """Give times of a type of their own as text in ISO 8601, which says whether they have a zone."""
    column = in_microseconds(column, reader)
    return pa.array([None if one is None else one.isoformat() for one in column.to_pylist()], pa.string())


def to_floats(column: pa.Array) -> Floats:
    """Give a column of numbers as float64, NaN where there is none."""
    return np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan))


def texts(column: pa.Array) -> list[str]:
    """Give a column as text, empty where there is nothing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        return ["" if value is None else said(value) for value in column.to_pylist()]
    return [text or "" for text in column.cast(pa.string()).to_pylist()]


def said(value: float) -> str:
    """Write a number as people do; NaN is nothing."""
    return "" if value != value else repr(int(value)) if value.is_integer() else repr(value)
