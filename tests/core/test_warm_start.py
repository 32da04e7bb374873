"""A detector that begins with the model of another."""

import numpy as np
import pytest

from core import Detector, DetectorConfig, InvalidConfig, NotReady, try_out
from tests.core.samples import detector
from tests.core.test_reconfigure import learned, samples
from tests.core.test_restarts import restarted

CONFIG = DetectorConfig(n_features=2)


@pytest.fixture(scope="module")
def source():
    return learned(2000, half_life_samples=700.0)


def warm(source, n_samples=200, **fields):
    return Detector.warm_started(DetectorConfig(n_features=2, **fields), source, n_samples)


@pytest.mark.parametrize("n_samples", [1, 30, 200, 10**9])
def test_the_model_counts_as_many_samples_as_it_is_worth(source, n_samples):
    before = source.to_bytes()
    model = warm(source, n_samples)
    assert source.to_bytes() == before
    count, most = model.state.density.counts[0], source.state.density.n_learned
    assert count == pytest.approx(n_samples) or n_samples > most > count
    assert (model.ready, model.n_seen, model.next_seq, model.n_flagged, model.costs().labels) == (True, 0, 1, 0, 0)
    assert model.n_nodes == source.n_nodes
    model = restarted(model)
    try_out(model)
    out = model.observe(samples(400, 3))
    assert np.isfinite(out.score).all()
    assert out.seq[0] == 1
    model.reconfigure({"cost_false_negative": 2.0})
    restarted(model).observe(samples(10))


def test_it_scores_and_decides_from_the_first_sample(source):
    model, X = warm(source, 500), samples(400, 3)
    assert np.corrcoef(model.score(X), source.score(X))[0, 1] > 0.9
    assert model.threshold < 1e3
    assert model.observe([[30.0, -30.0]]).is_anomaly[0]


def test_labels_of_its_own_samples_take_out_what_it_has_learned_of_them(source):
    counts = []
    for label in (True, False):
        model = warm(source, 200, half_life_samples=700.0, max_round=1)
        records = model.observe(samples(300, 4)).records
        model.feedback(records[250:251], [label])
        counts.append(model.state.density.counts[0])
    assert counts[1] - counts[0] == pytest.approx(0.5 ** (49 / 700), rel=1e-6)


def test_the_less_it_is_worth_the_sooner_it_follows_other_samples(source):
    X = samples(400, 3) + 4.0
    loss = [warm(source, n).observe(X).score[200:].mean() for n in (50, 20_000)]
    assert loss[0] < loss[1]


def test_batches_may_be_cut_anywhere_and_restarts_come_at_any_time(source):
    X = samples(500, 5)
    whole, cut = warm(source), warm(source)
    expected = whole.observe(X).score
    scores = []
    for part in np.split(X, [1, 7, 130, 131, 400]):
        scores.append(cut.observe(part).score)
        cut = restarted(cut)
    np.testing.assert_array_equal(np.concatenate(scores), expected)
    assert cut.to_bytes() == whole.to_bytes()


def test_features_follow_the_order_of_the_model():
    source = detector(2, features=[{"name": "a"}, {"name": "b"}])
    source.observe(samples(100))
    config = DetectorConfig(features=[{"name": "b"}, {"name": "a"}])
    model = Detector.warm_started(config, source, 50)
    assert [feature.name for feature in model.config.features] == ["a", "b"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"n_features": 3}, "n_features"),
        ({"n_features": 2, "family": "gaussian_diagonal"}, "family"),
        ({"n_features": 2, "half_life_seconds": 60}, "half_life_seconds"),
        ({"n_features": 2, "profile": "paper"}, "profile"),
        ({"n_features": 2, "max_nodes": 1}, "max_nodes"),
        ({"features": [{"name": "a"}, {"name": "b", "kind": "poisson"}]}, "features[1].kind"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(source, config, field):
    with pytest.raises(InvalidConfig) as refusal:
        Detector.warm_started(DetectorConfig(**config), source, 100)
    assert refusal.value.field == field


def test_of_one_that_is_warming_up_nothing_can_begin():
    with pytest.raises(NotReady):
        Detector.warm_started(CONFIG, detector(2), 100)


def test_the_nodes_of_the_round_under_way_count_too():
    rng = np.random.default_rng(0)
    model = Detector(DetectorConfig(n_features=2, round_growth=1.0))
    for _ in range(300):
        model.observe(0.4 * rng.normal(size=(1, 2)) + 4.0 * rng.integers(-1, 2))
        ended = Detector.from_bytes(model.to_bytes())
        ended.state.density.end_round()
        if ended.n_nodes > model.n_nodes > 1:
            break
    else:
        pytest.fail("no round would split a node")
    before, most = model.to_bytes(), model.n_nodes
    for change in (
        lambda: Detector.warm_started(DetectorConfig(n_features=2, max_nodes=most), model, 50),
        lambda: model.reconfigure({"max_nodes": most, "max_round": 100}),
    ):
        with pytest.raises(InvalidConfig) as refusal:
            change()
        assert refusal.value.field == "max_nodes"
    assert model.to_bytes() == before
