"""The thresholds of rivals that have none: by the labels that are known."""

from typing import Final

import numpy as np

from app.replay.ranking import best_fixed_threshold
from app.replay.rivals.rival import Bools, Decisions, Floats, Integers, Scorer

GROWTH: Final = 1.02
"""The threshold is chosen again when there are so many times the labels, or without an anomaly the scores."""


class CheapestCut:
    """The threshold that would have cost least on the labels known so far.

    While no anomaly is known, it is the quantile of the scores so far above which the expected share of anomalies lies.
    After `frozen_after` samples it stays as it is.
    """

    def __init__(self, costs: tuple[float, float], expected_rate: float, frozen_after: int | None = None) -> None:
        self.threshold = np.inf
        self._costs = costs
        self._rate = expected_rate
        self._frozen_after = frozen_after
        self._next_size = 0.0
        self._knows_anomaly = False

    def follow(self, scores: Floats, positions: Integers, anomalous: Bools) -> None:
        """Choose by the scores (n,) so far, NaN for none, and the labels known of some of them."""
        if self._frozen_after is not None and len(scores) > self._frozen_after:
            return
        if not self._knows_anomaly and anomalous.any():
            self._knows_anomaly, self._next_size = True, 0.0
        size = len(positions) if self._knows_anomaly else len(scores)
        if size >= self._next_size:
            self._next_size = size * GROWTH
            self._choose(scores, positions, anomalous)

    def _choose(self, scores: Floats, positions: Integers, anomalous: Bools) -> None:
        known = ~np.isnan(scores[positions])
        if anomalous[known].any():
            self.threshold = best_fixed_threshold(scores[positions[known]], anomalous[known], *self._costs).threshold
        elif not np.isnan(scores).all():
            self.threshold = float(np.nanquantile(scores, 1 - self._rate))


class Cut:
    """A rival made of a scorer and a threshold by the labels, for so many samples."""

    def __init__(self, scorer: Scorer, cut: CheapestCut, n_samples: int) -> None:
        self._scorer = scorer
        self._cut = cut
        self._scores = np.empty(n_samples)
        self._positions = np.empty(n_samples, np.int64)
        self._anomalous = np.empty(n_samples, np.bool_)
        self._n_decided = 0
        self._n_labelled = 0

    def decide(self, X: Floats, times: Floats | None) -> Decisions:
        """Decide by the threshold of now, which moves afterwards."""
        scores = self._scorer.score(X)
        flagged = scores > self._cut.threshold
        self._scores[self._n_decided : self._n_decided + len(X)] = scores
        self._n_decided += len(X)
        self._follow()
        return Decisions(scores, flagged)

    def label(self, positions: Integers, anomalous: Bools) -> None:
        """Let the threshold follow more labels."""
        new = slice(self._n_labelled, self._n_labelled + len(positions))
        self._positions[new], self._anomalous[new] = positions, anomalous
        self._n_labelled = new.stop
        self._follow()

    def _follow(self) -> None:
        labelled = slice(self._n_labelled)
        self._cut.follow(self._scores[: self._n_decided], self._positions[labelled], self._anomalous[labelled])


class Given:
    """A scorer whose scores were computed before."""

    def __init__(self, scores: Floats) -> None:
        self._scores = scores
        self._n_given = 0

    def score(self, X: Floats) -> Floats:
        """Give the next scores."""
        begin = self._n_given
        self._n_given += len(X)
        return self._scores[begin : self._n_given]
