"""Scores that know their samples, so that labels can set them aside."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

NO_SAMPLE: Final = 0
"""The seq of a score of which no sample is known: no label sets it aside."""
GONE: Final = 128
"""Scores that are gone but whose places are kept, at most."""


class SampleScores:
    """Scores of samples, the oldest first. Those of samples labelled anomalous are set aside: they keep their place.

    >>> scores = SampleScores([(1, 2.5), (2, 9.0)])
    >>> scores.label(2, anomalous=True), scores.counted().tolist()
    (9.0, [2.5])
    >>> scores.label(2, anomalous=False), scores.counted().tolist()
    (9.0, [2.5, 9.0])
    """

    def __init__(self, samples: Iterable[tuple[int, float]] = ()) -> None:
        self._seqs = array("q")
        self._scores = array("d")
        self._gone = 0
        """The number of places at the beginning whose scores are gone."""
        self._aside: set[int] = set()
        for seq, score in samples:
            self.add(seq, score)

    def __len__(self) -> int:
        return len(self._seqs) - self._gone

    @property
    def n_counted(self) -> int:
        """How many scores are not set aside."""
        return len(self) - len(self._aside)

    def add(self, seq: int, score: float) -> None:
        """Take in the score of a sample that is newer than all others."""
        self._seqs.append(seq)
        self._scores.append(score)

    def drop(self) -> tuple[float, bool]:
        """Let the oldest go; its score, and whether it counted."""
        seq, score = self._seqs[self._gone], self._scores[self._gone]
        self._gone += 1
        if self._gone > GONE:
            self._seqs, self._scores, self._gone = self._seqs[self._gone :], self._scores[self._gone :], 0
        counted = seq not in self._aside
        self._aside.discard(seq)
        return score, counted

    def label(self, seq: int, *, anomalous: bool) -> float | None:
        """Set the score of a sample aside, or let it count again; the score, or None if nothing changes."""
        if (seq in self._aside) == anomalous:
            return None
        at = bisect_left(self._seqs, seq, self._gone)
        if at == len(self._seqs) or self._seqs[at] != seq:
            return None
        (self._aside.add if anomalous else self._aside.remove)(seq)
        return self._scores[at]

    def counted(self) -> FloatArray:
        """The scores (k,) that are not set aside."""
        return self.scores()[self.seqs() >= 0]

    def renumber(self, shift: int) -> None:
        """Follow the seqs of the samples when they are numbered anew."""
        seqs = np.array(self._seqs)
        self._seqs = array("q", np.where(seqs == NO_SAMPLE, NO_SAMPLE, seqs + shift).tobytes())
        self._aside = {seq + shift for seq in self._aside}

    def scores(self) -> FloatArray:
        """All scores (n,), the oldest first."""
        return np.array(self._scores)[self._gone :]

    def seqs(self) -> IntArray:
        """The seqs (n,) of all scores: negative for a score that is set aside."""
        seqs = np.array(self._seqs)[self._gone :]
        return np.where(np.isin(seqs, list(self._aside)), -seqs, seqs) if self._aside else seqs

    @classmethod
    def of(cls, scores: NDArray[Any], seqs: NDArray[Any] | None = None) -> "SampleScores":
        """Go on from what a snapshot holds; without seqs no sample is known."""
        signed = np.full(len(scores), NO_SAMPLE) if seqs is None else seqs
        new = cls()
        new._seqs, new._scores = array("q", np.abs(signed).tobytes()), array("d", scores.tobytes())
        new._aside = set((-signed[signed < 0]).tolist())
        return new


def check_seqs(arrays: Arrays, name: str, n: int, next_seq: int) -> None:
    """InvalidSnapshot if the array of this name cannot be the seqs of n scores."""
    seqs = np.abs(take(arrays, name, np.int64, (n,)))
    if not n:
        return
    follows = (seqs[:-1] < seqs[1:]) | (seqs[1:] == NO_SAMPLE) & (seqs[:-1] == NO_SAMPLE)
    if not (seqs[0] >= 0 and follows.all() and seqs[-1] < next_seq):
        raise InvalidSnapshot("its scores are not of samples in their order")
