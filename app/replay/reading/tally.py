"""Counts the cells of one column: its range, what is missing, and what is no number."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.replay.reading.cells import number

Floats = NDArray[np.float64]


class Tally:
    """What the cells of a column hold, block by block."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_rows = 0
        self.n_missing = 0
        self.n_bad = 0
        self.bad_line = 0
        self.bad_cell = ""
        self.low = np.inf
        self.high = -np.inf
        self.first = np.nan
        self.counts_up = True
        """Whether each value is one more than the one before."""
        self.rises = True
        """Whether no value is missing or below the one before, and not all are the same."""
        self._last = np.nan

    @property
    def n_values(self) -> int:
        """How many cells hold numbers."""
        return self.n_rows - self.n_missing - self.n_bad

    def add(self, lines: Sequence[int], cells: Sequence[str]) -> Floats:
        """Count some more cells, and give their values, NaN for none."""
        values = self._values(lines, cells)
        self.count(values)
        return values

    def count(self, values: Floats) -> None:
        """Count some more values, NaN for none; there is at least one."""
        if not self.n_rows:
            self.first = values[0]
        self.n_rows += len(values)
        known = values[~np.isnan(values)]
        if known.size:
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))
        self._follow(values)

    def _values(self, lines: Sequence[int], cells: Sequence[str]) -> Floats:
        try:
            values = np.array(list(map(float, cells)))
        except ValueError:
            return self._one_by_one(lines, cells)
        if np.isinf(values).any() or "_" in "".join(cells):
            return self._one_by_one(lines, cells)
        self.n_missing += int(np.isnan(values).sum())
        return values

    def _one_by_one(self, lines: Sequence[int], cells: Sequence[str]) -> Floats:
        values = np.full(len(cells), np.nan)
        for place, (line, cell) in enumerate(zip(lines, cells, strict=True)):
            try:
                value = number(cell)
            except ValueError:
                self._note_bad(line, cell)
                continue
            self.n_missing += value is None
            values[place] = np.nan if value is None else value
        return values

    def _note_bad(self, line: int, cell: str) -> None:
        if not self.n_bad:
            self.bad_line, self.bad_cell = line, cell
        self.n_bad += 1

    def _follow(self, values: Floats) -> None:
        """Compare each value with the one before; with a missing one nothing is true."""
        before = self._last if self.n_rows > len(values) else values[0] - 1
        with np.errstate(over="ignore"):
            steps = np.diff(values, prepend=before)
        self.counts_up &= bool((steps == 1).all())
        self.rises &= bool((steps >= 0).all())
        self._last = values[-1]
