"""Flat, few-valued, mostly-zero and counted streams."""

import numpy as np

from bench.everyday.situation import ROWS, Situation, host, marked, none, signs, situation, spread


@situation
def flat(rng: np.random.Generator) -> Situation:
    """Always 3.3, but one row is 9."""
    X = np.full((ROWS, 1), 3.3)
    row = int(rng.integers(1800, 2200))
    X[row] = 9.0
    return Situation(X, marked([row]))


@situation
def flat_beside_noise(rng: np.random.Generator) -> Situation:
    """Always 3.3 beside a noisy feature; ten rows are 4."""
    X = np.stack([np.full(ROWS, 3.3), rng.normal(50, 4, ROWS)], 1)
    rows = spread(rng, 10)
    X[rows, 0] = 4.0
    return Situation(X, marked(rows))


@situation
def zeros(rng: np.random.Generator) -> Situation:
    """Always 0, but five rows are 10."""
    X = np.zeros((ROWS, 1))
    rows = spread(rng, 5, 1000)
    X[rows] = 10.0
    return Situation(X, marked(rows))


@situation
def coin_flips(rng: np.random.Generator) -> Situation:
    """1 or 2, by chance; nothing ever happens."""
    return Situation(rng.integers(1, 3, (ROWS, 1)).astype(float), none())


@situation
def few_values(rng: np.random.Generator) -> Situation:
    """A level in steps of 25, and a state of three; anomalies are levels never seen."""
    X = np.stack([rng.choice([0, 25, 50, 75, 100.0], ROWS, p=[0.1, 0.2, 0.4, 0.2, 0.1]), rng.integers(0, 3, ROWS)], 1)
    rows = spread(rng, 15)
    X[rows, 0] = rng.choice([150.0, -40.0], len(rows))
    return Situation(X, marked(rows))


@situation
def mostly_zero_counter(rng: np.random.Generator) -> Situation:
    """Bytes that are 0 in nineteen rows of twenty, beside two metrics with spikes of eight deviations."""
    X = host(rng)
    X[:, 2] = np.where(rng.random(ROWS) < 0.05, np.exp(rng.normal(10, 1, ROWS)), 0.0)
    rows = spread(rng, 25)
    X[rows, 0] += 40 * signs(rng, len(rows))
    return Situation(X, marked(rows))


@situation
def rare_errors(rng: np.random.Generator) -> Situation:
    """Errors a minute, mostly 0, with bursts of five rows of 5 to 9."""
    X = rng.poisson(0.1, (ROWS, 1)).astype(float)
    rows = np.concatenate([np.arange(start, start + 5) for start in (900, 1500, 2400)])
    X[rows] = rng.integers(5, 10, (len(rows), 1))
    return Situation(X, marked(rows))


@situation
def counts(rng: np.random.Generator) -> Situation:
    """Requests a minute, about 50; anomalies are 110 and more, or next to none."""
    X = rng.poisson(50, (ROWS, 1)).astype(float)
    rows = spread(rng, 20)
    X[rows] = np.where(rng.random((len(rows), 1)) < 0.5, rng.integers(110, 150, (len(rows), 1)), 2.0)
    return Situation(X, marked(rows))


@situation
def growing_counter(rng: np.random.Generator) -> Situation:
    """A counter that only grows, as exporters send it, beside a metric with spikes of eight deviations."""
    X = np.stack([np.cumsum(rng.normal(100, 10, ROWS)), rng.normal(30, 2, ROWS)], 1)
    rows = spread(rng, 25)
    X[rows, 1] += 16 * signs(rng, len(rows))
    return Situation(X, marked(rows))


@situation
def percentage_at_100(rng: np.random.Generator) -> Situation:
    """A success rate that is 100, or a little less in one row of ten; anomalies are 80 to 95."""
    X = np.where(rng.random((ROWS, 1)) < 0.1, 100 - rng.exponential(0.3, (ROWS, 1)), 100.0)
    rows = spread(rng, 20)
    X[rows] = rng.uniform(80, 95, (len(rows), 1))
    return Situation(X, marked(rows))


@situation
def rounded_steps(rng: np.random.Generator) -> Situation:
    """A temperature in steps of half a degree that hardly moves; anomalies are off by four degrees."""
    X = np.round(2 * (21.5 + 0.3 * rng.normal(size=(ROWS, 1)))) / 2
    rows = spread(rng, 20)
    X[rows] += 4 * signs(rng, len(rows), 1)
    return Situation(X, marked(rows))
