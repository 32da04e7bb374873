"""The values of those fields of a config that are more than a number or a word."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """A named feature and its kind, one of core.kinds.KINDS."""

    name: str
    kind: str = "gaussian"


@dataclass(frozen=True, slots=True)
class AffineScaling:
    """A scaling by the user, one number a feature: (u - location) / scale of the coordinate u, x itself if gaussian."""

    location: tuple[float, ...]
    scale: tuple[float, ...]
