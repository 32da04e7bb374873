"""Tables of results, for people and for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from platform import python_version
from typing import Any

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column's key in JSON, its heading, how its numbers are printed, and the key of the deviation beside them."""

    key: str
    heading: str
    form: str = ""
    deviation: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells by column key; a cell that a row lacks is empty."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]
    notes: Sequence[str] = field(default_factory=tuple)

    def to_markdown(self) -> str:
        """The title, an aligned table, and the notes below it."""
        grid = [[c.heading for c in self.columns]]
        grid += [[_cell(row, c) for c in self.columns] for row in self.rows]
        widths = [max(len(line[k]) for line in grid) for k in range(len(self.columns))]
        lines = [_line(line, widths) for line in grid]
        rule = "|" + "|".join("-" * (w + 1) + (":" if k else "-") for k, w in enumerate(widths)) + "|"
        return "\n".join([f"### {self.title}", "", lines[0], rule, *lines[1:], "", *(f"- {n}" for n in self.notes), ""])

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able values; numbers that are not finite become null."""
        rows = [{key: _plain(value) for key, value in row.items()} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


def printed(value: Cell, form: str) -> str:
    """One cell as text.

    >>> printed(1.23456, ".3f"), printed(None, ".3f"), printed("a", ".3f")
    ('1.235', '', 'a')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else format(value, form)


def _cell(row: Mapping[str, Cell], column: Column) -> str:
    text, deviation = printed(row.get(column.key), column.form), row.get(column.deviation)
    return text if deviation is None else f"{text} ± {printed(deviation, column.form)}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in enumerate(zip(cells, widths, strict=True))]
    return "| " + " | ".join(padded) + " |"


def _plain(value: Cell) -> Cell:
    return None if isinstance(value, float) and not isfinite(value) else value


def versions(*packages: str) -> str:
    """The versions in use, Python's first; a package that is not installed is named as missing."""
    return ", ".join([f"Python {python_version()}", *(f"{p} {installed(p) or 'not installed'}" for p in packages)])


def installed(package: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
