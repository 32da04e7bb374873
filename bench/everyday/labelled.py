"""People label in their own ways: a whole incident, only false alarms, only what was flagged, and wrongly."""

from functools import partial

import numpy as np

from bench.everyday.situation import (
    DELAY,
    NEVER,
    ROWS,
    Labels,
    Situation,
    host,
    marked,
    situation,
    some_rows,
    spread,
)
from core.arrays import BoolArray, FloatArray


def incidents(_rng: np.random.Generator, anomalous: BoolArray) -> Labels:
    """Every row of an incident is labelled when it is over, and nothing else ever is."""
    due = np.full(len(anomalous), NEVER)
    edges = np.flatnonzero(np.diff(anomalous.astype(int), prepend=0, append=0))
    for start, end in edges.reshape(-1, 2):
        due[start:end] = end + DELAY
    return Labels(due, anomalous)


def flagged_rows(_rng: np.random.Generator, anomalous: BoolArray) -> Labels:
    """Every flagged row is labelled, and nothing else."""
    return Labels(np.arange(len(anomalous)) + DELAY, anomalous, only_flagged=True)


def dismissals(_rng: np.random.Generator, anomalous: BoolArray) -> Labels:
    """False alarms are dismissed, and nothing else is ever labelled."""
    return Labels(np.where(anomalous, NEVER, np.arange(len(anomalous)) + DELAY), anomalous, only_flagged=True)


def first_kind(rng: np.random.Generator, anomalous: BoolArray) -> Labels:
    """Only every second anomaly is ever labelled, and a fifth of the rest."""
    labels = some_rows(rng, anomalous)
    rows = np.flatnonzero(anomalous)
    due = labels.due.copy()
    due[rows[::2]], due[rows[1::2]] = rows[::2] + DELAY, NEVER
    return Labels(due, labels.said)


def _two_features(rng: np.random.Generator) -> FloatArray:
    return np.asarray(rng.normal([40.0, 20.0], [5.0, 3.0], (ROWS, 2)), float)


@situation
def incident_labelled_in_one_go(rng: np.random.Generator) -> Situation:
    """Ten samples in a row are eight deviations off; people label these, and nothing else."""
    X = _two_features(rng)
    X[1000:1010] += [40, 24]
    return Situation(X, marked(slice(1000, 1010)), incidents)


@situation
def incidents_labelled_in_one_go(rng: np.random.Generator) -> Situation:
    """An incident of twenty samples every 500 rows; people label these, and nothing else."""
    X = _two_features(rng)
    rows = np.concatenate([np.arange(start, start + 20) for start in range(700, ROWS, 500)])
    X[rows] += [40, 24]
    return Situation(X, marked(rows), incidents)


@situation
def only_dismissals(rng: np.random.Generator) -> Situation:
    """A heavy tail raises false alarms; people dismiss these, and label nothing else."""
    X = 100 + 4 * rng.standard_t(4, (ROWS, 2))
    rows = spread(rng, 15)
    X[rows] += 100
    return Situation(X, marked(rows), dismissals)


@situation
def only_flagged_labelled(rng: np.random.Generator) -> Situation:
    """Anomalies of four to seven deviations; people label what is flagged, and nothing else."""
    X = host(rng)
    rows = spread(rng, 40)
    X[rows, 1] += 3 * rng.uniform(4, 7, len(rows))
    return Situation(X, marked(rows), flagged_rows)


@situation
def wrong_labels(rng: np.random.Generator) -> Situation:
    """Anomalies of five to eight deviations; one label of five is wrong."""
    X = host(rng)
    rows = spread(rng, 40)
    X[rows, 1] += 3 * rng.uniform(5, 8, len(rows))
    return Situation(X, marked(rows), partial(some_rows, wrong=0.2))


@situation
def one_kind_labelled(rng: np.random.Generator) -> Situation:
    """Two kinds of anomalies take turns; one kind gets labels, the other never."""
    X = _two_features(rng)
    rows = spread(rng, 40)
    X[rows[::2]] += [25, 0]
    X[rows[1::2]] += [0, -15]
    return Situation(X, marked(rows), first_kind)


@situation
def close_anomalies(rng: np.random.Generator) -> Situation:
    """Anomalies are close by, at three and a half deviations in each of two features, in three rows of a hundred."""
    X = _two_features(rng)
    rows = spread(rng, 90, 300)
    X[rows] = np.array([40.0, 20.0]) + [17, 10] + rng.normal(size=(len(rows), 2)) * [1.5, 1]
    return Situation(X, marked(rows))


@situation
def common_anomalies(rng: np.random.Generator) -> Situation:
    """A tight cluster of anomalies makes up five rows of a hundred, so that an unlabelled model learns it."""
    X = host(rng)
    rows = spread(rng, 125)
    X[rows] = [70.0, 45.0, 6e9] + rng.normal(size=(len(rows), 3)) * [1, 0.6, 4e7]
    return Situation(X, marked(rows))
