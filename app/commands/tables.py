"""Tables that commands print."""

from collections.abc import Iterable, Sequence


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns as wide as they need."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(line_of(row, widths))


def line_of(row: Iterable[str], widths: Iterable[int]) -> str:
    """Pad the cells of a row."""
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
