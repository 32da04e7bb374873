"""Samples as the frozen model sees them, and the samples of a round until it ends."""

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
    """n samples Z (n, m), what the frozen model says of them, and how they will be learned.

    log_density (n, N) is that of each node, log_p (n,) that of the mixture, given the context. time (n,) are
    timestamps, NaN without one. learned (n, m) is what enters the statistics: Z itself if nothing is altered. spread
    (n, m) is the variance of filled values, and left (n, N) or (n, 0) is that of LearnedSample.
    """

    Z: FloatArray
    log_density: FloatArray
    log_p: FloatArray
    time: FloatArray
    learned: FloatArray
    spread: FloatArray
    left: BoolArray

    @property
    def altered(self) -> BoolArray:
        """Which samples (n,) are not learned as they came: drawn in, or filled (NaN differs from what fills it)."""
        different: BoolArray = (self.learned != self.Z).any(1)
        return different

    @property
    def any_altered(self) -> bool:
        """Whether some sample is not learned as it came."""
        return self.learned is not self.Z and bool(self.altered.any())

    def rows(self, chosen: Any) -> "Batch":
        """Some of the samples, by a slice, a mask or indices."""
        return Batch(*(column[chosen] for column in self.columns()))

    def columns(self) -> tuple[NDArray[Any], ...]:
        """All arrays, in the order of the constructor."""
        return self.Z, self.log_density, self.log_p, self.time, self.learned, self.spread, self.left


class Round:
    """The samples of a round, n so far, in arrays of the round's full length, so that adding one sample is cheap."""

    def __init__(self) -> None:
        self.n = 0
        self._rows: Batch | None = None

    @property
    def samples(self) -> Batch | None:
        """The samples so far, in order; None if there are none."""
        return None if self._rows is None else self._rows.rows(slice(0, self.n))

    @property
    def newest(self) -> float:
        """The newest timestamp, -inf without one."""
        samples = self.samples
        times = np.zeros(0) if samples is None else samples.time[~np.isnan(samples.time)]
        return float(times.max(initial=-np.inf))

    def state(self, n_features: int) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name; how samples are learned only if some are not learned as they came."""
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
        """Add samples to a round that holds size samples at its end."""
        begin, self.n = self.n, self.n + len(batch.Z)
        if begin == 0 and self.n == size:
            self._rows = batch
            return
        if self._rows is None:
            self._rows = blank(batch, size)
        here = slice(begin, self.n)
        for column, part in zip(self._rows.columns(), batch.columns(), strict=True):
            column[here] = part

    def add_one(self, batch: Batch, row: int, size: int) -> None:
        """Add one sample of a batch, learned as it came, to a round that holds size samples at its end."""
        if self._rows is None:
            self._rows = blank(batch, size)
        rows, n = self._rows, self.n
        rows.Z[n] = rows.learned[n] = batch.Z[row]
        rows.log_density[n], rows.log_p[n], rows.time[n] = batch.log_density[row], batch.log_p[row], batch.time[row]
        self.n = n + 1


def blank(like: Batch, size: int) -> Batch:
    """Room for size samples of the columns of a batch."""
    return Batch(*(np.zeros((size, *column.shape[1:]), column.dtype) for column in like.columns()))


def check_pending(arrays: Arrays, n_features: int, room: int) -> None:
    """Raise InvalidSnapshot if a round cannot hold these samples, or has no room left and so would never end."""
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
    """How a state's pending samples (n, m) are learned, and the variance of filled values (n, m).

    None for a snapshot of version 2, which does not say: its samples are evaluated again.
    """
    if not _names(arrays):
        return None
    pending, learned, spread = (arrays[name] for name in ("pending", *_LEARNED_AS))
    return learned if len(learned) else pending, spread if len(spread) else np.zeros_like(pending)


def _names(arrays: Arrays) -> tuple[str, ...]:
    return _LEARNED_AS if set(_LEARNED_AS) & arrays.keys() else ()
