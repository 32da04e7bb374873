"""The map from the user's units to the space that the tree works in: coordinates, and an affine map of them."""

from functools import cache
from sys import float_info
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import AffineScaling, DetectorConfig
from core.errors import InvalidSnapshot
from core.kinds import KINDS

LIMIT: Final = 1e100
"""Scaled values are cut here, so that their squares, summed over features and samples, stay far from overflow."""
_LARGEST: Final = 1e150
_SMALLEST: Final = 1e-150
"""Range of locations and scales, whose squares are still doubles."""
_QUARTILES_OF_UNIT_NORMAL: Final = 1.349
"""The quartile range of a standard normal."""


class Scaling:
    """z = (u - location) / scale, a feature at a time; location and scale have shape (m,).

    u is x itself, or the coordinate of its kind. The densities of scaled samples are those of z for gaussian and
    lognormal features, and those of x / units for the others.
    """

    def __init__(self, location: FloatArray, scale: FloatArray, kinds: tuple[str, ...] | None = None) -> None:
        self.location, self.scale = location, scale
        self.kinds = ("gaussian",) * len(scale) if kinds is None else kinds
        self._log = np.flatnonzero([kind == "lognormal" for kind in self.kinds])
        self.log_volumes = np.array(
            [_log_volume(*feature) for feature in zip(self.kinds, location, scale, strict=True)]
        )
        self.log_volume = float(self.log_volumes.sum())

    @property
    def units(self) -> FloatArray:
        """What the value 1 of the scaled space is in the user's units, (m,), for features that are no block's."""
        units: FloatArray = np.exp(self.log_volumes)
        return units

    def part(self, features: list[int]) -> "Scaling":
        """The scaling of some of the features alone."""
        return Scaling(self.location[features], self.scale[features], tuple(self.kinds[f] for f in features))

    def values(self, feature: int, z: FloatArray) -> FloatArray:
        """Scaled values of one feature in the user's units."""
        with np.errstate(over="ignore"):
            return KINDS[self.kinds[feature]].value(z * self.scale[feature] + self.location[feature])

    def axis(self, feature: int, low: float, high: float, size: int) -> tuple[FloatArray, FloatArray]:
        """Values (size,) of a feature from one scaled value to another, in the user's units, and the same scaled."""
        kind = KINDS[self.kinds[feature]]
        z = np.linspace(max(low, 0.0) if kind.least == 0 else low, high, size)
        if kind.least == -np.inf:
            return self.values(feature, z), z
        x = kind.nearest(self.values(feature, z))
        return x, (kind.coordinate(x) - self.location[feature]) / self.scale[feature]

    def apply(self, X: FloatArray) -> FloatArray:
        """Scaled samples; NaN (missing) stays, values beyond LIMIT are cut to it.

        >>> Scaling(np.array([5.0]), np.array([2.0])).apply(np.array([[9.0], [1e308]]))
        array([[2.e+000],
               [1.e+100]])
        """
        with np.errstate(over="ignore"):  # 1e308 over a scale of 1e-3
            Z = coordinates(X, self.kinds) - self.location
            Z /= self.scale
        np.maximum(Z, -LIMIT, out=Z)
        return np.minimum(Z, LIMIT, out=Z)

    def score(self, Z: FloatArray, log_density: FloatArray) -> FloatArray:
        """The score (n,), eq. (2), of scaled samples Z (n, m) of these log densities (n,).

        The density of a lognormal x is that of log x over x; one that is missing counts as its location.

        The largest double where a value was cut: the square of what it stands for may be beyond all doubles, and a
        point farther out must never look likelier than one nearer.
        """
        score = self.log_volume - log_density
        if self._log.size:
            known = np.where(np.isnan(Z[:, self._log]), 0.0, Z[:, self._log])
            score = score + (known * self.scale[self._log] + self.location[self._log]).sum(1)
        if np.vdot(Z, Z) < LIMIT * LIMIT:  # not so if a value is missing or cut
            return score
        return np.where((np.abs(Z) >= LIMIT).any(1), float_info.max, score)


def given(config: DetectorConfig) -> Scaling | None:
    """The scaling that the config fixes, or None if the warm-up has to find it."""
    if isinstance(config.scaling, AffineScaling):
        return Scaling(np.array(config.scaling.location), np.array(config.scaling.scale), config.kinds)
    if config.scaling == "none":
        return Scaling(np.zeros(config.n_features), np.ones(config.n_features), config.kinds)
    return None


def check_scaling(location: FloatArray, scale: FloatArray, config: DetectorConfig) -> None:
    """InvalidSnapshot if a config cannot have led to a scaling of these numbers, (m,) each."""
    if (fixed := given(config)) is not None:
        if not (np.array_equal(location, fixed.location) and np.array_equal(scale, fixed.scale)):
            raise InvalidSnapshot("its scaling is not its config's")
        return
    low, high, least, most = np.array([_range(kind) for kind in config.kinds]).T
    fits = (low <= location) & (location <= high) & (least <= scale) & (scale <= most)
    if not fits.all():
        raise InvalidSnapshot(f"its scaling of feature {int(fits.argmin())} is out of range")


@cache
def _range(name: str) -> tuple[float, float, float, float]:
    """The locations, from and to, and the scales that a warm-up can find for features of a kind."""
    kind = KINDS[name]
    ends = np.clip([kind.least, kind.most], -float_info.max, float_info.max)
    low, high = np.clip(kind.coordinate(ends), -_LARGEST, _LARGEST).tolist()
    scales = (_SMALLEST, high - low) if kind.scaled else (1.0, 1.0)
    return (low, high, *scales) if kind.located else (0.0, 0.0, *scales)


def estimated(X: FloatArray, kinds: tuple[str, ...] | None = None) -> Scaling:
    """By median and quartile range of each coordinate of the warm-up samples (n, m); an outlier moves neither.

    A gamma's location is the log of its median, its unit; an exponential's scale makes the median one unit.
    """
    kinds = ("gaussian",) * X.shape[1] if kinds is None else kinds
    location, spread = typical(coordinates(X, kinds))
    for i, kind in enumerate(kinds):
        if not KINDS[kind].located:
            # the coordinate of one unit is 4; more than half of the times may be zero
            spread[i] = (0.25 * location[i] or 1.0) if KINDS[kind].scaled else 1.0
            location[i] = 0.0
        elif not KINDS[kind].scaled:
            spread[i] = 1.0
    return Scaling(location, np.clip(spread, _SMALLEST, _LARGEST), kinds)


def typical(U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Median and spread, (m,), of each column of samples (n, m); NaN is left out."""
    columns = [np.sort(np.clip(c[~np.isnan(c)], -_LARGEST, _LARGEST)) for c in U.T]
    location = np.array([c[(len(c) - 1) // 2] if len(c) else 0.0 for c in columns])
    return location, np.array([_spread(c, at) for c, at in zip(columns, location, strict=True)])


def coordinates(X: FloatArray, kinds: tuple[str, ...]) -> FloatArray:
    """Samples (n, m), or one (m,), with each feature as the coordinate of its kind."""
    if set(kinds) == {"gaussian"}:
        return X
    columns = [KINDS[kind].coordinate(X[..., i].copy()) for i, kind in enumerate(kinds)]
    return np.stack(columns, -1)


def _log_volume(kind: str, location: float, scale: float) -> float:
    """The log of what one unit of a scaled density's argument is in the user's; for a lognormal in log x."""
    if KINDS[kind].located:
        return float(np.log(scale)) if KINDS[kind].scaled else location
    return 4 * float(np.log(scale)) if KINDS[kind].scaled else 0.0


def _spread(column: FloatArray, location: float) -> float:
    """Quartile range as a deviation; for a feature that is mostly one value the usual size of the others."""
    n = len(column)
    quartiles = column[(3 * n) // 4] - column[n // 4] if n else 0.0
    if quartiles > 0:
        return float(quartiles / _QUARTILES_OF_UNIT_NORMAL)
    others = np.sort(np.abs(column[column != location] - location))
    return float(others[(len(others) - 1) // 2]) if len(others) > 1 else 1.0
