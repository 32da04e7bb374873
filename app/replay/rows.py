"""Reads a CSV file as samples: which columns are features, and the values and label of each row."""

import csv
import gzip
import io
import itertools
import math
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

LOOK_AHEAD_ROWS = 1000
MISSING = {"", "nan", "na", "null", "none"}
LABELS = {"1": True, "true": True, "yes": True, "0": False, "-1": False, "false": False, "no": False}


class BadTable(ValueError):
    """The file is not a table with these columns."""


@dataclass(frozen=True)
class Columns:
    """The roles of the columns; without `features` every numeric column without another role is a feature."""

    label: str | None = None
    timestamp: str | None = None
    id: str | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def named(self) -> list[str]:
        """List the columns that must exist."""
        return [name for name in (self.label, self.timestamp, self.id, *self.features, *self.drop) if name]


@dataclass(frozen=True, slots=True)
class Row:
    """One sample; `label` is True for anomalous, False for normal, None for unknown."""

    values: list[float | None]
    label: bool | None = None
    timestamp: float | str | None = None
    id: str | None = None


@dataclass
class Table:
    """The rows of a file, read as they are needed."""

    features: tuple[str, ...]
    _lines: Iterator[tuple[int, list[str]]]
    _places: dict[str, int]
    _columns: Columns = field(default_factory=Columns)

    @property
    def is_chosen(self) -> bool:
        """Tell whether the user named the features."""
        return bool(self._columns.features)

    @property
    def timestamp_column(self) -> str | None:
        """The column of the timestamps, if there is one."""
        return self._columns.timestamp

    def choose(self, features: Sequence[str]) -> None:
        """Use these columns as features, in this order."""
        if absent := [name for name in features if name not in self._places]:
            raise BadTable(f"the stream's feature {', '.join(absent)} is not a column of the file")
        self.features = tuple(features)

    def __iter__(self) -> Iterator[Row]:
        places = [self._places[name] for name in self.features]
        for line, cells in self._lines:
            if len(cells) != len(self._places):
                raise BadTable(f"line {line} has {len(cells)} cells, the header {len(self._places)}")
            yield self._row(line, cells, places)

    def _row(self, line: int, cells: list[str], places: list[int]) -> Row:
        columns = self._columns
        values = [self._value(line, name, cells[place]) for name, place in zip(self.features, places, strict=True)]
        label = self._label(line, cells[self._places[columns.label]]) if columns.label else None
        timestamp = self._timestamp(line, cells[self._places[columns.timestamp]]) if columns.timestamp else None
        return Row(values, label, timestamp, cells[self._places[columns.id]] if columns.id else None)

    @staticmethod
    def _value(line: int, name: str, cell: str) -> float | None:
        try:
            return parse(cell)
        except ValueError:
            raise BadTable(f"line {line}, column {name}: {cell[:40]!r} is not a finite number") from None

    @staticmethod
    def _label(line: int, cell: str) -> bool | None:
        text = cell.strip().lower().removesuffix(".0")
        if text in MISSING:
            return None
        if text not in LABELS:
            raise BadTable(f"line {line}: the label {cell[:40]!r} is not one of {', '.join(LABELS)}")
        return LABELS[text]

    @staticmethod
    def _timestamp(line: int, cell: str) -> float | str:
        try:
            seconds = parse(cell)
        except ValueError:
            return cell
        if seconds is None:
            raise BadTable(f"line {line} has no timestamp")
        return seconds


def parse(cell: str) -> float | None:
    """Read a cell: a finite number, or None if it is missing."""
    text = cell.strip()
    if text.lower() in MISSING:
        return None
    value = float(text)
    # float() also reads 1_000 and 1e999, and neither is a number in a data file
    if "_" in text or not math.isfinite(value):
        raise ValueError(cell)
    return value


@contextmanager
def open_table(path: str, columns: Columns) -> Iterator[Table]:
    """Open a .csv or .csv.gz file, or stdin for "-"; BadTable, also later, if it is not such a file."""
    with _open(path) as file:
        try:
            yield read_table(file, columns)
        except (csv.Error, EOFError, UnicodeDecodeError, zlib.error) as error:
            raise BadTable(f"{path} cannot be read as CSV in UTF-8: {error}") from error


def read_table(file: Iterable[str], columns: Columns) -> Table:
    """Read the header, and as many rows as needed to tell which columns are numeric."""
    reader = csv.reader(file)
    header = next(reader, [])
    _check_header(header, columns)
    lines = ((reader.line_num, cells) for cells in reader if cells)
    ahead = list(itertools.islice(lines, LOOK_AHEAD_ROWS))
    features = columns.features or _numeric(header, columns, [cells for _, cells in ahead])
    if not features:
        raise BadTable("no numeric column is left as a feature")
    return Table(features, itertools.chain(ahead, lines), {name: at for at, name in enumerate(header)}, columns)


def _open(path: str) -> IO[str]:
    if path == "-":
        return io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
    if path.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return Path(path).open(encoding="utf-8-sig", newline="")


def _check_header(header: list[str], columns: Columns) -> None:
    if not header:
        raise BadTable("the file is empty")
    if all(_is_number(name) for name in header):
        raise BadTable("the first line must name the columns, but it holds only numbers")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise BadTable(f"these columns appear twice: {', '.join(twice)}")
    if absent := [name for name in columns.named() if name not in header]:
        raise BadTable(f"no column {', '.join(absent)}; there are {', '.join(header)}")


def _numeric(header: list[str], columns: Columns, sample: list[list[str]]) -> tuple[str, ...]:
    parts = set(columns.named())
    return tuple(name for at, name in enumerate(header) if name not in parts and _is_numeric(at, sample))


def _is_number(cell: str) -> bool:
    try:
        return parse(cell) is not None
    except ValueError:
        return False


def _is_numeric(at: int, sample: list[list[str]]) -> bool:
    try:
        values = [parse(cells[at]) for cells in sample if at < len(cells)]
    except ValueError:
        return False
    return any(value is not None for value in values)
