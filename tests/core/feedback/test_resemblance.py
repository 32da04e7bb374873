"""What labels add to scores: at which rows it begins, what undoes it, and the numbers that it must bear."""

import numpy as np
import pytest

from core import Detector, DetectorConfig, Feature, InvalidSnapshot
from core.feedback.background import CAPACITY, STEP, WINDOW, Background
from core.feedback.kernels import KernelRatio
from core.feedback.labelled_samples import CAPACITY as LABELLED
from core.feedback.labelled_samples import LabelledSamples
from core.feedback.resemblance import FEWEST_NORMALS, FEWEST_SCORES, Resemblance
from tests.core.samples import clusters, detector

KNOWN = np.array([4.0, 4.0])


def resemblance(n: int, n_normals: int = 0, n_anomalies: int = 1, **fields) -> Resemblance:
    """After n ordinary samples and so many labels."""
    new = Resemblance(DetectorConfig(n_features=2, **fields))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    new.note(X, rng.normal(size=n) ** 2)
    for i in range(n_normals):
        new.label(i + 1, -1, X[i])
    for i in range(n_anomalies):
        new.label(n + i + 1, 1, KNOWN + 0.1 * i)
    return new


@pytest.mark.parametrize(
    ("n", "n_normals", "adds"),
    [
        (FEWEST_SCORES - 1, FEWEST_NORMALS, False),
        (FEWEST_SCORES, FEWEST_NORMALS - 3, False),
        (FEWEST_SCORES, FEWEST_NORMALS - 2, True),  # every 8th of 20 samples: two more
        (STEP * FEWEST_NORMALS, 0, True),
    ],
)
def test_it_begins_with_enough_normals_and_scores(n, n_normals, adds):
    assert bool(resemblance(n, n_normals).added(KNOWN[None])[0]) == adds


@pytest.mark.parametrize("fields", [{"profile": "paper", "learn_from": "all"}, {"learn_from": "labelled_normal"}])
def test_the_paper_and_labelled_normals_alone_know_nothing_of_it(fields):
    model = detector(2, scaling="none", **fields)
    records = model.observe(clusters(200, 2)).records
    model.feedback(records, [i % 5 == 0 for i in range(200)])
    X = clusters(50, 2, seed=1)
    assert np.array_equal(model.score(X), -model.log_density(X))
    assert not len(model.state.resemblance.state()["labelled_seq"])


def test_known_anomalies_rise_normals_fall_and_the_unknown_stays():
    added = resemblance(500, n_anomalies=10).added(np.array([KNOWN, [0.0, 0.0], [-30.0, 30.0]]))
    assert added[0] > 1.0
    assert added[1] < -1.0
    assert abs(added[2]) < 0.1


def test_more_known_anomalies_are_worth_more():
    few, many = (resemblance(500, n_anomalies=n).added(KNOWN[None])[0] for n in (1, 50))
    assert 0 < 3 * few < many


@pytest.mark.parametrize("label", [1, -1])
def test_a_withdrawn_label_leaves_nothing(label):
    model = resemblance(300, 20, 3)
    before = {name: array.tobytes() for name, array in model.state().items()}
    model.label(900, label, KNOWN)
    assert {name: array.tobytes() for name, array in model.state().items()} != before
    model.label(900, -label, KNOWN)
    model.label(900, 0, KNOWN)
    assert {name: array.tobytes() for name, array in model.state().items()} == before


def test_labels_of_either_kind_push_out_their_own_alone():
    kept = LabelledSamples(1)
    for seq in range(LABELLED):
        kept.put(seq, -1, np.array([0.0]))
    for seq in range(1000, 1000 + 2 * LABELLED):
        kept.put(seq, 1, np.array([1.0]))
    assert len(kept.normals) == len(kept.anomalies) == LABELLED
    assert kept.anomalous_seq.tolist() == list(range(1000 + LABELLED, 1000 + 2 * LABELLED))


def test_the_background_is_that_of_one_batch_however_it_came():
    rng = np.random.default_rng(1)
    X, scores = rng.normal(size=(5000, 3)), rng.normal(size=5000)
    whole, parts = Background(3), Background(3)
    done = 0
    while done < 5000:
        n = int(rng.integers(0, 70))
        parts.add(X[done : done + n], scores[done : done + n])
        whole.add(X[done : done + n][:0], scores[:0])
        done += n
    whole.add(X, scores)
    for name, array in whole.state().items():
        assert np.array_equal(array, parts.state()[name]), name
    settled = whole.settled
    assert np.array_equal(settled.samples, parts.settled.samples)
    assert (len(settled.samples), settled.n) == (CAPACITY, 5000 - 5000 % 256)
    last = np.sort(scores[settled.n - WINDOW : settled.n])
    assert settled.spread == parts.settled.spread == pytest.approx(np.quantile(last, 0.9) - np.median(last))


def test_a_background_of_another_size_is_refused():
    kept = Background(2)
    kept.add(np.zeros((100, 2)), np.zeros(100))
    for name in ("background_x", "background_scores"):
        with pytest.raises(InvalidSnapshot):
            kept.check(kept.state() | {name: kept.state()[name][1:]})


@pytest.mark.parametrize("width", [5, 16, 250, 263])
def test_a_row_has_the_same_ratio_in_any_company(width):
    """Where the known samples stood column by column in memory, the last bits depended on the place in a block."""
    rng = np.random.default_rng(width)
    ratio = KernelRatio(rng.normal(size=(13, 3)) + 3, rng.normal(size=(width, 3)), np.zeros(3))
    X = rng.normal(size=(100, 3))
    together = ratio.log_ratio(X)
    assert all(ratio.log_ratio(X[i : i + 1])[0] == together[i] for i in range(100))


@pytest.mark.parametrize("edge", [1e-300, 1e15, 1e100, 1e154, 1.7e308])
def test_scores_stay_numbers_whatever_is_labelled(edge):
    """Squares of 1e100, over a width of 1e-6, and the square of that, are no doubles."""
    X = clusters(300, 2)
    X[50::20] = [edge, -edge]
    model = detector(2)
    records = model.observe(X).records
    model.feedback(records[50::20], [True] * len(X[50::20]))
    model.feedback(records[51:200:20], [False] * len(X[51:200:20]))
    for rows in (X, -X, 0.1 * X):
        assert np.isfinite(model.observe(rows).score).all()
        assert np.isfinite(model.explain(rows).labels_contribution).all()
    assert Detector.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_flat_data_has_a_width():
    model = detector(2)
    X = np.tile([5.0, 7.0], (200, 1))
    X[::20] = [5.0, 8.0]
    records = model.observe(X).records
    model.feedback(records[::20], [True] * 10)
    assert np.isfinite(model.score(X)).all()
    assert model.score([[5.0, 8.0]])[0] > model.score([[5.0, 7.0]])[0]


def test_categories_and_missing_values_resemble_by_their_coordinates():
    rng = np.random.default_rng(2)
    model = Detector(DetectorConfig(features=(Feature("code", "categorical"), Feature("size", "lognormal"))))
    X = np.column_stack([rng.integers(0, 3, 400), rng.lognormal(size=400)]).astype(float)
    bad = rng.random(400) < 0.1
    X[bad, 0] = 5.0
    X[::9, 1] = np.nan
    records = model.observe(X).records
    model.feedback(records[100:], bad[100:].tolist())
    found = model.explain([[5.0, 1.0], [5.0, np.nan], [1.0, 1.0]])
    assert (found.labels_contribution[:2] > 0.5).all()
    assert found.labels_contribution[2] < -0.5


def test_the_density_is_whatever_labels_say_of_scores():
    model = detector(2)
    X = clusters(400, 2)
    records = model.observe(X).records
    model.feedback(records[150:160], [False] * 10)  # they were learned, and stay
    before = model.log_density(X)
    model.state.resemblance.label(9999, 1, np.zeros(2))
    assert np.array_equal(model.log_density(X), before)
    assert not np.array_equal(model.score(X), -before)


def test_a_dry_run_says_what_the_next_samples_get():
    model = detector(2)
    X = clusters(300, 2)
    records = model.observe(X).records
    model.feedback(records[100:200], [i % 10 == 0 for i in range(100)])
    row = clusters(1, 2, seed=9)
    expected = model.score(row)
    assert np.array_equal(model.score(row), expected)
    assert np.array_equal(model.observe(row).score, expected)
