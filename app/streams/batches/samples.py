"""Samples as they arrive, turned into a matrix once the stream that they are for is known."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from app.streams.errors import MOST_NAMED, InvalidSamples, UnknownStream
from app.streams.faults import MOST_ITEMS, Fault, Faults
from core import KINDS, MAX_FEATURES, DetectorConfig, Feature

Matrix = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Value = float | None
ArrayRow = Sequence[Value]
NamedRow = Mapping[str, Value]
Places = Sequence[int]

SOME_VALUE = "a sample with at least one value that is not missing"


class Samples(ABC):
    """A batch in one of the forms that clients send; field is what the body calls it."""

    field = "samples"

    @abstractmethod
    def count(self, n_features: int) -> int:
        """Count the samples."""

    @abstractmethod
    def config(self, stream: str) -> DetectorConfig:
        """Describe the stream that these samples would begin."""

    @abstractmethod
    def gather(self, config: DetectorConfig, faults: Faults) -> Matrix:
        """Give the samples that have the stream's form as rows, and add all that do not fit to the faults."""

    def matrix(self, config: DetectorConfig) -> Matrix:
        """Give the samples as rows (NaN = missing), or raise InvalidSamples for all that do not fit."""
        faults = Faults()
        X = self.gather(config, faults)
        InvalidSamples.for_any(faults)
        return X


class Checked(Samples):
    """Samples whose values are checked once their form is."""

    def gather(self, config: DetectorConfig, faults: Faults) -> Matrix:
        X, places = self._fitting(config, faults)
        add_empty(X, places, self.field, faults)
        if config.features is not None and set(config.kinds) != {"gaussian"}:
            self._add_outside(X, places, config.features, faults)
        return X

    @abstractmethod
    def _fitting(self, config: DetectorConfig, faults: Faults) -> tuple[Matrix, Places]:
        """Give the rows that have the stream's form, and their places in the request; add those that have not."""

    def _add_outside(self, X: Matrix, places: Places, features: Sequence[Feature], faults: Faults) -> None:
        """Add the samples with a value that a feature of its kind cannot have."""
        kinds = [KINDS[feature.kind] for feature in features]
        inside = np.column_stack([kind.inside(X[:, column]) for column, kind in enumerate(kinds)])
        for row, column in first_in_rows(~inside & ~np.isnan(X)):
            place, feature = places[row], features[column]
            limit = f"{kinds[column].limit}, because {feature.name!r} is {feature.kind}"
            faults.add(place, self._place(place, column, feature.name), float(X[row, column]), limit)

    def _place(self, place: int, column: int, name: str) -> str:
        return f"{self.field}[{place}][{column}]"


class RowSamples(Checked):
    """Rows at these places of the request: a matrix if they are all of one form, else as they were sent."""

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

    @abstractmethod
    def _arranged(self, config: DetectorConfig) -> Matrix | None:
        """Give the matrix of all rows as the stream has it; None if some row does not fit."""

    @abstractmethod
    def _sent(self) -> Sequence[Any]:
        """Give the rows as they were sent; of those in a matrix only the first."""

    @abstractmethod
    def _misfit(self, row: Any, config: DetectorConfig) -> Fault | None:
        """Say why a row does not fit; the field is what follows the row's own."""

    @abstractmethod
    def _packed(self, rows: Sequence[Any], config: DetectorConfig) -> Matrix:
        """Put rows together that fit."""


class ArraySamples(RowSamples):
    """Rows of numbers, by position."""

    def __init__(self, rows: Sequence[ArrayRow], field: str = "samples", places: Places | None = None) -> None:
        self._width = len(rows[0])
        is_even = set(map(len, rows)) == {self._width}
        self._rows = None if is_even else rows
        super().__init__(
            field, range(len(rows)) if places is None else places, flat(rows, self._width) if is_even else None
        )

    def config(self, stream: str) -> DetectorConfig:
        """Describe a stream as wide as the first row."""
        refuse_many_features(self._width, self.field)
        return DetectorConfig(n_features=self._width)

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
    """Objects of named numbers; the first one fixes the names of a new stream."""

    def __init__(self, rows: Sequence[NamedRow], field: str = "samples", places: Places | None = None) -> None:
        self._names = tuple(rows[0])
        X = named(rows, self._names)
        self._rows = rows if X is None else None
        super().__init__(field, range(len(rows)) if places is None else places, X)

    def config(self, stream: str) -> DetectorConfig:
        """Describe a stream with the names of the first object, in its order."""
        refuse_many_features(len(self._names), self.field)
        return DetectorConfig(features=tuple(Feature(name) for name in self._names))

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

    def _place(self, place: int, column: int, name: str) -> str:
        return f"{self.field}[{place}].{name}"


class BinarySamples(Checked):
    """Little-endian float64 rows; the stream knows how wide they are."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def count(self, n_features: int) -> int:
        """Count the rows of that width."""
        return len(self._body) // (8 * n_features)

    def config(self, stream: str) -> DetectorConfig:
        """Refuse: bytes do not say how wide a new stream is."""
        raise UnknownStream(stream)

    def _fitting(self, config: DetectorConfig, faults: Faults) -> tuple[Matrix, Places]:
        width = config.n_features
        if not self._body or len(self._body) % (8 * width):
            raise InvalidSamples(
                "body", f"{len(self._body)} bytes", f"rows of {width} float64, {8 * width} bytes each, at least one"
            )
        X = np.frombuffer(self._body, dtype="<f8").astype(np.float64).reshape(-1, width)
        for row, column in first_in_rows(np.isinf(X)):
            faults.add(row, self._place(row, column, ""), float(X[row, column]), "finite, or NaN if missing")
        return X, range(len(X))


class MixedSamples(Samples):
    """Parts of a long batch, or of one that holds rows which could not be read: those are known faults."""

    def __init__(self, parts: Sequence[Samples], field: str, faults: Faults) -> None:
        self.field = field
        self._parts = parts
        self._faults = faults

    def count(self, n_features: int) -> int:
        return sum(part.count(n_features) for part in self._parts) + len(self._faults)

    def config(self, stream: str) -> DetectorConfig:
        """Describe the stream that the first part would begin, if all could be read."""
        InvalidSamples.for_any(self._faults)
        return self._parts[0].config(stream)

    def gather(self, config: DetectorConfig, faults: Faults) -> Matrix:
        faults.merge(self._faults)
        nothing = np.empty((0, config.n_features))
        return np.concatenate([nothing, *(part.gather(config, faults) for part in self._parts)])


def first_in_rows(wrong: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Give row and column of the first wrong value of each row that has one."""
    rows = np.flatnonzero(wrong.any(axis=1))
    return list(zip(rows.tolist(), wrong[rows].argmax(axis=1).tolist(), strict=True))


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


def names_in(config: DetectorConfig) -> tuple[str, ...]:
    """Give the names of a stream's features; none if they have none."""
    return () if config.features is None else tuple(feature.name for feature in config.features)


def feature_names(config: DetectorConfig) -> list[str]:
    """Give the names of a stream's features; those without go by their number from 0."""
    return list(names_in(config)) or [str(i) for i in range(config.n_features)]


def refuse_many_features(n: int, field: str) -> None:
    """Raise InvalidSamples for a first sample wider than a stream can be."""
    if n > MAX_FEATURES:
        raise InvalidSamples(f"{field}[0]", f"a sample of {n} values", f"a sample of 1 to {MAX_FEATURES} values")


def add_empty(X: Matrix, places: Places, field: str, faults: Faults) -> None:
    """Add the samples that have no value at all."""
    missing = np.isnan(X)
    # most batches miss nothing: counting is a fifth of the price of looking through the rows
    if np.count_nonzero(missing):
        for row in np.flatnonzero(missing.all(axis=1)).tolist():
            faults.add(places[row], f"{field}[{places[row]}]", None, SOME_VALUE)
