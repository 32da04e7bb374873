"""What the stream is like of late: some of its samples, and how far scores spread before labels change them."""

from array import array
from functools import cached_property
from math import log
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

STEP: Final = 8
CAPACITY: Final = 256
"""Every sample of this number is kept, and so many of them. Chosen by hand."""
WINDOW: Final = 1000
"""Scores that are kept. Chosen by hand."""
GONE: Final = 256
"""Scores beyond them that may stay for a while."""
SETTLE_EVERY: Final = 256
SETTLE_SHARE: Final = 16
LARGEST_SCORE: Final = 1e300
"""Scores are clipped here, so that their differences are numbers."""

Rows = TypeVar("Rows", FloatArray, "array[float]")


class Background:
    """The last scores, and every STEP-th sample, counted from the first one on.

    Samples settle a few together, so that what is computed of them lasts: one by one at first, in the end SETTLE_EVERY
    at a time. When they do depends on their number alone, never on how a caller cuts its batches.

    >>> background = Background(n_features=1)
    >>> background.add(np.arange(101.0)[:, None], np.arange(101.0))
    >>> settled = background.settled
    >>> settled.n, settled.samples[:2].tolist(), round(settled.spread, 1)
    (100, [[7.0], [15.0]], 39.6)
    """

    def __init__(self, n_features: int) -> None:
        self.n = 0
        self._n_features = n_features
        self._x, self._scores = array("d"), array("d")
        """The values of the samples, one after another, and the scores."""
        self._settled: Settled | None = None

    @property
    def room(self) -> int:
        """With how many more samples some settle."""
        return _step(self.n) - self.n % _step(self.n)

    @property
    def settled(self) -> "Settled":
        """The samples and scores that settled last."""
        if self._settled is None or self._settled.n != _settled(self.n):
            X, scores = self._kept_samples(), np.array(self._kept_scores())
            X, scores = X[: len(X) - _waiting(self.n, STEP)], scores[: len(scores) - _waiting(self.n)]
            self._settled = Settled(_settled(self.n), X, scores)
        return self._settled

    def add(self, X: FloatArray, scores: FloatArray) -> None:
        """Take in samples (n, m) and their scores (n,)."""
        self._x.frombytes(X[STEP - 1 - self.n % STEP :: STEP].tobytes())
        self._scores.frombytes(np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE).tobytes())
        self.n += len(X)
        self._trim()

    def add_one(self, x: FloatArray, score: float) -> None:
        """Take in one sample (m,) and its score, as add does."""
        if self.n % STEP == STEP - 1:
            self._x.frombytes(x.tobytes())
        self._scores.append(min(max(score, -LARGEST_SCORE), LARGEST_SCORE))
        self.n += 1
        self._trim()

    def _trim(self) -> None:
        if len(self._scores) > WINDOW + SETTLE_EVERY + GONE:
            self._x, self._scores = array("d", self._kept_samples().tobytes()), self._kept_scores()

    def _kept_samples(self) -> FloatArray:
        """Those samples (k, m) that wait, and those that settled before them."""
        return _kept(np.array(self._x).reshape(-1, self._n_features), _waiting(self.n, STEP), CAPACITY)

    def _kept_scores(self) -> "array[float]":
        return _kept(self._scores, _waiting(self.n), WINDOW)

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {
            "background_count": np.array([self.n]),
            "background_x": self._kept_samples(),
            "background_scores": np.array(self._kept_scores()),
        }

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if these cannot be its arrays."""
        n = int(take(arrays, "background_count", np.int64, (1,))[0])
        n_x = len(take(arrays, "background_x", np.float64, (-1, self._n_features)))
        n_scores = len(take(arrays, "background_scores", np.float64, (-1,)))
        if not (
            0 <= n < 2**53
            and n_scores == min(_settled(n), WINDOW) + _waiting(n)
            and n_x == min(_settled(n) // STEP, CAPACITY) + _waiting(n, STEP)
        ):
            raise InvalidSnapshot("its background is not as large as it has seen")

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        self.n = int(arrays["background_count"][0])
        self._x, self._scores = (array("d", arrays[f"background_{part}"].tobytes()) for part in ("x", "scores"))
        self._settled = None


class Settled:
    """Samples (k, m) and scores, in order, after n of them settled."""

    def __init__(self, n: int, samples: FloatArray, scores: FloatArray) -> None:
        self.n, self.samples, self._scores = n, samples, scores

    @cached_property
    def spread(self) -> float:
        """By how many nats the 90 % quantile of the scores, at least one, is above their median.

        It is no more than the 75 % quantile lets expect of an exponential tail: a fifth of them may be of a time that
        is over.
        """
        half, quarter, high = np.quantile(self._scores, (0.5, 0.75, 0.9)).tolist()
        return float(min(high - half, (quarter - half) * log(5) / log(2)))

    @cached_property
    def center(self) -> FloatArray:
        """The median of the samples, at least one, (m,)."""
        center: FloatArray = np.median(self.samples, 0)
        return center


def _step(n: int) -> int:
    """How many samples settle together after n of them; no larger step begins between its multiples."""
    return 1 << max(min(n // SETTLE_SHARE, SETTLE_EVERY).bit_length() - 1, 0)


def _settled(n: int) -> int:
    """How many of n samples have settled."""
    return n - n % _step(n)


def _waiting(n: int, step: int = 1) -> int:
    """How many of those n samples that are a multiple of step have not settled yet."""
    return n // step - _settled(n) // step


def _kept(rows: Rows, waiting: int, most: int) -> Rows:
    """The rows that wait, and the most that settled before them."""
    return rows[max(len(rows) - waiting - most, 0) :]
