"""Scores that know their samples, so that labels can set them aside."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

NO_SAMPLE: Final = 0
"""The seq of a score of which no sample is known: no label sets it aside."""


class SampleScores:
    """Scores of samples, the oldest first. Those of samples labelled anomalous are set aside: they keep their place.

    >>> scores = SampleScores([(1, 2.5), (2, 9.0)])
    >>> scores.label(2, anomalous=True), scores.counted()
    (9.0, [2.5])
    >>> scores.label(2, anomalous=False), scores.counted()
    (9.0, [2.5, 9.0])
    """

    def __init__(self, samples: Iterable[tuple[int, float]] = ()) -> None:
        self._seqs: deque[int] = deque()
        self._scores: deque[float] = deque()
        self._aside: set[int] = set()
        for seq, score in samples:
            self.add(seq, score)

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def n_counted(self) -> int:
        """How many scores are not set aside."""
        return len(self._seqs) - len(self._aside)

    def add(self, seq: int, score: float) -> None:
        """Take in the score of a sample that is newer than all others."""
        self._seqs.append(seq)
        self._scores.append(score)

    def drop(self) -> tuple[float, bool]:
        """Let the oldest go; its score, and whether it counted."""
        seq, score = self._seqs.popleft(), self._scores.popleft()
        counted = seq not in self._aside
        self._aside.discard(seq)
        return score, counted

    def label(self, seq: int, *, anomalous: bool) -> float | None:
        """Set the score of a sample aside, or let it count again; the score, or None if nothing changes."""
        if (seq in self._aside) == anomalous:
            return None
        at = bisect_left(self._seqs, seq)
        if at == len(self._seqs) or self._seqs[at] != seq:
            return None
        (self._aside.add if anomalous else self._aside.remove)(seq)
        return self._scores[at]

    def counted(self) -> list[float]:
        """The scores that are not set aside."""
        return [score for seq, score in zip(self._seqs, self._scores, strict=True) if seq not in self._aside]

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        self._seqs = deque(seq + shift if seq != NO_SAMPLE else seq for seq in self._seqs)
        self._aside = {seq + shift for seq in self._aside}

    def scores(self) -> FloatArray:
        """All scores (n,), for a snapshot."""
        return np.array(self._scores, float)

    def seqs(self) -> IntArray:
        """The seqs (n,), for a snapshot: negative for a score that is set aside."""
        return np.array([-seq if seq in self._aside else seq for seq in self._seqs], np.int64)

    @classmethod
    def of(cls, scores: NDArray[Any], seqs: NDArray[Any] | None = None) -> "SampleScores":
        """Go on from what a snapshot holds; without seqs no sample is known."""
        signed = [NO_SAMPLE] * len(scores) if seqs is None else seqs.tolist()
        new = cls(zip(map(abs, signed), scores.tolist(), strict=True))
        new._aside = {-seq for seq in signed if seq < 0}
        return new


def check_seqs(arrays: Arrays, name: str, n: int, next_seq: int) -> None:
    """InvalidSnapshot if the array of this name cannot be the seqs of n scores."""
    seqs = np.abs(take(arrays, name, np.int64, (n,)))
    known = seqs[seqs != NO_SAMPLE]
    if not (
        (seqs >= 0).all() and (np.diff(seqs) >= 0).all() and (np.diff(known) > 0).all() and (known < next_seq).all()
    ):
        raise InvalidSnapshot("its scores are not of samples in their order")
