"""How well scores rank anomalies first, and what the best fixed threshold would have cost. Ties count as ties."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class FixedThreshold(NamedTuple):
    """A fixed threshold, and what its decisions cost."""

    threshold: float
    cost: float


def ranking_auc(scores: Floats, anomalous: Bools) -> float | None:
    """Give the probability that an anomaly scores above a normal sample, ties counting half; None without both kinds.

    >>> ranking_auc(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, False, True, True]))
    0.875
    """
    n_anomalous = int(anomalous.sum())
    n_normal = anomalous.size - n_anomalous
    if not n_anomalous or not n_normal:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle_ranks = counts.cumsum() - (counts - 1) / 2
    above = middle_ranks[place][anomalous].sum() - n_anomalous * (n_anomalous + 1) / 2
    return float(above / (n_anomalous * n_normal))


def average_precision(scores: Floats, anomalous: Bools) -> float | None:
    """Average the precision over the recall gained at each distinct score, from the top; None without anomalies.

    >>> round(average_precision(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])), 4)
    0.8333
    """
    if not anomalous.any():
        return None
    hits, misses = counts_from_top(scores, anomalous)
    gained = np.diff(hits, prepend=0) / hits[-1]
    return float((gained * hits / (hits + misses)).sum())


def best_fixed_threshold(scores: Floats, anomalous: Bools, cost_miss: float, cost_false_alarm: float) -> FixedThreshold:
    """Find the threshold (flag above it) that would have cost least in hindsight; the highest of several."""
    if not scores.size:
        return FixedThreshold(0.0, 0.0)
    hits, alarms = counts_from_top(scores, anomalous)
    # cut k flags the k highest distinct scores
    flagged_hits, flagged_normals = np.append(0, hits), np.append(0, alarms)
    costs = cost_miss * (hits[-1] - flagged_hits) + cost_false_alarm * flagged_normals
    cut = int(costs.argmin())
    thresholds = np.append(np.unique(scores)[::-1], np.nextafter(scores.min(), -np.inf))
    return FixedThreshold(float(thresholds[cut]), float(costs[cut]))


def counts_from_top(scores: Floats, anomalous: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the anomalies and normals at or above each distinct score, the highest first."""
    distinct, place = np.unique(-scores, return_inverse=True)
    hits = np.bincount(place, weights=anomalous, minlength=distinct.size).cumsum()
    everything = np.bincount(place, minlength=distinct.size).cumsum()
    return hits.astype(np.int64), (everything - hits).astype(np.int64)
