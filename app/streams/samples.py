"""Samples as they arrive, turned into a matrix once the stream that they are for is known."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.streams.errors import InvalidSamples, UnknownStream
from core import DetectorConfig, Feature, InvalidObservation
from core.inputs import checked_samples

Matrix = npt.NDArray[np.float64]
Value = float | None


class Samples(Protocol):
    """A batch in one of the forms that clients send; field is what the body calls it."""

    field: str

    def count(self, n_features: int) -> int:
        """Count the samples."""

    def config(self, stream: str) -> DetectorConfig:
        """Describe the stream that these samples would begin."""

    def matrix(self, config: DetectorConfig) -> Matrix:
        """Give the samples as rows (NaN = missing), or raise InvalidSamples."""


class ArraySamples:
    """Rows of numbers, by position."""

    def __init__(self, rows: Sequence[Sequence[Value]], field: str = "samples") -> None:
        self._rows = rows
        self.field = field

    def count(self, n_features: int) -> int:
        """Count the rows."""
        return len(self._rows)

    def config(self, stream: str) -> DetectorConfig:
        """Describe a stream as wide as the first row."""
        return DetectorConfig(n_features=len(self._rows[0]))

    def matrix(self, config: DetectorConfig) -> Matrix:
        """Put the rows together."""
        width = config.n_features
        if set(map(len, self._rows)) != {width}:
            refuse_width(self._rows, width, self.field)
        flat = np.array(list(chain.from_iterable(self._rows)), dtype=np.float64)  # None becomes NaN
        return with_some_value(flat.reshape(len(self._rows), width), self.field)


class NamedSamples:
    """Objects of named numbers; the first one fixes the names of a new stream."""

    def __init__(self, rows: Sequence[Mapping[str, Value]], field: str = "samples") -> None:
        self._rows = rows
        self.field = field

    def count(self, n_features: int) -> int:
        """Count the rows."""
        return len(self._rows)

    def config(self, stream: str) -> DetectorConfig:
        """Describe a stream with the names of the first object, in its order."""
        return DetectorConfig(features=tuple(Feature(name) for name in self._rows[0]))

    def matrix(self, config: DetectorConfig) -> Matrix:
        """Put the values in the order of the stream's names."""
        names = self._names(config)
        rows = [self._row(i, row, names) for i, row in enumerate(self._rows)]
        return with_some_value(np.array(rows, dtype=np.float64).reshape(len(rows), len(names)), self.field)

    def _names(self, config: DetectorConfig) -> tuple[str, ...]:
        if config.features is None:
            raise InvalidSamples(
                f"{self.field}[0]", dict(self._rows[0]), "an array: the features of this stream have no names"
            )
        return tuple(feature.name for feature in config.features)

    def _row(self, i: int, row: Mapping[str, Value], names: tuple[str, ...]) -> list[Value]:
        try:
            values = [row[name] for name in names]
        except KeyError as missing:
            raise InvalidSamples(
                f"{self.field}[{i}]", dict(row), f"an object with {missing.args[0]!r} (null if missing)"
            ) from None
        if len(row) > len(names):
            extra = next(name for name in row if name not in names)
            raise InvalidSamples(f"{self.field}[{i}].{extra}", row[extra], "left out: the stream has no such feature")
        return values


class BinarySamples:
    """Little-endian float64 rows; the stream knows how wide they are."""

    field = "samples"

    def __init__(self, body: bytes) -> None:
        self._body = body

    def count(self, n_features: int) -> int:
        """Count the rows of that width."""
        return len(self._body) // (8 * n_features)

    def config(self, stream: str) -> DetectorConfig:
        """Refuse: bytes do not say how wide a new stream is."""
        raise UnknownStream(stream)

    def matrix(self, config: DetectorConfig) -> Matrix:
        """Read the rows; infinities are refused, NaN means missing."""
        width = config.n_features
        if not self._body or len(self._body) % (8 * width):
            raise InvalidSamples(
                "body", f"{len(self._body)} bytes", f"rows of {width} float64, {8 * width} bytes each, at least one"
            )
        X = np.frombuffer(self._body, dtype="<f8").astype(np.float64).reshape(-1, width)
        refuse_infinities(X)
        return with_some_value(X, "samples")


def feature_names(config: DetectorConfig) -> list[str]:
    """Give the names of a stream's features; those without go by their number from 0."""
    if config.features is not None:
        return [feature.name for feature in config.features]
    return [str(i) for i in range(config.n_features)]


def refuse_width(rows: Sequence[Sequence[Value]], width: int, field: str) -> None:
    """Raise InvalidSamples for the first row of another width."""
    for i, row in enumerate(rows):
        if len(row) != width:
            value = list(row) if len(row) <= 8 else f"an array of {len(row)}"
            raise InvalidSamples(
                f"{field}[{i}]", value, f"an array of {width} numbers or nulls, one a feature of the stream"
            )


def refuse_infinities(X: Matrix) -> None:
    """Raise InvalidSamples for the first infinite value."""
    places = np.argwhere(np.isinf(X))
    if len(places):
        row, column = places[0]
        raise InvalidSamples(f"samples[{row}][{column}]", float(X[row, column]), "finite, or NaN if missing")


def with_some_value(X: Matrix, field: str) -> Matrix:
    """Raise InvalidSamples for the first sample that has no value at all."""
    missing = np.isnan(X)
    # most batches miss nothing: counting is a fifth of the price of looking through the rows
    if np.count_nonzero(missing) and (empty := missing.all(axis=1)).any():
        i = int(empty.argmax())
        raise InvalidSamples(f"{field}[{i}]", None, "a sample with at least one value that is not missing")
    return X


def refuse_outside(X: Matrix, config: DetectorConfig, field: str) -> None:
    """Raise InvalidSamples for a value that a feature of its kind cannot have, before any row is learned."""
    try:
        checked_samples(X, config.n_features, config.features)
    except InvalidObservation as error:
        raise InvalidSamples(f"{field}[{error.row}][{error.column}]", error.value, error.limit) from None
