"""Streams whose level, spread or unit changes for good: the first row is news, then it is normal."""

import numpy as np

from bench.everyday.situation import DEVIATIONS, ROWS, Situation, host, marked, signs, situation, spread
from core.arrays import FloatArray

CHANGE = 1500
LATER = 2000
"""The change, and the row from which single spikes come again."""


def _spikes(rng: np.random.Generator, X: FloatArray, size: FloatArray | float) -> list[int]:
    """Add ten spikes to the first feature before the change and ten later; their rows."""
    rows = np.concatenate([spread(rng, 10, 500, CHANGE - 100), spread(rng, 10, LATER)])
    X[rows, 0] += signs(rng, len(rows)) * size
    return [int(row) for row in rows]


def _shift(rng: np.random.Generator, deviations: float) -> Situation:
    X = host(rng)
    X[CHANGE:] += deviations * DEVIATIONS
    return Situation(X, marked([*_spikes(rng, X, 10 * DEVIATIONS[0]), CHANGE]))


@situation
def level_shift_up(rng: np.random.Generator) -> Situation:
    """Three metrics rise by six deviations for good; spikes before and after."""
    return _shift(rng, 6.0)


@situation
def level_shift_down(rng: np.random.Generator) -> Situation:
    """Three metrics fall by six deviations for good; spikes before and after."""
    return _shift(rng, -6.0)


@situation
def level_shift_small(rng: np.random.Generator) -> Situation:
    """Three metrics rise by three deviations for good; spikes before and after."""
    return _shift(rng, 3.0)


@situation
def level_shift_large(rng: np.random.Generator) -> Situation:
    """Three metrics rise by thirty deviations for good; spikes before and after."""
    return _shift(rng, 30.0)


@situation
def spread_grows(rng: np.random.Generator) -> Situation:
    """The spread triples for good; spikes before and after."""
    X = rng.normal(200, 10, (ROWS, 2))
    X[CHANGE:] = 200 + 3 * (X[CHANGE:] - 200)
    size = np.where(np.arange(20) < 10, 80.0, 240.0)
    return Situation(X, marked(_spikes(rng, X, size)))


@situation
def spread_shrinks(rng: np.random.Generator) -> Situation:
    """The spread falls to a fifth for good; then spikes of ten of the new deviations, two of the old, count."""
    X = rng.normal(200, 10, (ROWS, 2))
    X[CHANGE:] = 200 + (X[CHANGE:] - 200) / 5
    size = np.where(np.arange(20) < 10, 80.0, 20.0)
    return Situation(X, marked(_spikes(rng, X, size)))


@situation
def drift(rng: np.random.Generator) -> Situation:
    """A metric rises by 25 deviations over the whole stream; spikes."""
    X = rng.normal(200, 10, (ROWS, 2))
    X[:, 0] += np.linspace(0, 250, ROWS)
    return Situation(X, marked(_spikes(rng, X, 100.0)))


@situation
def random_walk(rng: np.random.Generator) -> Situation:
    """A metric wanders, a tenth of a deviation a row; spikes."""
    X = rng.normal(200, 10, (ROWS, 2))
    X[:, 0] += np.cumsum(rng.normal(0, 1, ROWS))
    return Situation(X, marked(_spikes(rng, X, 100.0)))


@situation
def unit_change(rng: np.random.Generator) -> Situation:
    """From one row on a latency is in ms instead of seconds; spikes before and after."""
    X = host(rng)
    X[:, 0] = rng.normal(0.3, 0.02, ROWS)
    X[CHANGE:, 0] *= 1000
    size = np.where(np.arange(20) < 10, 0.2, 200.0)
    return Situation(X, marked([*_spikes(rng, X, size), CHANGE]))


@situation
def rough_start(rng: np.random.Generator) -> Situation:
    """A start-up of 64 rows around 5000, then calm at 100 with deviation 0.5; spikes of 20 of these."""
    X = np.stack([rng.normal(100, 0.5, ROWS), rng.normal(0, 1, ROWS)], 1)
    X[:64, 0] = rng.normal(5000, 1000, 64)
    rows = spread(rng, 20)
    X[rows, 0] += 10 * signs(rng, len(rows))
    return Situation(X, marked(rows))


def _wake_up(rng: np.random.Generator, unit: float) -> Situation:
    X = host(rng)
    X[:, 2] = np.where(np.arange(ROWS) < 300, 0.0, unit * rng.normal(0, 1, ROWS))
    rows = spread(rng, 25)
    X[rows, rng.integers(0, 2, len(rows))] += 8 * 5.0 * signs(rng, len(rows))
    return Situation(X, marked([*rows, 300]))


@situation
def wake_up(rng: np.random.Generator) -> Situation:
    """A feature is 0 for 300 rows, then N(0, 1); spikes of eight deviations in the others."""
    return _wake_up(rng, 1.0)


@situation
def wake_up_in_a_tiny_unit(rng: np.random.Generator) -> Situation:
    """The same, in a unit in which its scale is 1e-6."""
    return _wake_up(rng, 1e-6)


@situation
def wake_up_in_a_huge_unit(rng: np.random.Generator) -> Situation:
    """The same, in a unit in which its scale is 1e6."""
    return _wake_up(rng, 1e6)
