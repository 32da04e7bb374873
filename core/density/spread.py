"""The spread of each feature in the scaled space, as it is now: what counts as small there, long after the warm-up."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray
from core.bounds import LARGEST_SAMPLE
from core.errors import InvalidSnapshot
from core.families.layout import BLOCK_KINDS
from core.scaling import quartile_spread
from core.snapshot import Arrays, take

STRIDE: Final = 4
KEPT: Final = 128
"""One learned sample in STRIDE is kept, and the last KEPT of these tell the spread. Chosen by hand."""
EVERY: Final = 128
"""Learned samples between two looks. Chosen by hand."""
ENOUGH: Final = 32
"""Known values that tell a spread, as many as the shortest default warm-up has."""
FAR: Final = 4.0
"""A spread follows when the recent values say this many times more, or less. Chosen by hand."""


class RecentSpread:
    """Scaled values (k, m) of recent learned samples, NaN where one is missing, and the spread of each feature."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._features = [feature for feature, kind in enumerate(kinds) if kind in BLOCK_KINDS]
        self.values = np.zeros((0, len(kinds)))

    def add(self, Z: FloatArray, before: int) -> bool:
        """Let samples (n, m) be learned after so many others; whether it is time for a look."""
        kept = Z[(STRIDE - 1 - before) % STRIDE :: STRIDE]
        if len(kept):
            self.values = np.concatenate([self.values, kept])[-KEPT:]
        return before // EVERY < (before + len(Z)) // EVERY

    def moved(self, spread: FloatArray, most: FloatArray, coarse: BoolArray) -> dict[int, float]:
        """The spreads now, by feature, that are far from what they were (m,), and no larger than most (m,).

        So are all of features that were coarse (m,), since their values are not mostly equal any more.
        """
        moved = {}
        for feature in self._features:
            column = self.values[:, feature]
            known = column[~np.isnan(column)]
            now = min(quartile_spread(known), float(most[feature])) if len(known) >= ENOUGH else 0.0
            if now > 0 and (coarse[feature] or not 1 / FAR < now / spread[feature] < FAR):
                moved[feature] = now
        return moved

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name."""
        return {"spread_recent": self.values}

    def check(self, arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no samples could have left these."""
        values = take(arrays, "spread_recent", np.float64, (-1, self.values.shape[1]))
        if len(values) > KEPT or (np.abs(values) > LARGEST_SAMPLE).any():
            raise InvalidSnapshot("its recent values are not those of samples")

    def load(self, arrays: Arrays) -> None:
        """Continue from a state that check has passed."""
        self.values = arrays["spread_recent"]
