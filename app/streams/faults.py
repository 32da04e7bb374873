"""What is wrong with a request, field by field, in a form that fits into an answer."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from core import shown as core_shown

SHOWN_CHARACTERS = 80
FIELD_CHARACTERS = 200
MOST_ITEMS, MOST_DEPTH = 8, 3
EXACT = 2**53

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Fault:
    """A field of a request whose value breaks a limit."""

    field: str
    value: object
    limit: str

    def __str__(self) -> str:
        return f"{cut(self.field, FIELD_CHARACTERS)} is {shown(self.value)}, but must be {self.limit}"


UNNAMED = Fault("", None, "")


class Faults:
    """Collects faults in the rows of a request, one a row."""

    def __init__(self) -> None:
        self._by_row: dict[int, Fault] = {}

    def __len__(self) -> int:
        return len(self._by_row)

    def add(self, row: int, field: str, value: object, limit: str) -> None:
        """Add a fault, unless the row has one."""
        self._by_row.setdefault(row, Fault(field, value, limit))

    def count(self, rows: Iterable[int]) -> None:
        """Add rows with faults that are only counted, since the answer names only the first ones."""
        for row in rows:
            self._by_row.setdefault(row, UNNAMED)

    def merge(self, others: "Faults") -> None:
        """Add the faults that others have collected."""
        self._by_row = others._by_row | self._by_row

    def by_row(self) -> dict[int, Fault]:
        """Give the faults by row, in rising order."""
        return {row: self._by_row[row] for row in sorted(self._by_row)}


def shown(value: object) -> str:
    """Write a value as JSON for an error message, cut to a readable length."""
    return cut(json.dumps(pruned(value), ensure_ascii=False))


def scalar(value: object) -> Scalar:
    """Give any value as a JSON scalar: null, booleans and numbers as they are, the rest as text cut to length."""
    short = pruned(value)
    return short if isinstance(short, Scalar) else shown(value)


def cut(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Cut a text to a readable length; lone surrogates, which UTF-8 cannot hold, become question marks."""
    short = text if len(text) <= most else text[: most - 3] + "..."
    return short if short.isascii() else short.encode(errors="replace").decode()


def pruned(value: object, depth: int = 0) -> object:
    """Give the first part of a value in a form that JSON can hold: a refused value may be megabytes long."""
    match value:
        case None | bool():
            return value
        case str():
            return cut(value)
        case int() if abs(value) < EXACT:
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple() if depth < MOST_DEPTH:
            return [pruned(item, depth + 1) for item in islice(value, MOST_ITEMS)] + ["..."] * (len(value) > MOST_ITEMS)
        case dict() if depth < MOST_DEPTH:
            return {cut(str(name)): pruned(item, depth + 1) for name, item in islice(value.items(), MOST_ITEMS)}
        case list() | tuple() | dict():
            return "..."
        case _:
            return core_shown(value, SHOWN_CHARACTERS)
