"""The half-life: what a sample counts by the samples, or the seconds, gone since."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import Detector, DetectorConfig, InvalidObservation
from core.forgetting import Forgetting
from tests.core.samples import clusters, detector


def clock(**fields) -> Forgetting:
    return Forgetting(DetectorConfig(n_features=1, **fields))


def test_without_a_half_life_everything_counts_for_ever():
    forgetting = clock()
    assert [forgetting.advance(t) for t in (1.0, 1e9)] == [1.0, 1.0]
    assert forgetting.weight(np.array([1.0, 5e8])).tolist() == [1.0, 1.0]
    assert forgetting.memory(10**9) == 10**9


@pytest.mark.parametrize("unit", ["samples", "seconds"])
@given(st.lists(st.floats(0.0, 500.0), min_size=1, max_size=20), st.floats(1.0, 1e4))
def test_what_has_faded_is_what_its_age_says(unit, steps, half_life):
    """A half-life halves; the factors of many small steps are that of the whole."""
    forgetting = clock(**{f"half_life_{unit}": half_life})
    moments = 1.7e9 + np.cumsum([0.0, *steps])
    kept = 1.0
    for t, moment in enumerate(moments.tolist()):
        factor = forgetting.advance(moment)
        assert 0 <= factor <= 1
        kept *= factor if t else 1.0
        weight = forgetting.weight(moments[: t + 1])
        assert weight[-1] == 1.0
        assert weight[0] == pytest.approx(0.5 ** ((moment - moments[0]) / half_life), abs=1e-12)
        assert weight[0] == pytest.approx(kept, rel=1e-6, abs=1e-12)


def test_the_clock_never_goes_back():
    forgetting = clock(half_life_seconds=10.0)
    forgetting.advance(100.0)
    assert forgetting.advance(50.0) == 1.0
    assert forgetting.now == 100.0
    assert forgetting.weight(np.array([90.0, 200.0])).tolist() == [0.5, 1.0]


def test_the_memory_bounds_the_rounds():
    """A round of a hundredth of all samples would be many half-lives long."""
    forgetting = clock(half_life_samples=100.0)
    assert forgetting.memory(10) == 10
    assert forgetting.memory(10**9) == 700
    model = detector(1, half_life_samples=20.0, round_growth=0.1)
    model.observe(np.random.default_rng(0).normal(size=(400, 1)))
    assert model.state.density.room <= 2


def root(model: Detector) -> dict:
    return model.describe()["nodes"][0]


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_the_root_counts_its_samples_by_their_age(family):
    X = 0.5 * clusters(400, 2)
    X[60::50] /= 20
    scaling = {"location": [0.0, 0.0], "scale": [1.0, 1.0]}
    model = detector(2, half_life_samples=50.0, family=family, scaling=scaling, round_growth=0.0)
    model.observe(X)
    weight = 0.5 ** (np.arange(400)[::-1] / 50.0)
    assert root(model)["count"] == pytest.approx(weight.sum())
    assert np.allclose(root(model)["mean"], np.average(X, axis=0, weights=weight), atol=0.05)


def test_a_half_life_in_seconds_goes_by_the_timestamps():
    X = clusters(300, 2)
    by_samples = detector(2, half_life_samples=20.0, round_growth=0.0)
    by_seconds = detector(2, half_life_seconds=60.0, round_growth=0.0)
    by_samples.observe(X)
    by_seconds.observe(X, 1.7e9 + 3.0 * np.arange(300))
    for one, other in zip(by_samples.describe()["nodes"], by_seconds.describe()["nodes"], strict=True):
        assert one["count"] == pytest.approx(other["count"])
        assert np.allclose(one["mean"], other["mean"])
    by_seconds.observe(X[:1], [1.7e9 + 10_000.0])  # a gap of 150 half-lives: all is forgotten
    assert root(by_seconds)["count"] == pytest.approx(1.0)
    assert np.isfinite(by_seconds.score(X)).all()


def test_an_old_level_is_forgotten_and_without_a_half_life_it_is_not():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 300), rng.normal(30, 1, 300)])[:, None]
    forgetful, faithful = detector(1, half_life_samples=40.0, round_growth=0.1), detector(1)
    forgetful.observe(X)
    faithful.observe(X)
    assert abs(root(forgetful)["mean"][0] - 30) < 1
    assert 5 < root(faithful)["mean"][0] < 25
    assert forgetful.score([[0.0]])[0] > forgetful.score([[30.0]])[0] + 5


@pytest.mark.parametrize("times", [None, [1.0], [1.0, np.nan], [1.0, np.inf], [1.0, 1e16], ["a", "b"], [[1.0, 2.0]]])
def test_a_half_life_in_seconds_needs_a_time_for_every_sample(times):
    model = detector(2, half_life_seconds=10.0)
    model.observe(clusters(40, 2), np.arange(40.0))
    before = model.to_bytes()
    with pytest.raises(InvalidObservation) as caught:
        model.observe(clusters(2, 2), times)
    assert caught.value.field == "times"
    assert model.to_bytes() == before


@pytest.mark.parametrize("fields", [{"half_life_samples": 30.0}, {"half_life_seconds": 30.0}])
def test_a_faded_sample_is_retracted_by_what_it_still_counts(fields):
    X, times = clusters(300, 2), np.arange(300.0)
    model, never = detector(2, max_nodes=1, **fields), detector(2, max_nodes=1, **fields)
    records = model.observe(X, times).records
    never.observe(X, times)
    gone = records[np.array([250, 280, 290])]
    result = model.feedback(gone, [True] * 3)
    weights = 0.5 ** ((299 - np.array([250, 280, 290])) / 30.0)
    assert root(model)["count"] == pytest.approx(root(never)["count"] - weights.sum())
    model.feedback(result.records, [None] * 3)
    assert root(model)["count"] == pytest.approx(root(never)["count"])
    assert np.allclose(root(model)["covariance"], root(never)["covariance"], rtol=1e-6)
