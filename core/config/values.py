"""The values of those fields of a config that are more than a number or a word."""

from dataclasses import dataclass
from typing import Final

HARMONICS: Final = 2
"""Circles a period: the second one tells a working week from its end, and office hours from the ramps beside them."""
SECONDS: Final = {"day": 86_400.0, "week": 604_800.0}
"""The periods that have a name: they follow the local clock."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A named feature, its kind, one of core.kinds.KINDS, and its role: value, or context, which is not scored."""

    name: str
    kind: str = "gaussian"
    role: str = "value"


@dataclass(frozen=True, slots=True)
class AffineScaling:
    """A scaling by the user, one number a feature: (u - location) / scale of the coordinate u, x itself if gaussian."""

    location: tuple[float, ...]
    scale: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Calendar:
    """Periods that a stream may follow, "day", "week" or seconds, and the time zone of its days and weeks."""

    periods: tuple[str | float, ...]
    timezone: str = "UTC"

    @property
    def seconds(self) -> tuple[float, ...]:
        """The length of each period."""
        return tuple(SECONDS[period] if isinstance(period, str) else period for period in self.periods)

    @property
    def n_columns(self) -> int:
        """The columns that it adds to samples: a sine and a cosine for each harmonic of each period."""
        return 2 * HARMONICS * len(self.periods)
