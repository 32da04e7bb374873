"""Samples as rows of JSON: arrays of numbers, or objects of named numbers."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from app.streams.batches.features import names_in, refuse_many_features
from app.streams.batches.samples import CheckedSamples, Matrix, Places
from app.streams.errors import MOST_NAMED
from app.streams.faults import MOST_ITEMS, Fault, Faults
from core import DetectorConfig

Value = float | None
ArrayRow = Sequence[Value]
NamedRow = Mapping[str, Value]


class RowSamples(CheckedSamples):
    """Rows at some places of the request: a matrix if all have one form, else as they were sent."""

    def __init__(self, field: str, places: Places, X: Matrix | None) -> None:
        self.field = field
        self._places = places
        self._X = X

    def count(self, n_features: int) -> int:
        return len(self._places)

    def _fitting(self, config: DetectorConfig, faults: Faults) -> tuple[Matrix, Places]:
        X = self._arranged(config)
        if X is not None:
            return X, self._places
        rows, places = [], []
        for place, row in zip(self._places, self._sent(), strict=False):
            misfit = self._misfit(row, config)
            if misfit is None:
                rows.append(row)
                places.append(place)
            else:
                faults.add(place, f"{self.field}[{place}]{misfit.field}", misfit.value, misfit.limit)
        if self._X is not None:  # then none of them fits, and only the first are named
            faults.count(self._places[MOST_NAMED:])
        return self._packed(rows, config), places

    def first(self) -> tuple[Sequence[str], Sequence[Value]]:
        row = self._sent()[0]
        return (tuple(row), tuple(row.values())) if isinstance(row, dict) else ((), row)

    @abstractmethod
    def _arranged(self, config: DetectorConfig) -> Matrix | None:
        """Give the matrix of all rows in the stream's order of features; None if some row does not fit."""

    @abstractmethod
    def _sent(self) -> Sequence[Any]:
        """Give the rows as they were sent; if they are a matrix, only the first ones."""

    @abstractmethod
    def _misfit(self, row: Any, config: DetectorConfig) -> Fault | None:
        """Say why a row does not fit; the fault's field is relative to the row."""

    @abstractmethod
    def _packed(self, rows: Sequence[Any], config: DetectorConfig) -> Matrix:
        """Put fitting rows together."""


class ArraySamples(RowSamples):
    """Rows of numbers, by position."""

    def __init__(self, rows: Sequence[ArrayRow], field: str = "samples", places: Places | None = None) -> None:
        self._width = len(rows[0])
        is_even = set(map(len, rows)) == {self._width}
        self._rows = None if is_even else rows
        super().__init__(
            field, range(len(rows)) if places is None else places, flat(rows, self._width) if is_even else None
        )

    def fields(self, stream: str) -> Mapping[str, Any]:
        """Ask for as many features as the first row has."""
        refuse_many_features(self._width, self.field)
        return {"n_features": self._width}

    def _arranged(self, config: DetectorConfig) -> Matrix | None:
        return self._X if self._width == config.n_features else None

    def _sent(self) -> Sequence[ArrayRow]:
        return self._rows or first_sent(self._X)

    def _misfit(self, row: ArrayRow, config: DetectorConfig) -> Fault | None:
        if len(row) == config.n_features:
            return None
        value = list(row) if len(row) <= MOST_ITEMS else f"an array of {len(row)}"
        return Fault("", value, f"an array of {config.n_features} numbers or nulls, one for each feature of the stream")

    def _packed(self, rows: Sequence[ArrayRow], config: DetectorConfig) -> Matrix:
        return flat(rows, config.n_features)


class NamedSamples(RowSamples):
    """Objects of named numbers; the first one sets the names of a new stream."""

    def __init__(self, rows: Sequence[NamedRow], field: str = "samples", places: Places | None = None) -> None:
        self._names = tuple(rows[0])
        X = named(rows, self._names)
        self._rows = rows if X is None else None
        super().__init__(field, range(len(rows)) if places is None else places, X)

    def fields(self, stream: str) -> Mapping[str, Any]:
        """Ask for the names of the first object, in its order."""
        refuse_many_features(len(self._names), self.field)
        return {"features": [{"name": name} for name in self._names]}

    def _arranged(self, config: DetectorConfig) -> Matrix | None:
        names = names_in(config)
        if self._X is None or not names:
            return None
        if names == self._names:
            return self._X
        order = {name: column for column, name in enumerate(self._names)}
        if set(names) != set(order):
            return None
        return np.ascontiguousarray(self._X[:, [order[name] for name in names]])

    def _sent(self) -> Sequence[NamedRow]:
        return self._rows or [dict(zip(self._names, row, strict=True)) for row in first_sent(self._X)]

    def _misfit(self, row: NamedRow, config: DetectorConfig) -> Fault | None:
        names = names_in(config)
        if not names:
            return Fault("", dict(row), "an array: the features of this stream have no names")
        for name in names:
            if name not in row:
                return Fault("", dict(row), f"an object with {name!r} (null if missing)")
        extra = next((name for name in row if name not in names), None)
        return None if extra is None else Fault(f".{extra}", row[extra], "left out: the stream has no such feature")

    def _packed(self, rows: Sequence[NamedRow], config: DetectorConfig) -> Matrix:
        names = names_in(config)
        return flat([[row[name] for name in names] for row in rows], config.n_features)

    def _name(self, place: int, column: int, feature: str) -> str:
        return f"{self.field}[{place}].{feature}"


def flat(rows: Sequence[ArrayRow], width: int) -> Matrix:
    """Put rows of one width together; None becomes NaN."""
    return np.array(list(chain.from_iterable(rows)), dtype=np.float64).reshape(len(rows), width)


def named(rows: Sequence[NamedRow], names: Sequence[str]) -> Matrix | None:
    """Put objects of the same names together; None if they differ."""
    if len(rows) == 1:
        return flat([list(rows[0].values())], len(names))
    if set(map(len, rows)) != {len(names)}:
        return None
    try:
        return flat([[row[name] for name in names] for row in rows], len(names))
    except KeyError:
        return None


def first_sent(X: Matrix | None) -> list[list[Value]]:
    """Give the first rows of a matrix as numbers, None where one is missing."""
    assert X is not None
    return [[None if value != value else value for value in row] for row in X[:MOST_NAMED].tolist()]
