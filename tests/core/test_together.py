"""Detectors that observe a sample each together say, and become, what each would alone."""

import numpy as np
import pytest

from core import KINDS, Detector, DetectorConfig, Feature, Records, observe_together
from core.families import Gaussian
from core.families.base import Prior
from core.families.statistics import Statistics
from core.families.student_stack import StudentStack
from tests.core.samples import CONTEXTS, VARIANTS, clusters, detector

N = 130
LAGS = (0, 9)
LABELS = {30: {3: True, 7: False}, 70: {50: True, 60: True, 40: False, 41: False}, 100: {60: None, 90: False}}


def stream(lag: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of a stream, some far out or with a value missing, and their times."""
    X = clusters(N, seed=lag, missing=0.04)
    X[np.isnan(X[:, [0, 2]]).all(1), 0] = 0.25
    X[25 + lag :: 31] = X[24 + lag :: 31][: len(X[25 + lag :: 31])]  # values that stand still
    X[80], X[95, 1] = 1e9, -1e200
    return X, 1e9 + np.arange(N, dtype=float)


def label(one: Detector, records: list[Records], n: int) -> None:
    for index, truth in LABELS.get(n, {}).items():
        records[index] = one.feedback(records[index], [truth]).records


def joined(records: list[Records]) -> bytes:
    return Records.concatenate(records).compact().to_bytes()


def alone(fields: dict, X: np.ndarray, times: np.ndarray) -> tuple[Detector, bytes]:
    """Observe the samples in batches, with the labels in between."""
    one, records = detector(**fields), list[Records]()
    for start, end in zip([0, *LABELS], [*LABELS, N], strict=True):
        out = one.observe(X[start:end], times[start:end]).records
        records += [out[i] for i in range(len(out))]
        label(one, records, end)
    return one, joined(records)


@pytest.mark.parametrize("beside", ["every other config", "the same config"])
def test_together_is_as_alone(beside):
    lives = [(fields, lag) for fields in (VARIANTS | CONTEXTS).values() for lag in LAGS]
    if beside == "the same config":
        lives = [({"round_growth": 0.2}, lag) for lag in range(12)]
    streams = [stream(lag) for _, lag in lives]
    detectors = [detector(**fields) for fields, _ in lives]
    found: list[list[Records]] = [[] for _ in lives]
    n_together = 0
    for n in range(N):
        samples = [X[n : n + 1] for X, _ in streams]
        told = observe_together(detectors, samples, np.array([times[n] for _, times in streams]))
        n_together += sum(records is not None for records in told)
        for one, x, records, kept in zip(detectors, samples, told, found, strict=True):
            kept.append(one.observe(x, [1e9 + n]).records if records is None else records)
            label(one, kept, n + 1)
    for (fields, _), (X, times), one, kept in zip(lives, streams, detectors, found, strict=True):
        expected, records = alone(fields, X, times)
        assert one.to_bytes() == expected.to_bytes()
        assert joined(kept) == records
    assert n_together > (0.5 if beside == "the same config" else 0.2) * N * len(lives)


@pytest.mark.parametrize("kinds", [(kind, kind) for kind in KINDS] + [("gaussian", "lognormal")])
def test_samples_one_by_one_are_as_in_a_batch_whatever_their_kinds(kinds):
    config = DetectorConfig(features=tuple(Feature(name, kind) for name, kind in zip("ab", kinds, strict=True)))
    X = np.random.default_rng(0).integers(1, 3 if "bernoulli" not in kinds else 2, (100, 2)).astype(float)
    whole, single = Detector(config), Detector(config)
    scores = whole.observe(X).score
    assert np.array_equal([single.observe(X[n : n + 1]).score[0] for n in range(100)], scores, equal_nan=True)
    assert single.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("x", [[[np.inf, 0.0]], [[np.nan, np.nan]], [[0.0, 0.0, 0.0]], [[0.0, np.nan]], [[1, 2]]])
def test_what_is_no_plain_sample_is_left_alone(x):
    ready, other = Detector(DetectorConfig(2, scaling="none")), Detector(DetectorConfig(2, scaling="none"))
    before = ready.to_bytes()
    told = observe_together([ready, other], [np.array(x), np.zeros((1, 2))], np.full(2, np.nan))
    assert told[0] is None
    assert told[1] is not None
    assert (ready.to_bytes(), other.n_seen) == (before, 1)


@pytest.mark.parametrize("time", [np.nan, np.inf, 1e16])
def test_a_time_that_is_none_is_left_alone(time):
    seconds = Detector(DetectorConfig(2, scaling="none", half_life_seconds=10.0))
    assert observe_together([seconds], [np.zeros((1, 2))], np.array([time])) == [None]
    assert observe_together([seconds], [np.zeros((1, 2))], np.array([5.0]))[0] is not None


def test_a_sample_far_out_for_narrow_nodes_is_left_alone():
    statistics, far = Statistics(2, 1, diagonal=False), np.array([[1 / 3]])
    statistics.insert(np.array([1]), far[0], np.zeros(1))
    nodes = Gaussian(1).nodes(predictive=True)
    prior = Prior(np.ones(2), np.array([[0.0], [1 / 3]]), np.ones(2), np.full((2, 1, 1), 1e-40), floor=0.0)
    nodes.update(statistics, prior, np.arange(2))
    scores = [StudentStack(nodes.row(5.0)[None], 2, 1).log_density(far * (1 + step * 1e-16)) for step in range(50)]
    assert not any(holds.any() for _, holds in scores)
    assert np.isfinite([log_density for log_density, _ in scores]).all()
