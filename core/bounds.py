"""Bounds of the numbers in a state: scaled samples are at most 1e100, and no more than 2^53 of them are added up."""

from collections import defaultdict
from functools import cache
from sys import float_info
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays

LARGEST_SAMPLE: Final = 2e101
"""A little above what a scaled sample, a mean of such, or a projection of one, can be."""
_LARGEST_SQUARES: Final = 1e217
_LARGEST_SUM: Final = 2.0**53 * LARGEST_SAMPLE
_OF_SAMPLES: Final = ("_mean", "_x", "_learned", "_normal", "_offset")
_IN_NATS: Final = ("threshold", "level", "ordinary", "settling", "incident", "outcome", "background_scores")
_IN_NATS_OR_UNITS: Final = (*_IN_NATS, "location", "scale", "unscaled")
_MAY_BE_MISSING: Final = ("pending", "pending_time", "clock", "incident_time", "still_value", "spread_recent")


def check_bounds(arrays: Arrays) -> None:
    """Raise InvalidSnapshot for numbers that are not finite, or larger than any samples can make them."""
    groups: defaultdict[float, list[str]] = defaultdict(list)
    for name, array in arrays.items():
        if array.dtype == np.float64 and not name.endswith(_MAY_BE_MISSING):
            groups[_bound_of(name)].append(name)
    for bound, names in groups.items():
        if not _largest(np.concatenate([arrays[name].ravel() for name in names])) <= bound:
            worst = next(name for name in names if not _largest(arrays[name]) <= bound)
            raise InvalidSnapshot(f"its array {worst!r} holds a number that is not finite, or too large")


def _largest(numbers: FloatArray) -> float:
    return float(np.abs(numbers).max(initial=0.0))


@cache
def _bound_of(name: str) -> float:
    if name.endswith("_sum"):
        return _LARGEST_SUM
    if name.startswith(_IN_NATS_OR_UNITS):
        return float_info.max
    return LARGEST_SAMPLE if name.endswith(_OF_SAMPLES) else _LARGEST_SQUARES
