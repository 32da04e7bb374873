"""The affine map from the user's units to the space that the tree works in."""

from sys import float_info
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import AffineScaling, DetectorConfig

LIMIT: Final = 1e100
"""Scaled values are cut here, so that their squares, summed over features and samples, stay far from overflow."""
_LARGEST: Final = 1e150
_SMALLEST: Final = 1e-150
_QUARTILES_OF_UNIT_NORMAL: Final = 1.349


class Scaling:
    """z = (x - location) / scale, a feature at a time; location and scale have shape (m,)."""

    def __init__(self, location: FloatArray, scale: FloatArray) -> None:
        self.location, self.scale = location, scale
        self.log_volume = float(np.log(scale).sum())

    def apply(self, X: FloatArray) -> FloatArray:
        """Scaled samples; NaN (missing) stays, values beyond LIMIT are cut to it.

        >>> Scaling(np.array([5.0]), np.array([2.0])).apply(np.array([[9.0], [1e308]]))
        array([[2.e+000],
               [1.e+100]])
        """
        with np.errstate(over="ignore"):  # 1e308 over a scale of 1e-3
            return np.minimum(np.maximum((X - self.location) / self.scale, -LIMIT), LIMIT)

    def score(self, Z: FloatArray, log_density: FloatArray) -> FloatArray:
        """-log p in the user's units, (n,), of scaled samples Z of this log density.

        The largest double where a value was cut: the square of what it stands for may be beyond all doubles, and a
        point farther out must never look likelier than one nearer.
        """
        score = self.log_volume - log_density
        if np.fmax.reduce(np.abs(Z), axis=None) < LIMIT:
            return score
        return np.where((np.abs(Z) >= LIMIT).any(1), float_info.max, score)


def given(config: DetectorConfig) -> Scaling | None:
    """The scaling that the config fixes, or None if the warm-up has to find it."""
    if isinstance(config.scaling, AffineScaling):
        return Scaling(np.array(config.scaling.location), np.array(config.scaling.scale))
    if config.scaling == "none":
        return Scaling(np.zeros(config.n_features), np.ones(config.n_features))
    return None


def estimated(X: FloatArray) -> Scaling:
    """Median and quartile range of each feature of the warm-up samples (n, m); an outlier among them moves neither."""
    columns = [np.sort(np.clip(c[~np.isnan(c)], -_LARGEST, _LARGEST)) for c in X.T]
    location = np.array([c[(len(c) - 1) // 2] if len(c) else 0.0 for c in columns])
    scale = np.array([_spread(c, at) for c, at in zip(columns, location, strict=True)])
    return Scaling(location, np.clip(scale, _SMALLEST, _LARGEST))


def _spread(column: FloatArray, location: float) -> float:
    """Quartile range as a deviation; for a feature that is mostly one value the usual size of the others."""
    n = len(column)
    quartiles = column[(3 * n) // 4] - column[n // 4] if n else 0.0
    if quartiles > 0:
        return float(quartiles / _QUARTILES_OF_UNIT_NORMAL)
    others = np.sort(np.abs(column[column != location] - location))
    return float(others[(len(others) - 1) // 2]) if len(others) > 1 else 1.0
