"""The kinds of feature: which values each can have, and the coordinate in which the tree sees them.

Hyperplanes, reservoir and candidates need a real coordinate u in which one step means about the same everywhere: the
value itself, its logarithm, or a root that makes its variance even.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray

LEVELS: Final = 64
"""Codes of a categorical feature are 0 to LEVELS - 1."""
MOST_COUNT: Final = 1e15
"""Beyond, a double cannot tell a count from its neighbours for long."""
_APART: Final = 3
_CROWDED: Final = 1 / 1024
"""Codes from _APART on lie this close together, so that no hyperplane takes a code for a size."""
_LARGEST: Final = 1e300
"""Values of coordinates end here, short of overflow."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of feature: which values it can have (limit says it), its coordinate u(x), and u's inverse.

    located and scaled tell whether (u - location) / scale may have another location than 0, another scale than 1; a
    kind that is neither is its own unit.
    """

    limit: str
    coordinate: Callable[[FloatArray], FloatArray]
    value: Callable[[FloatArray], FloatArray]
    least: float = -np.inf
    most: float = np.inf
    whole: bool = False
    located: bool = False
    scaled: bool = False

    def inside(self, x: FloatArray) -> BoolArray:
        """Which of the values it can have."""
        inside: BoolArray = (x >= self.least) & (x <= self.most)
        return inside & (x == np.floor(x)) if self.whole else inside

    def nearest(self, x: FloatArray) -> FloatArray:
        """The values that it can have, near to these."""
        nearest: FloatArray = np.clip(np.rint(x) if self.whole else x, self.least, self.most)
        return nearest


def _same(x: FloatArray) -> FloatArray:
    return x


def _exp(u: FloatArray) -> FloatArray:
    return np.exp(np.clip(u, -np.log(_LARGEST), np.log(_LARGEST)))


def _double_root(x: FloatArray) -> FloatArray:
    """Of a Poisson count, a number of variance about 1 whatever its mean."""
    return 2.0 * np.sqrt(x)


def _square(u: FloatArray) -> FloatArray:
    return 0.25 * u * u


def _fourth_root(x: FloatArray) -> FloatArray:
    """Of an exponential time, a nearly Gaussian number; unlike the logarithm it has a place for zero."""
    return 4.0 * np.sqrt(np.sqrt(x))


def _fourth_power(u: FloatArray) -> FloatArray:
    value: FloatArray = np.minimum(0.25 * u, _LARGEST**0.25) ** 4
    return value


def _spread_codes(x: FloatArray) -> FloatArray:
    return np.minimum(x, _APART) + _CROWDED * np.maximum(x - _APART, 0.0)


def _codes(u: FloatArray) -> FloatArray:
    codes: FloatArray = np.rint(np.where(u < _APART, u, _APART + (u - _APART) / _CROWDED))
    return codes


_ABOVE_ZERO: Final = 5e-324

KINDS: Final[dict[str, Kind]] = {
    "gaussian": Kind("any number", _same, _same, located=True, scaled=True),
    "lognormal": Kind("above 0", np.log, _exp, least=_ABOVE_ZERO, located=True, scaled=True),
    "gamma": Kind("above 0", np.log, _exp, least=_ABOVE_ZERO, located=True),
    "exponential": Kind("0 or more", _fourth_root, _fourth_power, least=0, scaled=True),
    "poisson": Kind(
        f"a whole number from 0 to {MOST_COUNT:g}", _double_root, _square, least=0, most=MOST_COUNT, whole=True
    ),
    "bernoulli": Kind("0 or 1", _same, _same, least=0, most=1, whole=True),
    "categorical": Kind(
        f"a whole number from 0 to {LEVELS - 1}", _spread_codes, _codes, least=0, most=LEVELS - 1, whole=True
    ),
}
