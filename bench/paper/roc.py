"""The paper's ROC: 100 runs of Alg. 3's adaptive threshold, each with other costs, each giving one point.

The density does not depend on the costs, so its scores are computed once; here only the threshold is run again, for all
costs at a time. A test holds it to core.threshold.gradient.GradientThreshold.
"""

from math import log
from typing import Final

import numpy as np
from scipy.special import expit

from core import DetectorConfig
from core.arrays import BoolArray, FloatArray

COSTS_OF_FALSE_ALARM: Final = np.arange(1, 100) / 100
"""C_-1 = i / 100, C_1 = 1. i = 0 is the limit: false alarms are free, all is flagged, (1, 1)."""
RANGE: Final = DetectorConfig(n_features=1, profile="paper").threshold_range

Roc = tuple[FloatArray, FloatArray]
"""False alarm rates and detection rates, (100,)."""


def adaptive_roc(scores: FloatArray, anomalous: BoolArray) -> Roc:
    """Both rates of each run, C_-1 = 0, 0.01 .. 0.99, over all rounds, each label revealed after its decision."""
    flagged = adaptive_flags(scores, anomalous, COSTS_OF_FALSE_ALARM)
    rates = [np.append(1.0, flagged[kind].mean(0)) for kind in (~anomalous, anomalous)]
    return rates[0], rates[1]


def adaptive_flags(scores: FloatArray, anomalous: BoolArray, costs: FloatArray) -> BoolArray:
    """Alg. 3's decisions (n, k) by the steps of eq. (24), with C_1 = 1 and k costs of a false alarm, at most 1."""
    low, high = RANGE
    tau = np.full(len(costs), np.sqrt(low) * np.sqrt(high))
    step = np.exp(2 * np.logaddexp(0.0, high - low) - (high - low)) / costs
    p = np.exp(-np.clip(scores, -log(high), -log(low)))
    flagged = np.empty((len(scores), len(costs)), bool)
    for t, (density, d) in enumerate(zip(p, np.where(anomalous, 1.0, -1.0), strict=True)):
        flagged[t] = scores[t] > -np.log(tau)
        pull = d * expit((density - tau) * d) * (1.0 if d > 0 else costs)
        tau = np.clip(tau + step / (t + 1) * pull, low, high)
    return flagged


def area_under(roc: Roc) -> float:
    """The area under the points, joined in order of both rates, from (0, 0) to (1, 1).

    >>> area_under((np.array([1.0, 0.2]), np.array([1.0, 0.8])))
    0.8
    """
    order = np.lexsort((roc[1], roc[0]))
    x, y = (np.concatenate([[0.0], rate[order], [1.0]]) for rate in roc)
    return round(float(np.trapezoid(y, x)), 12)
