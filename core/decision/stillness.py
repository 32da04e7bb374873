"""How long values stand still: a sensor that died repeats itself, a new level of work does not."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

LONGEST: Final = 2**53


class Stillness:
    """For how many samples in a row each feature has kept its value, and for how many it ever did while ordinary."""

    def __init__(self, n_features: int) -> None:
        self._previous = np.full(n_features, np.nan)
        self._lasting = np.zeros(n_features, np.int64)
        self._ordinary = np.ones(n_features, np.int64)

    def lasting(self, X: FloatArray) -> IntArray:
        """How long each value of the next samples X (n, m) has stood by then, (n, m); a missing one never stands."""
        lasting = self._next(X) if len(X) == 1 else self._all(X)
        self._previous, self._lasting = X[-1].copy(), lasting[-1].copy()
        return lasting

    def _next(self, x: FloatArray) -> IntArray:
        """That of one sample (1, m): the same as _all, at a third of its time."""
        return np.where(x == self._previous, self._lasting + 1, 1)

    def _all(self, X: FloatArray) -> IntArray:
        same = np.vstack([self._previous, X[:-1]]) == X
        row = np.arange(1, len(X) + 1)[:, None]
        changed = np.maximum.accumulate(np.where(same, 0, row), axis=0)
        lasting: IntArray = row - changed + np.where(changed > 0, 1, self._lasting)
        return lasting

    def unusual(self, lasting: IntArray, age: int) -> bool:
        """Whether a value that has stood so long, (m,), did so in the last age samples for longer than ever before."""
        return bool((np.minimum(lasting, age) > self._ordinary).any())

    def allow(self, lasting: IntArray, ordinary: BoolArray) -> None:
        """Take note of how long values stood in those samples (n, m) that are ordinary (n,)."""
        self._ordinary = np.maximum(self._ordinary, lasting.max(0, where=ordinary[:, None], initial=1))

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {"still_value": self._previous, "still_lasting": self._lasting, "still_ordinary": self._ordinary}

    @staticmethod
    def check(arrays: Arrays, n_features: int) -> None:
        """InvalidSnapshot if these cannot be its arrays."""
        value = take(arrays, "still_value", np.float64, (n_features,))
        lengths = [take(arrays, f"still_{name}", np.int64, (n_features,)) for name in ("lasting", "ordinary")]
        if np.isinf(value).any() or not all(((least <= n) & (n < LONGEST)).all() for least, n in enumerate(lengths)):
            raise InvalidSnapshot("how long its values stood still is not valid")

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self._previous, self._lasting, self._ordinary = (
            arrays[f"still_{name}"] for name in ("value", "lasting", "ordinary")
        )
