"""Steady streams: nothing happens, or single samples stand out."""

import numpy as np

from bench.everyday.situation import DEVIATIONS, ROWS, Situation, host, marked, none, signs, situation, spread


@situation
def clean(rng: np.random.Generator) -> Situation:
    """Three metrics of a host; nothing ever happens."""
    return Situation(host(rng), none())


@situation
def clean_heavy_tails(rng: np.random.Generator) -> Situation:
    """Two features with the tails of Student's t of 3 degrees; nothing ever happens."""
    return Situation(100 + 4 * rng.standard_t(3, (ROWS, 2)), none())


@situation
def clean_skewed(rng: np.random.Generator) -> Situation:
    """A latency with a lognormal tail; nothing ever happens."""
    return Situation(np.exp(rng.normal(3, 0.7, (ROWS, 1))), none())


@situation
def clean_whole_numbers(rng: np.random.Generator) -> Situation:
    """Whole numbers from 0 to 9; nothing ever happens."""
    return Situation(rng.integers(0, 10, (ROWS, 2)).astype(float), none())


@situation
def clean_two_modes(rng: np.random.Generator) -> Situation:
    """A machine that idles or works; nothing ever happens."""
    works = rng.random((ROWS, 1)) < 0.3
    return Situation(np.where(works, [80.0, 300.0], [10.0, 20.0]) + rng.normal(size=(ROWS, 2)) * [3, 5], none())


@situation
def spikes(rng: np.random.Generator) -> Situation:
    """One metric, with single spikes of eight deviations, up or down, in one row of a hundred."""
    rows = spread(rng, 25)
    X = rng.normal(200, 10, (ROWS, 1))
    X[rows] += 80 * signs(rng, len(rows), 1)
    return Situation(X, marked(rows))


@situation
def spikes_in_any(rng: np.random.Generator) -> Situation:
    """Three metrics of a host; in one row of a hundred one of them is off by six to ten deviations."""
    rows = spread(rng, 25)
    X = host(rng)
    feature = rng.integers(0, 3, len(rows))
    X[rows, feature] += signs(rng, len(rows)) * rng.uniform(6, 10, len(rows)) * DEVIATIONS[feature]
    return Situation(X, marked(rows))


@situation
def spikes_above_a_heavy_tail(rng: np.random.Generator) -> Situation:
    """A lognormal latency; anomalies are ten times as long as the median of the tail's last percent."""
    rows = spread(rng, 25)
    X = np.exp(rng.normal(3, 0.5, (ROWS, 1)))
    X[rows] = np.exp(3 + 0.5 * rng.uniform(5, 7, (len(rows), 1)))
    return Situation(X, marked(rows))


@situation
def spikes_between_modes(rng: np.random.Generator) -> Situation:
    """A machine that idles or works; anomalies lie in between, inside the range of both."""
    rows = spread(rng, 25)
    works = rng.random((ROWS, 1)) < 0.4
    X = np.where(works, [80.0, 300.0], [10.0, 20.0]) + rng.normal(size=(ROWS, 2)) * [3, 5]
    X[rows] = [45.0, 160.0] + rng.normal(size=(len(rows), 2)) * [3, 5]
    return Situation(X, marked(rows))


@situation
def broken_correlation(rng: np.random.Generator) -> Situation:
    """Load and power follow each other; anomalies break that, with values that each are ordinary."""
    rows = spread(rng, 25)
    load = rng.normal(50, 12, ROWS)
    power = 3 * load + rng.normal(0, 3, ROWS)
    power[rows] = 3 * (100 - load[rows]) + 45 * signs(rng, len(rows))
    return Situation(np.stack([load, power], 1), marked(rows))


@situation
def one_of_twenty(rng: np.random.Generator) -> Situation:
    """Twenty features on scales from 1e-3 to 1e6; one of them is off by ten deviations."""
    rows = spread(rng, 25)
    scale = 10.0 ** rng.uniform(-3, 6, 20)
    X = rng.normal(5, 1, (ROWS, 20))
    X[rows, rng.integers(0, 20, len(rows))] += 10 * signs(rng, len(rows))
    return Situation(X * scale, marked(rows))


@situation
def few_of_forty(rng: np.random.Generator) -> Situation:
    """Forty features that share five causes; four of them are off by five deviations."""
    rows = spread(rng, 25)
    X = rng.normal(size=(ROWS, 5)) @ rng.normal(size=(5, 40)) + rng.normal(size=(ROWS, 40))
    for row in rows:
        X[row, rng.choice(40, 4, replace=False)] += 5 * signs(rng, 4) * 2.4
    return Situation(100 + 7 * X, marked(rows))
