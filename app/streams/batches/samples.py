"""Samples as they arrive, turned into a matrix once the stream that they are for is known."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from app.streams.errors import InvalidSamples
from app.streams.faults import Faults
from core import KINDS, DetectorConfig, Feature

Matrix = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Places = Sequence[int]

SOME_VALUE = "a sample with at least one value that is not missing"
SOME_SCORED = f"{SOME_VALUE} and no context"


class Samples(ABC):
    """The samples of a batch in one of the forms that clients send; field is what the body calls it."""

    field = "samples"

    @abstractmethod
    def count(self, n_features: int) -> int:
        """Count the samples."""

    @abstractmethod
    def fields(self, stream: str) -> Mapping[str, Any]:
        """Give what these samples say of the config of a stream that they would begin."""

    def first(self) -> tuple[Sequence[str], Sequence[float | None]]:
        """Give the names and values of the first sample; no names if it has none, nothing if a config declares them."""
        return (), ()

    @abstractmethod
    def gather(self, config: DetectorConfig, faults: Faults) -> Matrix:
        """Give the samples that have the stream's form as rows, and add the faults of all that do not fit."""

    def matrix(self, config: DetectorConfig) -> Matrix:
        """Give the samples as rows (NaN = missing). Raises InvalidSamples with the faults of all that do not fit."""
        faults = Faults()
        X = self.gather(config, faults)
        InvalidSamples.for_any(faults)
        return X


class MixedSamples(Samples):
    """The parts of a long batch, or of one with rows that could not be read: their faults are known."""

    def __init__(self, parts: Sequence[Samples], field: str, faults: Faults) -> None:
        self.field = field
        self._parts = parts
        self._faults = faults

    def count(self, n_features: int) -> int:
        return sum(part.count(n_features) for part in self._parts) + len(self._faults)

    def fields(self, stream: str) -> Mapping[str, Any]:
        """Give what the first part says, if all could be read."""
        InvalidSamples.for_any(self._faults)
        return self._parts[0].fields(stream)

    def first(self) -> tuple[Sequence[str], Sequence[float | None]]:
        return self._parts[0].first()

    def gather(self, config: DetectorConfig, faults: Faults) -> Matrix:
        faults.merge(self._faults)
        nothing = np.empty((0, config.n_features))
        return np.concatenate([nothing, *(part.gather(config, faults) for part in self._parts)])


class CheckedSamples(Samples):
    """Samples of one form: the form of each is checked first, then its values."""

    def gather(self, config: DetectorConfig, faults: Faults) -> Matrix:
        X, places = self._fitting(config, faults)
        self._add_empty(X, places, config, faults)
        if config.features is not None and set(config.kinds) != {"gaussian"}:
            self._add_outside(X, places, config.features, faults)
        return X

    @abstractmethod
    def _fitting(self, config: DetectorConfig, faults: Faults) -> tuple[Matrix, Places]:
        """Give the rows that have the stream's form and their places in the request; add the faults of the others."""

    def _add_empty(self, X: Matrix, places: Places, config: DetectorConfig, faults: Faults) -> None:
        """Add the samples that have no value to be scored."""
        missing = np.isnan(X)
        # most batches miss nothing: counting is a fifth of the price of looking through the rows
        if np.count_nonzero(missing):
            limit = SOME_VALUE if len(config.values) == config.n_features else SOME_SCORED
            for row in np.flatnonzero(missing[:, [*config.values]].all(axis=1)).tolist():
                faults.add(places[row], f"{self.field}[{places[row]}]", None, limit)

    def _add_outside(self, X: Matrix, places: Places, features: Sequence[Feature], faults: Faults) -> None:
        """Add the samples with a value that a feature of its kind cannot have."""
        kinds = [KINDS[feature.kind] for feature in features]
        inside = np.column_stack([kind.inside(X[:, column]) for column, kind in enumerate(kinds)])
        for row, column in first_in_rows(~inside & ~np.isnan(X)):
            place, feature = places[row], features[column]
            limit = f"{kinds[column].limit}, because {feature.name!r} is {feature.kind}"
            faults.add(place, self._name(place, column, feature.name), float(X[row, column]), limit)

    def _name(self, place: int, column: int, feature: str) -> str:
        """Name a value as the body does."""
        return f"{self.field}[{place}][{column}]"


def first_in_rows(wrong: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Give row and column of the first wrong value of each row that has one."""
    rows = np.flatnonzero(wrong.any(axis=1))
    return list(zip(rows.tolist(), wrong[rows].argmax(axis=1).tolist(), strict=True))
