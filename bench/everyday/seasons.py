"""Streams with a day, a week, or a memory of the last rows, without and with a calendar."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.everyday.situation import ROWS, Situation, in_context, marked, signs, situation, spread
from core.arrays import FloatArray

DAY = 96
"""Rows of a day, one each quarter of an hour."""
CALENDAR: Final[dict[str, Any]] = {"calendar": {"periods": ["day", "week"]}}


def load_and_latency_of(rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    """Load in percent and latency in ms that follow a shape from 0 to 1, (n, 2)."""
    noise = rng.normal(size=(len(shape), 2)) * [3, 2]
    return np.asarray(np.stack([15 + 60 * shape, 20 + 25 * shape], 1) + noise, float)


def office_hours(hour: FloatArray, weekday: FloatArray) -> FloatArray:
    """From 0 to 1: high from 9 to 17, low at night and on weekends."""
    return np.asarray(np.clip(np.minimum(hour - 7, 19 - hour) / 2, 0, 1) * np.where(weekday < 5, 1.0, 0.15), float)


def with_swapped_hours(rng: np.random.Generator, X: FloatArray, rows: NDArray[np.intp]) -> Situation:
    """Half of the anomalies are spikes, the others have the values of half a day before."""
    swapped = rows[::2]
    X[swapped] = X[swapped - DAY // 2]
    spikes = rows[1::2]
    X[spikes] += signs(rng, len(spikes), 1) * [40, 25]
    return Situation(X, marked(rows), context=CALENDAR)


@in_context
@situation
def day_and_night(rng: np.random.Generator) -> Situation:
    """Load and latency follow the hour of the day; spikes, and night's values by day."""
    hour = np.arange(ROWS) % DAY / DAY
    X = load_and_latency_of(rng, (1 - np.cos(2 * np.pi * hour)) / 2)
    rows = spread(rng, 24, 7 * DAY)
    rows = rows[np.abs(rows % DAY - DAY // 2) < DAY // 5]
    return with_swapped_hours(rng, X, rows)


@in_context
@situation
def weekday_and_weekend(rng: np.random.Generator) -> Situation:
    """Load and latency are high in working hours from Monday to Friday; spikes, and night's values by day."""
    row = np.arange(float(ROWS))
    shape = office_hours(row % DAY / DAY * 24, row // DAY % 7)
    X = load_and_latency_of(rng, shape)
    rows = spread(rng, 60, 8 * DAY)
    rows = rows[(shape[rows] == 1.0)]
    return with_swapped_hours(rng, X, rows)


@in_context
@situation
def planned_jobs(rng: np.random.Generator) -> Situation:
    """A backup doubles disk and network every night for six rows, which is normal; spikes of one of them are not."""
    X = rng.normal([30, 200], [2, 12], (ROWS, 2))
    job = np.arange(ROWS) % DAY < 6
    X[job] += [60, 500]
    rows = spread(rng, 25)
    rows = rows[rows % DAY > 10]
    feature = rng.integers(0, 2, len(rows))
    X[rows, feature] += np.array([60.0, 500.0])[feature]
    return Situation(X, marked(rows), context=CALENDAR)


@situation
def slow_oscillation(rng: np.random.Generator) -> Situation:
    """A control loop swings with a period of 600 rows; spikes of eight deviations of the noise."""
    X = np.stack([10 * np.sin(2 * np.pi * np.arange(ROWS) / 600), np.zeros(ROWS)], 1) + rng.normal(size=(ROWS, 2))
    rows = spread(rng, 25)
    X[rows, 1] += 8 * signs(rng, len(rows))
    return Situation(X, marked(rows))


@situation
def long_memory(rng: np.random.Generator) -> Situation:
    """A metric that remembers 95 % of where it was; spikes of eight deviations of the whole."""
    x = np.zeros(ROWS)
    for t in range(1, ROWS):
        x[t] = 0.95 * x[t - 1] + rng.normal()
    rows = spread(rng, 25)
    x[rows] += 8 * 3.2 * signs(rng, len(rows))
    return Situation(100 + 5 * x[:, None], marked(rows))
