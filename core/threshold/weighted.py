"""The weighted median of all thresholds, weighted by what each would have cost."""

from math import atan, log
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.threshold.cuts import cost_of_cuts, cuts_between
from core.threshold.hindsight import HindsightThreshold
from core.threshold.recent_scores import WINDOW

LEARNING_RATE: Final = 0.4
"""Of the exponential weights, a unit of c_eff. Chosen by hand."""
PRIOR_COUNT: Final = 10.0
"""Pseudo-samples. Chosen by hand."""
RATE_PRIOR_COUNT: Final = 20.0
"""Samples at the expected rate that the proven rate starts with. Chosen by hand."""
FEWEST_LABELS: Final = 20
"""With no more labels none is taken for an error. Chosen by hand."""
TAILS: Final = np.exp(np.linspace(log(0.5), log(0.5 / WINDOW), 48))
"""Tail ranks of the recent scores that are thresholds too: from the median to the largest, evenly in logs."""


class WeightedThreshold(HindsightThreshold):
    """The weighted median of all thresholds, by the weights of eq. (27): exponential weights on the real cost.

    The cost of a threshold is that on the labelled scores plus that on pseudo-samples, eq. (28), whose rate of
    anomalies is expected_anomaly_rate or what the labels prove, eq. (29), if that is more. Unless labels are trusted,
    normals count more by eq. (30), to make up for those that are labelled anomalous by error.

    It replaces Alg. 3, whose loss is not the real cost (measured in section 10 of docs/method.md).
    """

    def _fit(self) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        false_share = 0.0 if self.labels_trusted else _false_share(step)
        denoised = (1 + false_share * self.cost_anomalous / self.cost_normal) / (1 - false_share)
        step = np.where(step < 0, step * denoised, step)
        proven = self.labelled.anomaly_rate(self.rate, RATE_PRIOR_COUNT, false_share)
        recent = np.array(self.recent.ordered)
        cuts, mass = _candidates(score, recent)
        cost = cost_of_cuts(cuts, score, step) + self._prior_cost(cuts, recent, min(max(self.rate, proven), 0.5))
        effective = self.cost_anomalous * self.cost_normal / (self.cost_anomalous + self.cost_normal)
        weight = np.cumsum(mass * np.exp(-LEARNING_RATE / effective * (cost - cost.min())))
        return float(cuts[min(int(weight.searchsorted(weight[-1] / 2)), len(cuts) - 1)])

    def _prior_cost(self, cuts: FloatArray, recent: FloatArray, rate: float) -> FloatArray:
        """The cost (k,) that the pseudo-samples add to each cut (k,), eq. (28)."""
        rank = (len(recent) - recent.searchsorted(cuts, "right") + 0.5) / (len(recent) + 1)
        angle = np.arctan(rank / rate)
        missed = self.cost_anomalous * rate * (atan(1 / rate) - angle)
        cost: FloatArray = PRIOR_COUNT * (missed + self.cost_normal * (rank - rate * angle))
        return cost


def _false_share(step: FloatArray) -> float:
    """The share of labels taken for errors: that of "anomalous" ones, step > 0, in the lowest quarter of the scores.

    One of them is taken as right, and two more normals are counted: few labels prove no error.
    """
    if len(step) <= FEWEST_LABELS:
        return 0.0
    lowest = step[: len(step) // 4]
    return max(0.0, (np.count_nonzero(lowest > 0) - 1) / (len(lowest) + 2))


def _candidates(score: FloatArray, recent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cuts (k,) between labelled scores and at tail ranks of recent ones, in rising order, and their mass (k,)."""
    between = cuts_between(score)
    ranks = np.clip((1 - TAILS) * (len(recent) + 1) - 1, 0, max(len(recent) - 1, 0)).astype(int)
    at_ranks = recent[ranks] if len(recent) else recent
    prior_mass = PRIOR_COUNT / (PRIOR_COUNT + len(score))
    cuts = np.concatenate([between, at_ranks])
    mass = np.concatenate([np.ones(len(between)), np.full(len(at_ranks), prior_mass)])
    order = cuts.argsort(kind="stable")
    return cuts[order], mass[order]
