"""The weighted median of all thresholds, weighted by what each would have cost."""

from math import atan, log
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.threshold.cuts import cost_of_cuts, cuts_between
from core.threshold.hindsight import HindsightThreshold
from core.threshold.recent_scores import WINDOW

LEARNING_RATE: Final = 0.4
PRIOR_COUNT: Final = 10.0
RATE_PRIOR_COUNT: Final = 20.0
TAILS: Final = np.exp(np.linspace(log(0.5), log(0.5 / WINDOW), 48))


class WeightedThreshold(HindsightThreshold):
    """The weighted median of all thresholds, weights exp(-LEARNING_RATE L(c) / c_eff): exponential weights, real cost.

    c_eff = C_1 C_-1 / (C_1 + C_-1). PRIOR_COUNT pseudo-samples, anomalous with chance 1 / (1 + (u / r)^2) at tail rank
    u of the recent scores, keep it from going blind when only what was flagged gets labelled; r is
    expected_anomaly_rate, or the rate that the labels prove if that is more.
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
        """Expected cost of the pseudo-samples, least at tail rank rate sqrt(C_1 / C_-1)."""
        rank = (len(recent) - recent.searchsorted(cuts, "right") + 0.5) / (len(recent) + 1)
        angle = np.arctan(rank / rate)
        missed = self.cost_anomalous * rate * (atan(1 / rate) - angle)
        cost: FloatArray = PRIOR_COUNT * (missed + self.cost_normal * (rank - rate * angle))
        return cost


def _false_share(step: FloatArray) -> float:
    """What share of the normals is falsely labelled anomalous, by the share of 'anomalous' in the lowest quarter.

    Steps of normals are then right on average if multiplied by (1 + share C_1 / C_-1) / (1 - share) (Natarajan et al.
    2013).
    """
    if len(step) <= 20:
        return 0.0
    lowest = step[: len(step) // 4]
    return max(0.0, (np.count_nonzero(lowest > 0) - 1) / (len(lowest) + 2))


def _candidates(score: FloatArray, recent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cuts between the labelled scores and at tail ranks of the recent ones, in order, with their prior mass."""
    between = cuts_between(score)
    ranks = np.clip((1 - TAILS) * (len(recent) + 1) - 1, 0, max(len(recent) - 1, 0)).astype(int)
    at_ranks = recent[ranks] if len(recent) else recent
    prior_mass = PRIOR_COUNT / (PRIOR_COUNT + len(score))
    cuts = np.concatenate([between, at_ranks])
    mass = np.concatenate([np.ones(len(between)), np.full(len(at_ranks), prior_mass)])
    order = cuts.argsort(kind="stable")
    return cuts[order], mass[order]
