"""Which samples were held out: they have numbers, but nothing is counted or learned of them."""

from bisect import bisect_right
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

MOST_RUNS: Final = 1024
"""Runs of held-out samples that are remembered. How long ago something was counts older ones too. Chosen by hand."""
_NAMES: Final = ("held_out_first", "held_out_count")


class HeldOut:
    """The runs of held-out samples, by the seqs that they begin with, and how many were held out before each."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._count = [0]

    @property
    def n(self) -> int:
        """How many samples were held out."""
        return self._count[-1]

    def add(self, seq: int, n: int) -> None:
        """Hold out n samples, at least one, that come next, numbered from seq on."""
        if self._first and seq == self._first[-1] + self._count[-1] - self._count[-2]:
            self._count[-1] += n
            return
        self._first.append(seq)
        self._count.append(self.n + n)
        if len(self._first) > MOST_RUNS:
            del self._first[0], self._count[0]

    def after(self, seq: int) -> int:
        """How many were held out after a sample that was not, of those that are remembered."""
        return self.n - self._count[bisect_right(self._first, seq)]

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        self._first = [seq + shift for seq in self._first]

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name; none if no sample was held out."""
        return dict(zip(_NAMES, map(np.array, (self._first, self._count)), strict=True)) if self.n else {}

    @staticmethod
    def check(arrays: Arrays, first_seq: int, next_seq: int) -> None:
        """InvalidSnapshot if these cannot be its arrays, with samples from first_seq to before next_seq."""
        if not set(_NAMES) & arrays.keys():
            return
        first = take(arrays, "held_out_first", np.int64, (-1,))
        count = take(arrays, "held_out_count", np.int64, (len(first) + 1,))
        ends = first + np.diff(count)
        if not (
            0 < len(first) <= MOST_RUNS
            and (np.diff(count) > 0).all()
            and 0 <= count[0] <= first[0] - first_seq
            and (ends[:-1] < first[1:]).all()
            and ends[-1] <= next_seq
        ):
            raise InvalidSnapshot("which samples were held out is not valid")

    @classmethod
    def of(cls, arrays: Arrays) -> "HeldOut":
        """Read a state that check has passed."""
        held_out = cls()
        held_out.load(arrays)
        return held_out

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        if set(_NAMES) <= arrays.keys():
            self._first, self._count = (arrays[name].tolist() for name in _NAMES)
