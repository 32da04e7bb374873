"""A file as samples: looked through first, then read row by row."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from app.counts import counted
from app.replay.reading.cells import BadTable, complaint, number
from app.replay.reading.columns import Columns, refuse_bad_cells, refuse_no_features
from app.replay.reading.labels import LabelReader
from app.replay.reading.lines import Form, Line, Lines, open_lines
from app.replay.reading.tally import Tally
from app.replay.reading.times import TimeReader
from app.sources.source import Unit

BLOCK_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One sample; `label` is True for anomalous, False for normal, None for unknown; the times in epoch seconds.

    known is when the label became known, if a column says so.
    """

    values: list[float | None]
    label: bool | None = None
    timestamp: float | None = None
    id: str | None = None
    stream: str | None = None
    known: float | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Meaning:
    """What cannot be read off the cells: the values of labels for anomalous and normal, the unit and zone of times."""

    label_values: tuple[str, str] | None = None
    timestamp_unit: Unit | None = None
    timezone: str | None = None


@dataclass(frozen=True)
class Survey:
    """What a look at the lines found before any was used: all of a file, the first thousand of a pipe.

    notes say what was guessed, and what may be wrong.
    """

    columns: tuple[Tally, ...]
    n_rows: int
    is_whole: bool
    notes: list[str] = field(default_factory=list)


class Table:
    """The samples of a file; `features` are the columns of their values."""

    def __init__(self, lines: Lines, columns: Columns, meaning: Meaning) -> None:
        self.columns = columns
        self.features = columns.features_of(lines.header)
        self._are_chosen = bool(columns.features)
        self._lines = lines
        self._places = {name: place for place, name in enumerate(lines.header)}
        self._label = LabelReader(columns.label, meaning.label_values) if columns.label else None
        self._time: TimeReader | None = None
        if columns.timestamp:
            self._time = TimeReader(columns.timestamp, meaning.timestamp_unit, meaning.timezone)
        self._known: TimeReader | None = None
        if columns.known:
            self._known = TimeReader(columns.known, meaning.timestamp_unit, meaning.timezone)
        self._surveyed: Survey | None = None

    @property
    def are_chosen(self) -> bool:
        """Tell whether somebody named the features."""
        return self._are_chosen

    @property
    def left_out(self) -> list[str]:
        """The columns that are neither features nor labels, times or ids."""
        roles = {*self.features, *self.columns.others}
        return [name for name in self._places if name not in roles]

    def choose(self, features: Sequence[str]) -> None:
        """Use these columns as features, in this order."""
        if absent := [name for name in features if name not in self._places]:
            raise BadTable(
                f"the stream's feature {', '.join(absent)} is not a column; there are {', '.join(self._places)}"
            )
        self.features, self._are_chosen = tuple(features), True

    def survey(self) -> Survey:
        """Look through the lines, once. Raises BadTable if they cannot be used as they are."""
        if self._surveyed is None:
            self._surveyed = self._look()
        return self._surveyed

    def __iter__(self) -> Iterator[Row]:
        self.survey()
        for reader in (self._time, self._known):
            if reader:
                reader.restart()
        places = [self._places[name] for name in self.features]
        for line, cells in self._lines:
            self._refuse_ragged(line, cells)
            row = self._row(line, cells, places)
            # the service takes no sample without any value
            if any(value is not None for value in row.values):
                yield row

    def _look(self) -> Survey:
        tallies = [Tally(name) for name in self.features]
        n_rows, n_blank, blank_line = 0, 0, 0
        for block in _blocks(self._lines.ahead()):
            blank = self._survey_block(block, tallies)
            blank_line = blank_line or (blank[0] if blank else 0)
            n_blank += len(blank)
            n_rows += len(block) - len(blank)
        if not n_rows and not n_blank:
            raise BadTable("there is no line after the header")
        (refuse_bad_cells if self._are_chosen else refuse_no_features)(tallies)
        if not n_rows:
            raise BadTable("no line has a value of any feature")
        if self._label:
            self._label.settle()
        without = f"left out: {counted(n_blank, 'line')} without any value, the first is line {blank_line}"
        notes = self._notes() + [without] * bool(n_blank)
        return Survey(tuple(tallies), n_rows, self._lines.can_repeat, notes)

    def _survey_block(self, block: Sequence[Line], tallies: Sequence[Tally]) -> list[int]:
        """Count the cells of some lines, and give the lines without any value."""
        for line, cells in block:
            self._refuse_ragged(line, cells)
        numbers, columns = [line for line, _ in block], list(zip(*(cells for _, cells in block), strict=True))
        values = np.array([tally.add(numbers, columns[self._places[tally.name]]) for tally in tallies])
        for reader, read in self._readers():
            for line, cell in zip(numbers, columns[self._places[reader.column]], strict=True):
                read(line, cell)
        return [numbers[place] for place in np.flatnonzero(np.isnan(values).all(0))]

    def _readers(self) -> Iterator[tuple[LabelReader | TimeReader, Callable[[int, str], object]]]:
        if self._label:
            yield self._label, self._label.survey
        if self._time:
            yield self._time, self._time.read
        if self._known:
            yield self._known, self._known.read_if_given

    def _notes(self) -> list[str]:
        notes = [] if self._lines.separator == "," else [f"the separator is the {self._lines.separator_name}"]
        for time in filter(None, (self._time, self._known)):
            notes += time.notes()
        if self._label and self._label.n_anomalous > self._label.n_normal:
            share = self._label.n_anomalous / (self._label.n_anomalous + self._label.n_normal)
            notes.append(
                f"warning: {share:.0%} of the labels say anomalous; if they mean the opposite, turn them with"
                " --label-values ANOMALY,NORMAL"
            )
        if self._label and not self._label.n_anomalous + self._label.n_normal:
            notes.append(f"warning: the column {self._label.column} holds no label")
        return notes

    def _refuse_ragged(self, line: int, cells: Sequence[str]) -> None:
        if len(cells) != len(self._places):
            said = f"line {line} has {counted(len(cells), 'cell')}, the header {len(self._places)}"
            advice = f"the separator is the {self._lines.separator_name}, --separator names another"
            raise BadTable(f"{said}: complete it, or quote the cells that hold a separator ({advice})")

    def _row(self, line: int, cells: list[str], places: list[int]) -> Row:
        values = [self._value(line, name, cells[place]) for name, place in zip(self.features, places, strict=True)]
        label = self._label.read(line, cells[self._places[self._label.column]]) if self._label else None
        timestamp = self._time.read(line, cells[self._places[self._time.column]]) if self._time else None
        known = self._known.read_if_given(line, cells[self._places[self._known.column]]) if self._known else None
        stream = cells[self._places[self.columns.stream]] if self.columns.stream else None
        client_id = cells[self._places[self.columns.id]] if self.columns.id else None
        return Row(values, label, timestamp, client_id, stream, known, line)

    @staticmethod
    def _value(line: int, name: str, cell: str) -> float | None:
        try:
            return number(cell)
        except ValueError:
            raise BadTable(f"line {line}, column {name}: {complaint(cell)}") from None


def read_table(lines: Lines, columns: Columns, meaning: Meaning | None = None) -> Table:
    """Make a table of lines."""
    return Table(lines, columns, meaning or Meaning())


@contextmanager
def open_table(
    path: str, columns: Columns, meaning: Meaning | None = None, form: Form | None = None
) -> Iterator[Table]:
    """Open a .csv or .csv.gz file, or stdin for "-"; BadTable, also later, if it is not such a file."""
    with open_lines(path, form or Form()) as lines:
        yield read_table(lines, columns, meaning)


def _blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    remaining = iter(lines)
    while block := list(itertools.islice(remaining, BLOCK_ROWS)):
        yield block
