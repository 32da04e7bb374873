"""What a cell says: a number, nothing, or text."""

import math
import re
from typing import Final

MISSING: Final = frozenset(("", "-", "nan", "na", "n/a", "#n/a", "null", "none"))
SHOWN: Final = 40
DECIMAL_COMMA: Final = re.compile(r"\s*[+-]?\d*,\d+\s*")


class BadTable(ValueError):
    """The file is not a table with these columns."""


def is_missing(cell: str) -> bool:
    """Tell whether a cell stands for a value that is not known."""
    return cell.strip().lower() in MISSING


def number(cell: str) -> float | None:
    """Read a cell: a finite number, or None if it is missing. Raises ValueError.

    >>> number(" 1e3 "), number("n/a")
    (1000.0, None)
    """
    if is_missing(cell):
        return None
    value = float(cell)
    if math.isnan(value):
        return None
    # float() also reads 1_000 and 1e999, and neither is a number in a data file
    if "_" in cell or math.isinf(value):
        raise ValueError(cell)
    return value


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a finite number."""
    try:
        return number(cell) is not None
    except ValueError:
        return False


def quoted(cell: str) -> str:
    """Show a cell in a message: quoted, without control characters, and not too long."""
    return repr(cell[:SHOWN]) + ("..." if len(cell) > SHOWN else "")


def complaint(cell: str) -> str:
    """Say why a cell is no number.

    >>> complaint("1,5")
    "'1,5' has a decimal comma: write 1.5"
    """
    if DECIMAL_COMMA.fullmatch(cell):
        return f"{quoted(cell)} has a decimal comma: write {cell.strip().replace(',', '.')}"
    return f"{quoted(cell)} is not a finite number"
