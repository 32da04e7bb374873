"""What labels do to scores: a sample that resembles known anomalies more than normals scores higher."""

from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.config import DetectorConfig
from core.errors import InvalidSnapshot
from core.feedback.background import CAPACITY, Background, Settled
from core.feedback.kernels import KernelRatio
from core.feedback.labelled_samples import LabelledSamples
from core.snapshot import Arrays

FEW_ANOMALIES: Final = 5.0
"""Known anomalies by which the half of it counts. Chosen by hand."""
FEWEST_NORMALS: Final = 10
FEWEST_SCORES: Final = 20
"""With fewer normals, or scores, labels change none. Chosen by hand."""
LOWEST: Final = -2.0
HIGHEST: Final = 3.0
"""Range of the log ratio. Chosen by hand."""


class Resemblance:
    """Adds to the score of a sample what labels say of samples like it, eq. (36). The paper has nothing of the kind.

    The density stays what it is; a score is -log p and what is added here. Normals are the labelled ones, filled up to
    CAPACITY with samples of late. Context counts as values do: what is like a known anomaly in another context is not
    known to be one. What is added to a sample rests on the samples and labels before it alone.

    active says whether the config wants it.
    """

    def __init__(self, config: DetectorConfig) -> None:
        self.active = config.corrects_scores
        self._labelled, self._background = LabelledSamples(config.n_columns), Background(config.n_columns)
        self._found: tuple[Settled, KernelRatio | None, float] | None = None

    def room(self, n: int) -> int:
        """How many of n samples can be raised before what they add to the background must be known."""
        return min(n, self._background.room) if self._labelled.n_anomalies else n

    def note(self, X: FloatArray, scores: FloatArray) -> None:
        """Take note of ordinary samples (n, m), as they are learned, and of their scores (n,) without what is added."""
        if self.active:
            self._background.add(X, scores)

    def note_one(self, x: FloatArray, score: float) -> None:
        """Take note of one ordinary sample (m,), as note does."""
        if self.active:
            self._background.add_one(x, score)

    def raised_one(self, x: FloatArray, score: float) -> float:
        """Add to the score of one sample (m,), as raised does. Pure."""
        if self._labelled.n_anomalies:
            return float(self.raised(x[None], np.array([score]))[0])
        return min(max(score + 0.0, -float_info.max), float_info.max)

    def raised(self, X: FloatArray, scores: FloatArray) -> FloatArray:
        """Add to the scores (n,) of samples (n, m), as they are learned. Pure."""
        with np.errstate(over="ignore"):  # a score that saturates stays where it is
            return np.clip(scores + self.added(X), -float_info.max, float_info.max)

    def added(self, X: FloatArray) -> FloatArray:
        """The nats (n,) that labels add to the scores of samples (n, m), as they are learned. Pure."""
        ratio, worth = self._fitted()
        if ratio is None:
            return np.zeros(len(X))
        added: FloatArray = worth * np.clip(ratio.log_ratio(X), LOWEST, HIGHEST)
        return added

    def nearest_anomaly(self, X: FloatArray) -> IntArray:
        """The seq of the known anomaly nearest to each sample (n, m), (n,); 0 while labels add nothing. Pure."""
        ratio, _ = self._fitted()
        return np.zeros(len(X), np.int64) if ratio is None else self._labelled.anomalous_seq[ratio.nearest(X)]

    def label(self, seq: int, label: int, x: FloatArray) -> None:
        """Learn that a sample, x (m,) as it is learned, is anomalous (+1), normal (-1) or not labelled any more (0)."""
        self._labelled.put(seq, label, x)
        self._found = None

    def renumber(self, shift: int) -> None:
        """Follow the numbers of the samples when they are numbered anew."""
        self._labelled.renumber(shift)

    def _fitted(self) -> tuple[KernelRatio | None, float]:
        """The ratio, None for want of labels or samples, and what one of it is worth, in nats."""
        if not self._labelled.n_anomalies:
            return None, 0.0
        settled = self._background.settled
        if self._found is None or self._found[0] is not settled:
            self._found = settled, *self._fit(settled)
        return self._found[1:]

    def _fit(self, settled: Settled) -> tuple[KernelRatio | None, float]:
        anomalies, normals, recent = self._labelled.anomalies, self._labelled.normals, settled.samples
        normals = np.concatenate([normals, recent[max(len(recent) + len(normals) - CAPACITY, 0) :]])
        if settled.n < FEWEST_SCORES or len(normals) < FEWEST_NORMALS:
            return None, 0.0
        worth = len(anomalies) / (len(anomalies) + FEW_ANOMALIES) * settled.spread
        return KernelRatio(anomalies, normals, settled.center), worth

    def state(self) -> dict[str, NDArray[Any]]:
        """Give the arrays of a snapshot, by name."""
        return self._labelled.state() | self._background.state()

    def check(self, arrays: Arrays) -> None:
        """Raise InvalidSnapshot if no samples and labels could have produced this state."""
        self._labelled.check(arrays)
        self._background.check(arrays)
        if not self.active and (len(arrays["labelled_seq"]) or len(arrays["background_scores"])):
            raise InvalidSnapshot("it holds labelled samples, which its config leaves out")

    def load(self, arrays: Arrays) -> None:
        """Go on from a state that check has passed."""
        self._labelled.load(arrays)
        self._background.load(arrays)
        self._found = None
