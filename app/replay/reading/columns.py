"""Which column is what, and which would be a feature only by mistake."""

import csv
import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.replay.reading.cells import BadTable, complaint, quoted
from app.replay.reading.tally import Tally
from app.replay.reading.times import unit_between
from app.streams.batches.undeclared import NO_MEASUREMENTS

LABEL_NAMES: Final = frozenset(
    ("label", "labels", "class", "target", "truth", "ground_truth", "anomaly", "is_anomaly", "outlier", "is_outlier")
)
UNNAMED: Final = "Unnamed: "
COUNTED_ROWS: Final = 10
"""So many rows must count up to be an index."""


@dataclass(frozen=True)
class Columns:
    """The roles of the columns; without `features` every column without another role is one.

    stream names the stream of each row, known says when its label became known.
    """

    label: str | None = None
    timestamp: str | None = None
    id: str | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    stream: str | None = None
    known: str | None = None

    @property
    def others(self) -> list[str]:
        """List the columns that are no features by their role; an id or a time may also be one."""
        return [name for name in (self.label, self.timestamp, self.id, self.stream, self.known) if name]

    def named(self) -> list[str]:
        """List the columns that must exist."""
        return [*self.others, *self.features, *self.drop]

    def features_of(self, header: Sequence[str]) -> tuple[str, ...]:
        """Check the names, and give the features."""
        if absent := [name for name in self.named() if name not in header]:
            raise BadTable(f"no column {', '.join(absent)}; there are {', '.join(header)}")
        if twice := {*self.drop} & {*self.features, *self.others} or {*self.features} & {self.label, self.stream}:
            raise BadTable(f"the column {', '.join(sorted(map(str, twice)))} has two roles that exclude each other")
        features = tuple(dict.fromkeys(self.features)) or tuple(name for name in header if name not in self.named())
        if not features:
            raise BadTable("no column is left as a feature")
        return features


def names_of(text: str) -> tuple[str, ...]:
    """Read a list of columns as a line of CSV, so that a quoted name may hold a comma.

    >>> names_of('a, "b,c"')
    ('a', 'b,c')
    """
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(name.strip() for name in cells if name.strip())


def refuse_bad_cells(tallies: Sequence[Tally]) -> None:
    """Raise BadTable for the first cell of chosen features that is no number."""
    if bad := [tally for tally in tallies if tally.n_bad]:
        first = min(bad, key=lambda tally: tally.bad_line)
        said = f"line {first.bad_line}, column {first.name}: {complaint(first.bad_cell)}"
        raise BadTable(f"{said}; correct it, or empty the cell if the value is not known")


def refuse_no_features(tallies: Sequence[Tally]) -> None:
    """Raise BadTable for all the columns that are features because nobody said otherwise, and should not be."""
    doubts = {tally.name: doubt for tally in tallies if (doubt := _doubt(tally))}
    if not doubts:
        return
    listed = "; ".join(f"{name} ({doubt})" for name, doubt in doubts.items())
    advice = [f"Leave out with --drop {shlex.quote(_as_csv(list(doubts)))}"]
    advice += ["correct the cells"] if any(tally.n_bad for tally in tallies) else []
    advice += ["give a role with --label-column, --timestamp-column or --id-column"]
    raise BadTable(f"no feature unless you say so: {listed}. {', '.join(advice)}, or name all features with --columns")


def _doubt(tally: Tally) -> str:
    """Say why a column is hardly a feature; empty if it may be one."""
    if tally.n_bad:
        count = "1 cell is" if tally.n_bad == 1 else f"{tally.n_bad} cells are"
        return f"{count} no number, first in line {tally.bad_line}: {complaint(tally.bad_cell)}"
    if not tally.n_values:
        return "no value in any line"
    if tally.name.lower() in LABEL_NAMES:
        return "called like a label"
    if tally.name.startswith(UNNAMED):
        return "it has no name, as an index has none"
    if tally.name.lower() in NO_MEASUREMENTS:
        return "called like a time or an index"
    if tally.counts_up and tally.n_rows >= COUNTED_ROWS:
        return f"it counts the lines from {quoted(f'{tally.first:g}')} on"
    if tally.rises and (unit := unit_between(tally.low, tally.high)):
        return f"it looks like times in {unit}"
    return ""


def _as_csv(names: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()
