"""Samples as the frozen model sees them, and those of a round until it ends."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray
from core.bounds import LARGEST_SAMPLE
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

_LEARNED_AS: Final = ("pending_learned", "pending_spread")


@dataclass(slots=True)
class Batch:
    """What the frozen model says of n samples, and what will be learned of them.

    log_density (n, N); time (n,): timestamps, NaN if there are none; learned (n, m): the sample as it enters the
    statistics, Z itself where nothing is altered; spread (n, m): the variance of what was imputed; left (n, w): what a
    record must keep of the tree's 2-means.
    """

    Z: FloatArray
    log_density: FloatArray
    time: FloatArray
    learned: FloatArray
    spread: FloatArray
    left: BoolArray

    @property
    def altered(self) -> BoolArray:
        """Which samples are not learned as they are, (n,): drawn in or imputed (NaN differs from what fills it)."""
        different: BoolArray = (self.learned != self.Z).any(1)
        return different

    @property
    def any_altered(self) -> bool:
        """Whether some sample is not learned as it is."""
        return self.learned is not self.Z and bool(self.altered.any())

    def rows(self, chosen: Any) -> "Batch":
        """The chosen rows (a slice, mask or index array)."""
        return Batch(*(column[chosen] for column in self.columns()))

    def columns(self) -> tuple[NDArray[Any], ...]:
        """All that there is of the samples, in the order above."""
        return self.Z, self.log_density, self.time, self.learned, self.spread, self.left


class Round:
    """The samples of a round, n of them so far, in arrays of its full length: none that comes alone takes objects."""

    def __init__(self) -> None:
        self.n = 0
        self._rows: Batch | None = None

    @property
    def samples(self) -> Batch | None:
        """All that came, in order; None if nothing did."""
        return None if self._rows is None else self._rows.rows(slice(0, self.n))

    @property
    def newest(self) -> float:
        """The newest timestamp of its samples, -inf if they have none."""
        samples = self.samples
        times = np.zeros(0) if samples is None else samples.time[~np.isnan(samples.time)]
        return float(times.max(initial=-np.inf))

    def state(self, n_features: int) -> dict[str, NDArray[Any]]:
        """Its samples as arrays by name; how they are learned only if that is not as they are."""
        samples = self.samples
        none = np.zeros((0, n_features))
        Z, time, learned, spread = (
            (none, np.zeros(0), none, none)
            if samples is None
            else (samples.Z, samples.time, samples.learned, samples.spread)
        )
        as_they_are = learned.tobytes() == Z.tobytes() and not spread.any()
        told = slice(0) if as_they_are else slice(None)
        return {
            "pending": Z,
            "pending_time": time,
            "pending_learned": learned[told],
            "pending_spread": spread[told],
        }

    def add(self, batch: Batch, size: int) -> None:
        """Take samples in; the whole round has room for so many."""
        begin, self.n = self.n, self.n + len(batch.Z)
        if begin == 0 and self.n == size:
            self._rows = batch
            return
        if self._rows is None:
            self._rows = Batch(*(np.zeros((size, *a.shape[1:]), a.dtype) for a in batch.columns()))
        here = slice(begin, self.n)
        for column, part in zip(self._rows.columns(), batch.columns(), strict=True):
            column[here] = part


def check_pending(arrays: Arrays, n_features: int, room: int) -> None:
    """InvalidSnapshot if a round has no room, and so would never end, or what lies in it is not samples."""
    pending = take(arrays, "pending", np.float64, (-1, n_features))
    take(arrays, "pending_time", np.float64, (len(pending),))
    told = [take(arrays, name, np.float64, (-1, n_features)) for name in _names(arrays)]
    if len(pending) >= room or not {len(part) for part in told} <= {0, len(pending)}:
        raise InvalidSnapshot("its pending samples are not a round")
    if (np.abs(pending) > LARGEST_SAMPLE).any() or np.isnan(pending).all(1).any():
        raise InvalidSnapshot("its pending samples are not samples")
    if told and (len(told[0]) != len(told[1]) or (told[1] < 0).any() or (np.isnan(pending).any() and not told[0].size)):
        raise InvalidSnapshot("how its pending samples are learned does not fit them")


def learned_as(arrays: Arrays) -> tuple[FloatArray, FloatArray] | None:
    """As what a state's pending samples (n, m) are learned, and the variance of what was imputed.

    None for a snapshot of version 2, which does not say: they are looked at anew.
    """
    if not _names(arrays):
        return None
    pending, learned, spread = (arrays[name] for name in ("pending", *_LEARNED_AS))
    return learned if len(learned) else pending, spread if len(spread) else np.zeros_like(pending)


def _names(arrays: Arrays) -> tuple[str, ...]:
    return _LEARNED_AS if set(_LEARNED_AS) & arrays.keys() else ()
