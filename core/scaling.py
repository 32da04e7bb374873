"""Scaling: the map from the user's units to the space in which the tree works, and what it does to a density."""

from functools import cache
from sys import float_info
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import AffineScaling, DetectorConfig
from core.errors import InvalidSnapshot
from core.kinds import KINDS

LIMIT: Final = 1e100
"""Scaled values are clipped here: their squares, summed over features and samples, stay far from overflow."""
_LARGEST: Final = 1e150
_SMALLEST: Final = 1e-150
"""Range of locations and scales, whose squares are still doubles."""
_QUARTILES_OF_UNIT_NORMAL: Final = 1.349
"""The quartile range of a standard normal."""


class Scaling:
    """z = (u - location) / scale for each feature; location and scale are (m,).

    u is the coordinate of a value, which is the value itself for gaussian features (core.kinds). Densities of scaled
    samples are those of z for gaussian and lognormal features, and those of x / units for the others. log_volumes (m,)
    are those of each feature; log_volume, that of the scored ones, is what eq. (2) adds to -log p of z to give the
    score in the user's units. scored are the features that are no context, all if not given.
    """

    def __init__(
        self,
        location: FloatArray,
        scale: FloatArray,
        kinds: tuple[str, ...] | None = None,
        scored: tuple[int, ...] | None = None,
    ) -> None:
        self.location, self.scale = location, scale
        self.kinds = ("gaussian",) * len(scale) if kinds is None else kinds
        self.scored = tuple(range(len(scale))) if scored is None else scored
        self._log = np.array([feature for feature in self.scored if self.kinds[feature] == "lognormal"], np.int64)
        self.log_volumes = np.array(
            [_log_volume(*feature) for feature in zip(self.kinds, location, scale, strict=True)]
        )
        self.log_volume = float(self.log_volumes[[*self.scored]].sum())

    @property
    def units(self) -> FloatArray:
        """The unit of each feature that has a factor of its own, (m,): its density is that of x / unit."""
        units: FloatArray = np.exp(self.log_volumes)
        return units

    def changed(self, feature: int, location: float, scale: float) -> "Scaling":
        """Give the same scaling with another location and scale of one feature."""
        locations, scales = self.location.copy(), self.scale.copy()
        locations[feature], scales[feature] = location, scale
        return Scaling(locations, scales, self.kinds, self.scored)

    def part(self, features: list[int]) -> "Scaling":
        """Give the scaling of some of the features alone, all of them scored."""
        return Scaling(self.location[features], self.scale[features], tuple(self.kinds[f] for f in features))

    def values(self, feature: int, z: FloatArray) -> FloatArray:
        """Give scaled values (n,) of one feature in the user's units."""
        with np.errstate(over="ignore"):
            return KINDS[self.kinds[feature]].value(z * self.scale[feature] + self.location[feature])

    def axis(self, feature: int, low: float, high: float, size: int) -> tuple[FloatArray, FloatArray]:
        """Give evenly spaced values of a feature between two scaled ones: (size,) in the user's units, and scaled."""
        kind = KINDS[self.kinds[feature]]
        z = np.linspace(max(low, 0.0) if kind.least == 0 else low, high, size)
        if kind.least == -np.inf:
            return self.values(feature, z), z
        x = kind.nearest(self.values(feature, z))
        return x, (kind.coordinate(x) - self.location[feature]) / self.scale[feature]

    def apply(self, X: FloatArray) -> FloatArray:
        """Scale samples (n, m), or one (m,); NaN (missing) stays, values beyond LIMIT are clipped to it.

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
        """Give the scores (n,), eq. (2), of scaled samples Z with these log densities (n,).

        Z (n, m) may have more columns. The density of a lognormal x is that of log x, over x; a missing one counts as
        its location. The score is the largest double if a scored value was clipped: a point farther out must never look
        likelier than a nearer one.
        """
        score = self.log_volume - log_density
        if self._log.size:
            known = np.where(np.isnan(Z[:, self._log]), 0.0, Z[:, self._log])
            score = score + (known * self.scale[self._log] + self.location[self._log]).sum(1)
        if np.vdot(Z, Z) < LIMIT * LIMIT:  # not so if a value is missing or cut
            return score
        return np.where((np.abs(Z[:, [*self.scored]]) >= LIMIT).any(1), float_info.max, score)


def given(config: DetectorConfig) -> Scaling | None:
    """Give the scaling that the config fixes, or None if the warm-up has to find it."""
    if isinstance(config.scaling, AffineScaling):
        return Scaling(np.array(config.scaling.location), np.array(config.scaling.scale), config.kinds, config.values)
    if config.scaling == "none":
        return Scaling(np.zeros(config.n_features), np.ones(config.n_features), config.kinds, config.values)
    return None


def check_scaling(location: FloatArray, scale: FloatArray, config: DetectorConfig) -> None:
    """Raise InvalidSnapshot if a detector of this config cannot have this location (m,) and scale (m,)."""
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
    """The least and the greatest location, then scale, that a warm-up can find for features of a kind."""
    kind = KINDS[name]
    ends = np.clip([kind.least, kind.most], -float_info.max, float_info.max)
    low, high = np.clip(kind.coordinate(ends), -_LARGEST, _LARGEST).tolist()
    scales = (_SMALLEST, high - low) if kind.scaled else (1.0, 1.0)
    return (low, high, *scales) if kind.located else (0.0, 0.0, *scales)


def estimated(X: FloatArray, kinds: tuple[str, ...] | None = None, scored: tuple[int, ...] | None = None) -> Scaling:
    """Scale by median and quartile range of each coordinate of samples (n, m): outliers move neither.

    A gamma's location is the log of its median, which is its unit; an exponential's scale makes the median one unit.
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
    return Scaling(location, np.clip(spread, _SMALLEST, _LARGEST), kinds, scored)


def typical(U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give median and spread, (m,) each, of the columns of U (n, m), leaving NaN out."""
    columns = [np.sort(np.clip(c[~np.isnan(c)], -_LARGEST, _LARGEST)) for c in U.T]
    location = np.array([c[(len(c) - 1) // 2] if len(c) else 0.0 for c in columns])
    return location, np.array([_spread(c, at) for c, at in zip(columns, location, strict=True)])


def coordinates(X: FloatArray, kinds: tuple[str, ...]) -> FloatArray:
    """Give the coordinates of samples (n, m), or of one (m,), each feature by its kind."""
    if set(kinds) == {"gaussian"}:
        return X
    columns = [KINDS[kind].coordinate(X[..., i].copy()) for i, kind in enumerate(kinds)]
    return np.stack(columns, -1)


def _log_volume(kind: str, location: float, scale: float) -> float:
    """The log of one scaled unit of a feature in the user's units; in log x for a lognormal."""
    if KINDS[kind].located:
        return float(np.log(scale)) if KINDS[kind].scaled else location
    return 4 * float(np.log(scale)) if KINDS[kind].scaled else 0.0


def quartile_spread(values: FloatArray) -> float:
    """The quartile range of values (n,) as a standard deviation; 0 without any."""
    ordered = np.sort(np.clip(values, -_LARGEST, _LARGEST))
    n = len(ordered)
    return float((ordered[(3 * n) // 4] - ordered[n // 4]) / _QUARTILES_OF_UNIT_NORMAL) if n else 0.0


def typical_distance(values: FloatArray, location: float) -> float:
    """The median distance from a location of those values (n,) that differ from it; 0 without any."""
    others = np.sort(np.abs(np.clip(values[values != location], -_LARGEST, _LARGEST) - location))
    return float(others[(len(others) - 1) // 2]) if len(others) else 0.0


def _spread(column: FloatArray, location: float) -> float:
    """The quartile range as a standard deviation; if most values are equal, the usual distance of the others."""
    return quartile_spread(column) or typical_distance(column, location) or 1.0
