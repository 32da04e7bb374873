"""The weighted median of all thresholds, weighted by what each would have cost."""

from collections.abc import Callable
from math import log
from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.config.config import FALSE_SHARE
from core.threshold.cuts import cost_of_cuts, cuts_between
from core.threshold.hindsight import HindsightThreshold
from core.threshold.ordinary_scores import OrdinaryScores

LEARNING_RATE: Final = 0.4
"""Of the exponential weights, a unit of c_eff. Chosen by hand."""
PRIOR_COUNT: Final = 10.0
"""Pseudo-samples. Chosen by hand."""
NEAR: Final = 1e-3
"""A chance; known anomalies that are rarer among ordinary scores tell of no hidden ones. Chosen by hand."""
SPAN: Final = 1000
RATE_PRIOR_COUNT: Final = 20
"""Known anomalies are taken to come from SPAN samples at least, and RATE_PRIOR_COUNT more. Chosen by hand."""
LEAST_WEIGHT: Final = 1e-9
"""Of a cut before any label: however far off, labels can still lead there. Chosen by hand."""
FEWEST_LABELS: Final = 20
"""With no more labels none is taken for an error. Chosen by hand."""
CHANCES: Final = np.exp(np.linspace(log(0.5), log(1e-6), 48))
"""Chances among ordinary scores whose scores are thresholds too, evenly in logs."""


class WeightedThreshold(HindsightThreshold):
    """The weighted median of all thresholds, by the weights of eq. (27): exponential weights on the real cost.

    The cost of a threshold is that on the labelled scores plus that on pseudo-samples, eq. (28), whose rate of
    anomalies is what expected_anomaly_rate or the labels say, eq. (29). Unless labels are trusted, normals count more
    by eq. (30), to make up for those that are labelled anomalous by error.

    It replaces Alg. 3, whose loss is not the real cost (measured in section 10 of docs/method.md).
    """

    def __init__(self, config: DetectorConfig) -> None:
        super().__init__(config)
        self.rate, self.labels_trusted = FALSE_SHARE * config.expected_anomaly_rate, config.labels_trusted

    def _fit(self, ordinary: OrdinaryScores, n_seen: int, age: Callable[[int], int]) -> float:
        score, step = self.labelled.steps(self.cost_anomalous, self.cost_normal)
        false_share = 0.0 if self.labels_trusted else _false_share(step)
        near = np.count_nonzero(ordinary.chances(score[step > 0]) > NEAR) - false_share * len(score)
        span = max(age(self.labelled.oldest), min(n_seen, SPAN)) + RATE_PRIOR_COUNT
        rate = min(max(self.rate, near / span), 0.5)
        denoised = (1 + false_share * self.cost_anomalous / self.cost_normal) / (1 - false_share)
        cuts = _candidates(score, ordinary)
        chance = ordinary.chances(cuts)
        cost = cost_of_cuts(cuts, score, np.where(step < 0, step * denoised, step)) + self._prior_cost(chance, rate)
        effective = self.cost_anomalous * self.cost_normal / (self.cost_anomalous + self.cost_normal)
        weight = self._prior_weight(chance, rate) * np.exp(-LEARNING_RATE / effective * (cost - cost.min()))
        total = np.cumsum(weight)
        return float(cuts[min(int(total.searchsorted(total[-1] / 2)), len(cuts) - 1)])

    def _prior_weight(self, chance: FloatArray, rate: float) -> FloatArray:
        """The weight (k,) of cuts of these chances (k,) before any label, eq. (27): most at the best one, rate."""
        best = min(rate * self.cost_anomalous / self.cost_normal, 0.5)
        weight: FloatArray = np.maximum(chance * best / (chance + best) ** 2, LEAST_WEIGHT)
        return weight

    def _prior_cost(self, chance: FloatArray, rate: float) -> FloatArray:
        """The cost (k,) that the pseudo-samples add to cuts of these chances (k,), eq. (28)."""
        missed = self.cost_anomalous * rate * np.log((rate + 1) / (rate + chance))
        cost: FloatArray = PRIOR_COUNT * (missed + self.cost_normal * (chance - rate * np.log1p(chance / rate)))
        return cost


def _false_share(step: FloatArray) -> float:
    """The share of labels taken for errors: that of "anomalous" ones, step > 0, in the lowest quarter of the scores.

    One of them is taken as right, and two more normals are counted: few labels prove no error.
    """
    if len(step) <= FEWEST_LABELS:
        return 0.0
    lowest = step[: len(step) // 4]
    return max(0.0, (np.count_nonzero(lowest > 0) - 1) / (len(lowest) + 2))


def _candidates(score: FloatArray, ordinary: OrdinaryScores) -> FloatArray:
    """Cuts (k,) between labelled scores, and at chances among ordinary ones, in rising order."""
    at_chances = [ordinary.exceeded_by(chance) for chance in CHANCES.tolist()]
    cuts: FloatArray = np.sort(np.concatenate([cuts_between(score), at_chances]), kind="stable")
    return cuts
