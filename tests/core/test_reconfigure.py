"""A config that changes: what was learned stays, and replays as it was, whatever changes when."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from core import CANNOT_CHANGE, Detector, DetectorConfig, InvalidConfig, Records
from core.forgetting import MOST_PAST, Forgetting
from tests.core.histories import Life, pick, same
from tests.core.samples import detector
from tests.core.test_restarts import restarted
from tests.effort import tries

OTHER: dict[str, Any] = {
    "n_features": 3,
    "calendar": {"periods": ["day"]},
    "profile": "paper",
    "scaling": "none",
    "warmup": 64,
    "family": "gaussian_diagonal",
    "mixture": "eg",
    "prior_count": 2.0,
    "drift_relative": True,
    "features": [{"name": "left"}, {"name": "right"}],
    "learn_from": "decided_normal",
    "split": "both",
    "beta": 1.5,
    "xi": 0.3,
    "round_growth": 0.2,
    "max_round": 64,
    "max_nodes": 255,
    "half_life_samples": 500.0,
    "threshold": "hindsight",
    "threshold_range": [1e-9, 1e-3],
    "cost_false_negative": 5.0,
    "cost_false_positive": 3.0,
    "expected_anomaly_rate": 0.05,
    "labels_trusted": True,
    "incident_close_samples": 3,
    "incident_close_seconds": 60.0,
    "incident_accept_samples": 50,
}
"""Another value of each field, but for those that need others beside them."""
BESIDE = {"half_life_seconds", "threshold_value"}
CHANGEABLE = [field for field in OTHER if field not in CANNOT_CHANGE]


def samples(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 8.0 * rng.integers(0, 2, size=(n, 1))
    X[rng.random(n) < 0.02] *= 5.0
    return X


def learned(n: int = 900, **given: Any) -> Detector:
    """A detector with samples, labels, a tree and a round that has begun."""
    model = detector(2, **given)
    records = model.observe(samples(n)).records
    flagged = np.flatnonzero(records.is_anomaly)
    model.feedback(records[flagged[:6]], [True, False, True, True, False, True])
    model.feedback(records[500:530], [False] * 30)
    return model


def test_each_field_can_change_or_says_why_not():
    assert {*OTHER} | BESIDE == {field.name for field in fields(DetectorConfig)}
    assert not {*CANNOT_CHANGE} & BESIDE


@pytest.mark.parametrize("field", CHANGEABLE)
def test_a_change_keeps_what_was_learned_and_can_be_saved(field):
    model = learned()
    density, n = model.log_density(samples(20, 5)), model.n_seen
    change = model.reconfigure({field: OTHER[field]})
    assert field in change.after
    assert {*change.before} == {*change.after}
    assert model.config.to_dict()[field] == change.after[field]
    assert (model.n_seen, model.costs().labels) == (n, 36)
    if field not in ("half_life_samples", "round_growth", "max_round"):  # these learn the round that has begun
        np.testing.assert_array_equal(model.log_density(samples(20, 5)), density)
    model = restarted(model)
    assert np.isfinite(model.observe(samples(300, 1)).score).all()
    restarted(model)


@pytest.mark.parametrize("field", CANNOT_CHANGE)
def test_a_field_that_cannot_change_says_why_and_changes_nothing(field):
    model = learned()
    before = model.to_bytes()
    given = {field: OTHER[field]} | ({"warmup": 0} if field == "scaling" else {})
    with pytest.raises(InvalidConfig) as refusal:
        model.reconfigure(given | {"cost_false_negative": 9.0})
    assert refusal.value.field == field
    assert refusal.value.limit.endswith(f"as it is: it cannot change, for {CANNOT_CHANGE[field]}")
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    ("config", "changes", "field", "limit"),
    [
        ({}, {"features": [{"name": "a"}, {"name": "b", "kind": "poisson"}]}, "features[1].kind", "'gaussian', as"),
        ({}, {"features": [{"name": "a"}, {"name": "b", "role": "context"}]}, "features[1].role", "'value', as"),
        ({}, {"features": [{"name": "a"}]}, "n_features", "2, as it is: it cannot change, for the model has a column"),
        (
            {},
            {"half_life_seconds": 60.0},
            "half_life_seconds",
            "left out, as it is: it cannot change, for what was learned",
        ),
        ({"half_life_seconds": 60.0}, {"half_life_seconds": None}, "half_life_seconds", "60.0, as it is"),
        ({}, {"learn_from": "labelled_normal"}, "learn_from", "'all', as it is"),
        ({}, {"max_nodes": 1}, "max_nodes", "at least "),
        ({}, {"threshold": "fixed"}, "threshold_value", "a number"),
        ({}, {"cost": 1}, "cost", "left out"),
        ({}, {"expected_anomaly_rate": 2}, "expected_anomaly_rate", "a number from"),
    ],
)
def test_what_does_not_fit_is_refused(config, changes, field, limit):
    model = learned(**config) if "half_life_seconds" not in config else detector(2, **config)
    before = model.to_bytes()
    with pytest.raises(InvalidConfig) as refusal:
        model.reconfigure(changes)
    assert refusal.value.field == field
    assert refusal.value.limit.startswith(limit)
    assert model.to_bytes() == before


def test_the_same_values_change_nothing():
    model = learned()
    before = model.to_bytes()
    assert not model.reconfigure(model.config.to_dict())
    assert not model.reconfigure({})
    assert model.to_bytes() == before


def changes_of(rng: np.random.Generator, config: DetectorConfig) -> dict[str, Any]:
    """Something that can change in a detector of any config."""
    return pick(
        rng,
        {"expected_anomaly_rate": float(rng.choice([0.001, 0.02, 0.3])), "labels_trusted": bool(rng.integers(2))},
        {"cost_false_negative": float(rng.integers(1, 9)), "cost_false_positive": float(rng.integers(1, 9))},
        {"round_growth": float(rng.choice([0.0, 0.1, 1.0])), "max_round": int(rng.choice([1, 7, 512]))},
        {"incident_close_samples": int(rng.integers(1, 9)), "incident_accept_samples": int(rng.integers(2, 30))},
        {"threshold": pick(rng, "weighted", "hindsight", "ogd")},
        {"threshold": "fixed", "threshold_value": float(rng.normal())},
        {"features": [{"name": f"n{rng.integers(9)}{i}", **of_column(config, i)} for i in range(config.n_features)]},
        half_life(rng, config),
    )


def of_column(config: DetectorConfig, i: int) -> dict[str, str]:
    return {"kind": config.kinds[i], "role": "value" if i in config.values else "context"}


def half_life(rng: np.random.Generator, config: DetectorConfig) -> dict[str, Any]:
    if config.half_life_seconds is not None:
        return {"half_life_seconds": float(rng.choice([3.0, 40.0, 3000.0]))} if config.calendar is None else {}
    return {"half_life_samples": pick(rng, None, 2.0, 30.0, 400.0)}


@pytest.mark.parametrize("seed", range(tries(8)))
def test_a_restart_after_every_event_and_change_changes_nothing(seed):
    life = Life(seed, 40)
    unbroken, broken = Detector(life.config), Detector(life.config)
    records: tuple[list, list] = [], []
    for event in life.events():
        if life.rng.random() < 0.3:
            changes = changes_of(life.rng, unbroken.config)
            assert unbroken.reconfigure(changes) == broken.reconfigure(changes)
            np.testing.assert_equal(unbroken.threshold, broken.threshold)
        assert same(event(unbroken, records[0]), event(broken, records[1]))
        broken = restarted(broken)
    assert broken.to_bytes() == unbroken.to_bytes()


@pytest.mark.parametrize("seed", range(tries(6)))
def test_however_batches_are_cut_between_changes_the_state_is_the_same(seed):
    rng = np.random.default_rng(seed)
    whole, cut = detector(2, round_growth=0.1), detector(2, round_growth=0.1)
    for _ in range(5):
        X = samples(int(rng.integers(1, 200)), int(rng.integers(99)))
        out = whole.observe(X)
        parts = np.split(X, np.sort(rng.integers(0, len(X), 3)))
        scores = np.concatenate([cut.observe(part).score for part in parts if len(part)])
        np.testing.assert_array_equal(out.score, scores)
        changes = changes_of(rng, whole.config)
        assert whole.reconfigure(changes) == cut.reconfigure(changes)
        assert whole.to_bytes() == cut.to_bytes()


# what changes mean


def test_costs_and_rates_move_the_threshold_at_once():
    model = learned()
    before = model.threshold
    model.reconfigure({"expected_anomaly_rate": 0.2})
    assert model.threshold < before
    model.reconfigure({"cost_false_positive": 100.0})
    assert model.threshold > before
    assert model.costs().cost > 100


def test_labelled_scores_outlive_another_rule_of_their_kind_but_no_fixed_threshold():
    model = learned()
    with_labels = model.threshold
    model.reconfigure({"threshold": "hindsight"})
    model.reconfigure({"threshold": "weighted"})
    assert model.threshold == with_labels
    model.reconfigure({"threshold": "fixed", "threshold_value": 4.5})
    assert model.threshold == 4.5
    change = model.reconfigure({"threshold": "weighted"})
    assert change.after == {"threshold": "weighted", "threshold_value": None}
    assert model.threshold != with_labels


def test_an_open_incident_that_the_new_config_had_closed_ends_with_the_next_ordinary_sample():
    model = detector(2)
    model.observe(samples(900))
    model.observe(np.full((3, 2), 90.0) + samples(3))
    model.observe(samples(4, 7)[:, ::-1] * 0)
    assert model.incident
    model.reconfigure({"incident_close_samples": 2})
    assert restarted(model).incident == model.incident
    out = model.observe(np.zeros((1, 2)))
    assert not out.is_anomaly[0]
    assert not model.incident


def test_a_round_that_has_begun_is_learned_as_it_began():
    model = detector(2, round_growth=1.0, max_round=512)
    model.observe(samples(600))
    learned_before = model.state.density.n_learned
    model.reconfigure({"half_life_samples": 50.0})
    assert model.state.density.n_learned > learned_before
    assert model.state.density.counts[0] == model.state.density.n_learned


FADING = [{"half_life_samples": 100.0}, {"half_life_seconds": 100.0}]


@pytest.mark.parametrize("fields", FADING)
@pytest.mark.parametrize("place", [30, 130, 220])
def test_a_label_takes_out_what_is_left_of_a_sample_whichever_half_lives_it_has_seen(fields, place):
    """A weight by the new half-life alone would take out many times what the sample still counts."""
    (name,) = fields
    X, times = samples(250), np.arange(250.0)
    X[place] = 0.5
    counts = []
    for is_anomaly in (True, False):
        model = detector(2, max_nodes=1, round_growth=0.0, scaling="none", **fields)
        records = [model.observe(X[:100], times[:100]).records]
        model.reconfigure({name: 5000.0})
        records.append(model.observe(X[100:200], times[100:200]).records)
        model.reconfigure({name: 40.0})
        records.append(model.observe(X[200:], times[200:]).records)
        if is_anomaly:
            model.feedback(Records.concatenate(records)[place : place + 1], [True])
        counts.append(model.state.density.counts[0])
    age = max(99 - place, 0) / 100 + max(199 - max(place, 99), 0) / 5000 + (249 - max(place, 199)) / 40
    assert counts[1] - counts[0] == pytest.approx(0.5**age, rel=1e-9)


def test_of_half_lives_too_many_ago_nothing_is_taken_out_again():
    clock = Forgetting(DetectorConfig(n_features=1, half_life_samples=1e6))
    for moment in range(1, MOST_PAST + 10):
        clock.advance(float(moment))
        following = Forgetting(DetectorConfig(n_features=1, half_life_samples=1e6 + moment))
        following.follow(clock)
        clock = following
    assert len(clock.past) == MOST_PAST
    weight = clock.weight(np.array([1.0, clock.past[0, 0] - 1, clock.past[0, 0], clock.now]))
    assert weight[:2].tolist() == [0.0, 0.0]
    assert (weight[2:] > 0.9).all()
