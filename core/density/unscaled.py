"""Features whose scale the warm-up could not tell, since they hardly moved in it."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray
from core.errors import InvalidSnapshot
from core.families.layout import BLOCK_KINDS
from core.scaling import LIMIT, Scaling, quartile_spread, typical_distance
from core.snapshot import Arrays, take

FEW: Final = 8
ENOUGH: Final = 32
"""Values that tell a feature's spread for the first time, and again. Chosen by hand."""
SILENT: Final = -1
"""Count of a feature of which no value has been known yet."""
NEAREST: Final = 1e-40
FARTHEST: Final = 1e150
"""Range of the unit that a first step makes: much larger steps may follow, and must not be cut off."""


class Unscaled:
    """What features have shown of their scale whose values in the warm-up were mostly equal, or all missing.

    A feature that has never moved has no unit and needs none: its values are all 0 in the scaled space. The first value
    that differs from its location makes the unit. The first FEW of them tell the spread, and the first ENOUGH again,
    unless they are rarer than rate: then the count begins again.

    n_shown (m,) counts them among n_watched (m,) values, and is ENOUGH for all other features; shown (m, ENOUGH) are
    their coordinates.
    """

    def __init__(self, kinds: tuple[str, ...], rate: float) -> None:
        self._rate = rate
        self._of_block = [feature for feature, kind in enumerate(kinds) if kind in BLOCK_KINDS]
        self.n_shown = np.full(len(kinds), ENOUGH)
        self.shown = np.zeros((len(kinds), ENOUGH))
        self.n_watched = np.zeros(len(kinds), np.int64)
        self._told: list[int] = []
        self._features: list[int] = []

    def begin(self, U: FloatArray, location: FloatArray) -> None:
        """Begin after a warm-up of these coordinates (n, m) and locations (m,)."""
        for feature in self._of_block:
            known = U[~np.isnan(U[:, feature]), feature]
            if quartile_spread(known) == 0:
                self.n_shown[feature] = 0
                self._show(feature, known, known != location[feature])
                if not len(known):
                    self.n_shown[feature] = SILENT
        self._look()

    @property
    def any(self) -> bool:
        """Whether there are such features."""
        return bool(self._features)

    def _look(self) -> None:
        self._features = np.flatnonzero(self.n_shown < ENOUGH).tolist()

    def wakes(self, U: FloatArray, location: FloatArray) -> BoolArray:
        """Which samples of coordinates (n, m) move a feature that has not moved yet, or are the first to know it."""
        wakes = np.zeros(len(U), bool)
        for feature in self._features:
            if self.n_shown[feature] <= 0:
                wakes |= self._differ(U, location, feature)
        return wakes

    def woken(self, scaling: Scaling, u: FloatArray) -> Scaling:
        """The scaling by which a sample of coordinates u (m,) is scored if it is the next one. Pure."""
        for feature in self._features:
            location, value = float(scaling.location[feature]), float(u[feature])
            if np.isnan(value) or value == location:
                continue
            if self.n_shown[feature] == SILENT:
                scaling = scaling.changed(feature, min(max(value, -FARTHEST), FARTHEST), 1.0)
            elif self.n_shown[feature] == 0:
                half = min(abs(value / 2 - location / 2), FARTHEST / 2)  # 1.7e308 less -1.7e308 is too much
                scaling = scaling.changed(feature, location, max(2 * half, NEAREST))
        return scaling

    def watch(self, U: FloatArray, location: FloatArray) -> int:
        """Watch samples of coordinates (n, m), as many as can be scored by one scaling; the first one has woken it.

        That is all, or those before another one that wakes, or those up to one that completes what tells a spread.
        Returns how many.
        """
        n = len(U)
        for feature in self._features:
            if self.n_shown[feature] == SILENT and not np.isnan(U[0, feature]):
                self.n_shown[feature] = 0
            places = np.flatnonzero(self._differ(U, location, feature))
            n_shown = int(self.n_shown[feature])
            if n_shown > 0 or places[:1].tolist() == [0]:
                places = places[(FEW if n_shown < FEW else ENOUGH) - n_shown - 1 :] + 1
            n = min([n, *places[:1].tolist()])
        for feature in self._features:
            if self.n_shown[feature] != SILENT:
                self._show(feature, U[:n, feature], self._differ(U[:n], location, feature))
        return n

    def told(self, scaling: Scaling) -> dict[int, tuple[float, bool]]:
        """The spreads in the scaled space, by feature, that the samples watched last have completed.

        Each with whether it is coarse: the values that differ from most others also differ among themselves.
        """
        told: dict[int, tuple[float, bool]] = {}
        for feature in self._told:
            shown = self.shown[feature, : self.n_shown[feature]]
            with np.errstate(over="ignore"):  # steps of 1e308 where the first one was 1e-40
                z = np.clip((shown - scaling.location[feature]) / scaling.scale[feature], -LIMIT, LIMIT)
            among = quartile_spread(z)
            told[feature] = max(among, typical_distance(z, 0.0)), among > 0
        if told:
            self._told = []
            self._look()
        return told

    def _differ(self, U: FloatArray, location: FloatArray, feature: int) -> BoolArray:
        """Which values (n,) of a feature say something new: they differ from its location, or are the first known."""
        known = ~np.isnan(U[:, feature])
        return known if self.n_shown[feature] == SILENT else known & (U[:, feature] != location[feature])

    def _show(self, feature: int, values: FloatArray, differ: BoolArray) -> None:
        """Take note of values (n,) of a feature, of which some differ (n,) from its location."""
        n, new = int(self.n_shown[feature]), values[differ]
        after = min(n + len(new), ENOUGH)
        self.n_watched[feature] += np.count_nonzero(~np.isnan(values))
        self.shown[feature, n:after] = new[: after - n]
        if (n < FEW <= after) or (n < after == ENOUGH):
            if after < self._rate * self.n_watched[feature]:
                after, self.n_watched[feature] = 1, 0
            else:
                self._told.append(feature)
        self.n_shown[feature] = after

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        shown = [self.shown[feature, : max(self.n_shown[feature], 0)] for feature in self._features]
        counts = {"unscaled_n_shown": self.n_shown, "unscaled_n_watched": self.n_watched}
        return counts | {"unscaled_shown": np.concatenate([np.zeros(0), *shown])}

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if a state does not fit."""
        n_shown = take(arrays, "unscaled_n_shown", np.int64, self.n_shown.shape)
        open_ = n_shown < ENOUGH
        if (n_shown < SILENT).any() or (n_shown > ENOUGH).any() or np.delete(open_, self._of_block).any():
            raise InvalidSnapshot("what its features have shown of their scale is out of range")
        if (take(arrays, "unscaled_n_watched", np.int64, n_shown.shape) < 0).any():
            raise InvalidSnapshot("it has watched fewer than no values of a feature")
        take(arrays, "unscaled_shown", np.float64, (int(np.maximum(n_shown[open_], 0).sum()),))

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.n_shown, self.n_watched = arrays["unscaled_n_shown"], arrays["unscaled_n_watched"]
        self._look()
        start = 0
        for feature in self._features:
            n = max(int(self.n_shown[feature]), 0)
            self.shown[feature, :n] = arrays["unscaled_shown"][start : start + n]
            start += n
