"""More streams that have a context: a calendar, a load, a class of machine."""

from typing import Any, Final

import numpy as np

from bench.everyday.seasons import CALENDAR, DAY, load_and_latency_of, office_hours, with_swapped_hours
from bench.everyday.situation import QUARTER, ROWS, Situation, in_context, marked, signs, spread

BERLIN: Final[dict[str, Any]] = {"calendar": {"periods": ["day", "week"], "timezone": "Europe/Berlin"}}
BEFORE_SUMMER_TIME: Final = 1_742_166_000.0
"""Midnight of Monday 2025-03-17 in Berlin; clocks there go forward on day 13."""


@in_context
def day_and_night_with_a_memory(rng: np.random.Generator) -> Situation:
    """Load and latency follow the hour of the day, and keep 80 % of the noise before; night's values by day."""
    hour = np.arange(ROWS) % DAY / DAY
    X = load_and_latency_of(rng, (1 - np.cos(2 * np.pi * hour)) / 2)
    noise = rng.normal(size=(ROWS, 2)) * [3.6, 2.4]
    for t in range(1, ROWS):
        noise[t] += 0.8 * noise[t - 1]
    X += noise
    rows = spread(rng, 24, 7 * DAY)
    rows = rows[np.abs(rows % DAY - DAY // 2) < DAY // 5]
    X[rows] = X[rows - DAY // 2]
    return Situation(X, marked(rows), context=CALENDAR)


@in_context
def clock_change(rng: np.random.Generator) -> Situation:
    """Office hours in Berlin, where the clocks go forward on day 13; night's values by day, and spikes."""
    elapsed = QUARTER * np.arange(float(ROWS))
    local = elapsed + np.where(elapsed >= (13 * 24 + 2) * 3600, 3600.0, 0.0)
    shape = office_hours(local / 3600 % 24, local // 86400 % 7)
    X = load_and_latency_of(rng, shape)
    rows = spread(rng, 60, 8 * DAY)
    rows = rows[(shape[rows] == 1.0) & (shape[rows - DAY // 2] < 0.2)]
    swapped = with_swapped_hours(rng, X, rows)
    return Situation(X, swapped.anomalous, times=BEFORE_SUMMER_TIME + elapsed, context=BERLIN)


@in_context
def no_season(rng: np.random.Generator) -> Situation:
    """Load and latency have no season at all; spikes of six deviations of one of them."""
    X = rng.normal([40, 25], [3, 2], (ROWS, 2))
    rows = spread(rng, 25)
    feature = rng.integers(0, 2, len(rows))
    X[rows, feature] += 6 * np.array([3.0, 2.0])[feature] * signs(rng, len(rows))
    return Situation(X, marked(rows), context=CALENDAR)


@in_context
def load_and_latency(rng: np.random.Generator) -> Situation:
    """Latency follows load, which may be anything; a latency of 20 ms more than its load explains is not normal."""
    load = np.exp(rng.normal(3, 0.6, ROWS))
    latency = 20 + 1.5 * load + rng.normal(0, 3, ROWS)
    rows = spread(rng, 40)
    latency[rows] += 20
    features = [{"name": "latency"}, {"name": "load"}]
    of_load = {"features": [features[0], features[1] | {"role": "context"}]}
    return Situation(np.stack([latency, load], 1), marked(rows), config={"features": features}, context=of_load)


@in_context
def machine_classes(rng: np.random.Generator) -> Situation:
    """Three kinds of machine report temperature and power; values of another kind are not normal."""
    kind = rng.choice(3, ROWS, p=[0.6, 0.3, 0.1])
    shown = kind.copy()
    rows = spread(rng, 30)
    shown[rows] = (kind[rows] + rng.integers(1, 3, len(rows))) % 3
    usual = np.array([[40.0, 200.0], [55.0, 350.0], [75.0, 500.0]])
    X = usual[shown] + rng.normal(size=(ROWS, 2)) * [2, 15]
    features = [{"name": "temperature"}, {"name": "power"}, {"name": "class", "kind": "categorical"}]
    of_class = {"features": [*features[:2], features[2] | {"role": "context"}]}
    stream = np.column_stack([X, kind])
    return Situation(stream, marked(rows), config={"features": features}, context=of_class)
