"""A restart changes nothing: a detector saved and loaded after every event says what one says that never stopped."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import Detector, InvalidState
from tests.core.histories import Life, is_finite, same
from tests.core.samples import detector
from tests.effort import tries

N_LIVES = int(os.environ.get("ITAN_TEST_HISTORIES", tries(24)))
N_EVENTS = int(os.environ.get("ITAN_TEST_HISTORY_EVENTS", "50"))
"""Set both higher to look for longer: `ITAN_TEST_HISTORIES=2000 ITAN_TEST_HISTORY_EVENTS=200`."""


def restarted(detector: Detector) -> Detector:
    """The detector that comes back from a snapshot, which is the same again when it is saved."""
    blob = detector.to_bytes()
    back = Detector.from_bytes(blob)
    assert back.to_bytes() == blob
    return back


def live_through(life: Life) -> None:
    unbroken, broken = Detector(life.config), Detector(life.config)
    records: tuple[list, list] = [], []
    for t, event in enumerate(life.events()):
        expected, got = event(unbroken, records[0]), event(broken, records[1])
        assert same(expected, got), (life.config, t)
        assert is_finite(got, broken), (life.config, t)
        broken = restarted(broken)
    assert broken.to_bytes() == unbroken.to_bytes()


@pytest.mark.parametrize("seed", range(N_LIVES))
def test_a_snapshot_after_every_event_changes_nothing(seed):
    live_through(Life(seed, N_EVENTS))


def test_in_some_of_these_lives_labels_add_to_scores():
    active = 0
    for seed in range(20):
        life = Life(seed, N_EVENTS)
        model, records = Detector(life.config), []
        for event in life.events():
            event(model, records)
        active += bool(model.ready and model.state.resemblance.added(np.zeros((1, life.config.n_columns)))[0])
    assert active > 1


def labelled_outlier(*, cut: bool) -> np.ndarray:
    """Scores after 400 labelled normals, an odd one that was held back and is learned now, and 20 more."""
    rng = np.random.default_rng(0)
    model = detector(2)
    X = rng.normal(size=(900, 2))
    X[300:] += np.where(rng.random((600, 1)) < 0.5, 20, 0)
    out = model.observe(X).records
    near = np.flatnonzero(X[:, 0] < 5)
    model.feedback(out[near[:400]], [False] * 400)
    model.feedback(model.observe([[25.0, 25.0]]).records, [False])
    if cut:
        model = restarted(model)
    model.feedback(out[near[400:420]], [False] * 20)
    return model.observe(rng.normal(size=(300, 2))).score


def test_an_outlier_labelled_normal_is_drawn_in_once():
    """It lies pending as the first model learned it; loading it by another look drew it in a second time."""
    assert np.array_equal(labelled_outlier(cut=True), labelled_outlier(cut=False))


# weights that fade to nothing

HALF_LIVES = [
    {"half_life_samples": 1.0, "max_nodes": 1},
    {"half_life_samples": 1.0, "max_nodes": 3, "profile": "paper", "learn_from": "all", "round_growth": 0.3},
    {"half_life_samples": 1.0, "max_nodes": 1, "family": "gaussian_diagonal", "mixture": "eg"},
    {"half_life_seconds": 60.0},
    {"half_life_seconds": 60.0, "profile": "paper", "learn_from": "all"},
    {"half_life_seconds": 60.0, "profile": "paper", "learn_from": "labelled_normal", "mixture": "soft_bayes"},
    {"half_life_seconds": 60.0, "learn_from": "decided_normal", "round_growth": 0.2, "split": "both", "beta": 1.2},
]


@pytest.mark.parametrize("fields", HALF_LIVES)
def test_labels_thousands_of_half_lives_late_have_nothing_to_add_or_take(fields):
    """They were divided by weights of 0: scores were NaN from then on, and the snapshot could not be read."""
    model = detector(2, **fields)
    rng = np.random.default_rng(0)
    first = [True, True, False, False, None, None]
    old = model.observe(rng.normal(size=(100, 2)), 1e9 + np.arange(100.0)).records[50:56]
    old = model.feedback(old, first).records
    n = 1200 if "half_life_samples" in fields else 40
    late = 1e9 + 100 + 2000 * 60 + np.arange(float(n))
    model.observe(rng.normal(size=(n, 2)), late)
    for then in ([None, False, None, True, True, False], first):
        old = model.feedback(old, then).records
        out = model.observe(rng.normal(size=(20, 2)), np.full(20, late[-1]))
        assert np.isfinite(out.score).all()
        assert np.isfinite(out.threshold).all()
        model = restarted(model)
    assert np.isfinite(model.score(rng.normal(size=(20, 2)))).all()


@pytest.mark.parametrize("fields", HALF_LIVES)
def test_a_pause_of_a_thousand_half_lives_can_be_read_back(fields):
    """The centroids of the paper's 2-means had counts that faded to nothing, which no snapshot may hold."""
    model = detector(2, **fields)
    rng = np.random.default_rng(0)
    records = model.observe(rng.normal(size=(200, 2)), 1e9 + np.arange(200.0)).records
    model.feedback(records, [False] * 200)
    X, after = rng.normal(size=(5, 2)), 1e9 + 17 * 3600 + np.arange(5.0)
    for each in (model, twin := restarted(model)):
        each.feedback(each.observe(X, after).records, [False] * 5)
    assert np.array_equal(restarted(model).score(X), twin.score(X))


def test_what_has_faded_to_nothing_stays_as_it_is_when_its_sample_is_taken_out():
    model = detector(2, half_life_seconds=60.0)
    X = np.random.default_rng(0).normal(size=(300, 2))
    old = model.observe(X[:200], 1e9 + np.arange(200.0)).records[150]
    model.observe(X[200:], 2e9 + np.arange(100.0))
    model.feedback(old, [False])  # ends the round
    before = model.state.density.nodes.statistics.state("node")
    before = {name: array.copy() for name, array in before.items()}
    assert model.feedback(model.feedback(old, [False]).records, [True]).retracted[0]
    for name, array in model.state.density.nodes.statistics.state("node").items():
        assert np.array_equal(array, before[name]), name


@pytest.mark.parametrize("unit", [1e-150, 1e-160, 1e-162, 1e-300])
@pytest.mark.parametrize(
    "fields", [{"profile": "paper", "learn_from": "all"}, {"scaling": "none", "split": "scheduled"}]
)
def test_cuts_between_samples_that_differ_by_next_to_nothing_can_be_read_back(fields, unit):
    """Squares of 1e-160 have few digits left: the normal of the cut was no unit vector."""
    model = detector(2, **fields)
    rng = np.random.default_rng(0)
    model.observe(unit * (rng.normal(size=(300, 2)) + np.where(rng.random((300, 1)) < 0.5, 3.0, 0.0)))
    restarted(model)


# states that could not be read back

SPOILT: dict[str, Callable[[Detector], Any]] = {
    "a count that is no number": lambda model: model.state.density.nodes.statistics.count.fill(np.nan),
    "a mean beyond all samples": lambda model: model.state.density.nodes.statistics.mean.fill(1e200),
    "a variance below zero": lambda model: model.state.density.nodes.statistics.scatter.fill(-1.0),
    "weights that do not sum to one": lambda model: model.state.density.mixture.weights.fill(0.7),
    "a label count of another type": lambda model: setattr(model.state.costs, "decided", [0.5, 1.5]),
    "a clock ahead of its samples": lambda model: setattr(model.state.density.forgetting, "now", 1e6),
    "a warm-up with an infinity": lambda model: model.state.warmup.rows["x"].fill(np.inf),
    "sequence numbers that go back": lambda model: setattr(model.state, "next_seq", 0),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_state_that_could_not_be_read_back_is_not_written(spoil):
    model = detector(2, half_life_samples=500.0)
    records = model.observe(np.random.default_rng(0).normal(size=(100, 2))).records
    model.feedback(records[50:], [False] * 50)
    blob = model.to_bytes()
    spoil(model)
    with pytest.raises(InvalidState):
        model.to_bytes()
    assert Detector.from_bytes(blob).to_bytes() == blob
