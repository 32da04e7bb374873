"""How long values stand still: a sensor that died repeats itself, a new level of work does not."""

from collections.abc import Sequence
from math import nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

LONGEST: Final = 2**53


class Stillness:
    """For how many samples in a row each feature has kept its value, and for how many it ever did while ordinary."""

    def __init__(self, n_features: int) -> None:
        self._previous = [nan] * n_features
        self._lasting = [0] * n_features
        self._ordinary = [1] * n_features

    def lasting(self, X: FloatArray) -> IntArray:
        """How long each value of the next samples X (n, m) has stood by then, (n, m); a missing one never stands."""
        same = np.vstack([self._previous, X[:-1]]) == X
        row = np.arange(1, len(X) + 1)[:, None]
        changed = np.maximum.accumulate(np.where(same, 0, row), axis=0)
        lasting: IntArray = row - changed + np.where(changed > 0, 1, self._lasting)
        self._previous, self._lasting = X[-1].tolist(), lasting[-1].tolist()
        return lasting

    def next(self, x: Sequence[float]) -> Sequence[int]:
        """How long each value of the next sample x (m,) has stood: what lasting gives, at a tenth of its time."""
        before = zip(x, self._previous, self._lasting, strict=True)
        self._lasting = [n + 1 if value == last else 1 for value, last, n in before]
        self._previous = [*x]
        return self._lasting

    def unusual(self, lasting: Sequence[int] | IntArray, age: int) -> bool:
        """Whether a value that has stood so long, (m,), did so in the last age samples for longer than ever before."""
        return any(min(n, age) > most for n, most in zip(lasting, self._ordinary, strict=True))

    def allow(self, lasting: IntArray) -> None:
        """Take note of how long values stood in ordinary samples (n, m)."""
        self.allow_next(lasting.max(0, initial=1).tolist())

    def allow_next(self, lasting: Sequence[int]) -> None:
        """Take note of how long values stood in one ordinary sample (m,)."""
        if max(lasting) > 1:
            self._ordinary = [max(pair) for pair in zip(self._ordinary, lasting, strict=True)]

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {
            "still_value": np.array(self._previous),
            "still_lasting": np.array(self._lasting),
            "still_ordinary": np.array(self._ordinary),
        }

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
            arrays[f"still_{name}"].tolist() for name in ("value", "lasting", "ordinary")
        )
