"""Stretches in which something is broken, and ends."""

import numpy as np

from bench.everyday.situation import DEVIATIONS, ROWS, Situation, host, marked, signs, situation, spread
from core.arrays import BoolArray, FloatArray


def _down(X: FloatArray, *starts: int, length: int) -> BoolArray:
    """Set all metrics to 0 in some stretches; return the rows."""
    rows = np.concatenate([np.arange(start, start + length) for start in starts])
    X[rows] = 0.0
    return marked(rows)


@situation
def outage(rng: np.random.Generator) -> Situation:
    """Three metrics of a host are 0 for 300 rows."""
    X = host(rng)
    return Situation(X, _down(X, 1500, length=300))


@situation
def early_fault(rng: np.random.Generator) -> Situation:
    """All metrics are off by eight deviations for 60 rows, after the first 300."""
    X = host(rng)
    X[300:360] += 8 * DEVIATIONS
    return Situation(X, marked(slice(300, 360)))


@situation
def two_outages(rng: np.random.Generator) -> Situation:
    """Three metrics of a host are 0 for 300 rows, and again 600 rows after."""
    X = host(rng)
    return Situation(X, _down(X, 1200, 2100, length=300))


@situation
def two_short_outages(rng: np.random.Generator) -> Situation:
    """One metric is 0 for 30 rows, and again 800 rows after."""
    X = rng.normal(100, 5, (ROWS, 1))
    return Situation(X, _down(X, 1000, 1830, length=30))


@situation
def degraded(rng: np.random.Generator) -> Situation:
    """Latency is five deviations higher for 150 rows."""
    X = host(rng)
    X[1500:1650, 1] += 15
    return Situation(X, marked(slice(1500, 1650)))


@situation
def recurring_fault(rng: np.random.Generator) -> Situation:
    """The same fault for ten rows, every 250 rows: two metrics are off by seven deviations."""
    X = host(rng)
    rows = np.concatenate([np.arange(start, start + 10) for start in range(600, ROWS, 250)])
    X[rows, :2] += 7 * DEVIATIONS[:2]
    return Situation(X, marked(rows))


@situation
def stuck_sensor(rng: np.random.Generator) -> Situation:
    """One of two sensors that follow each other keeps its last value for 200 rows."""
    level = 20 + np.cumsum(rng.normal(0, 0.3, ROWS)) * 0.3 + 5 * np.sin(np.arange(ROWS) / 40)
    X = np.stack([level, 2 * level], 1) + rng.normal(0, 0.1, (ROWS, 2))
    X[1500:1700, 1] = X[1499, 1]
    return Situation(X, marked(slice(1500, 1700)))


@situation
def dead_sensor(rng: np.random.Generator) -> Situation:
    """One of four sensors falls to 0 for 200 rows, and again later for 50."""
    X = rng.normal([60, 12, 340, 5], [2, 0.5, 9, 0.4], (ROWS, 4))
    rows = np.concatenate([np.arange(1500, 1700), np.arange(2500, 2550)])
    X[rows, 1] = 0.0
    return Situation(X, marked(rows))


@situation
def missing_stretch(rng: np.random.Generator) -> Situation:
    """A metric is missing for 600 rows and here and there; spikes in the others, in the stretch too."""
    X = host(rng)
    rows = spread(rng, 25)
    X[rows, 0] += 8 * DEVIATIONS[0] * signs(rng, len(rows))
    X[1200:1800, 1] = np.nan
    X[rng.random(ROWS) < 0.05, 2] = np.nan
    return Situation(X, marked(rows))
