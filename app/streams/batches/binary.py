"""Samples as bytes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from app.streams.batches.samples import CheckedSamples, Matrix, Places, first_in_rows
from app.streams.errors import InvalidSamples, UnknownStream
from app.streams.faults import Faults
from core import DetectorConfig


class BinarySamples(CheckedSamples):
    """Little-endian float64 rows; the stream knows how wide they are."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def count(self, n_features: int) -> int:
        """Count the rows of that width."""
        return len(self._body) // (8 * n_features)

    def fields(self, stream: str) -> Mapping[str, Any]:
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
            faults.add(row, self._name(row, column, ""), float(X[row, column]), "finite, or NaN if missing")
        return X, range(len(X))
