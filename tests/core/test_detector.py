"""The face of core: who is learned, what a label does, and that nothing refused leaves a trace."""

import itertools
import sys

import numpy as np
import pytest

from core import Detector, DetectorConfig, InvalidObservation, NotReady
from core.records.layout import LEARNED, NOT_LEARNED, RETRACTED
from tests.core.samples import clusters, detector

LABELS: dict[bool | None, int] = {None: 0, False: -1, True: 1}


def wanted(learn_from: str, label: bool | None, flagged: bool) -> bool:
    """The truth table of learn_from: is a sample of this label and decision part of the density?"""
    if label is not None:
        return not label
    return {"all": True, "decided_normal": not flagged, "labelled_normal": False}[learn_from]


def root(model: Detector) -> float:
    return model.describe()["nodes"][0]["count"]


def flagging(learn_from: str, flagged: bool) -> Detector:
    """A detector that flags everything, or nothing, and learns each sample at once."""
    value = -1e9 if flagged else 1e9
    return detector(
        2, learn_from=learn_from, scaling="none", round_growth=0.0, threshold="fixed", threshold_value=value
    )


@pytest.mark.parametrize("learn_from", ["all", "decided_normal", "labelled_normal"])
@pytest.mark.parametrize("flagged", [False, True])
@pytest.mark.parametrize("labels", list(itertools.product(LABELS, LABELS)))
def test_who_is_learned_by_learn_from_decision_label_and_revision(learn_from, flagged, labels):
    model = flagging(learn_from, flagged)
    model.feedback(model.observe([[0.5, -0.5], [1.0, 0.0], [0.0, 1.0]]).records, [False] * 3)
    assert root(model) == 3
    out = model.observe([[0.2, 0.1]])
    assert out.is_anomaly[0] == flagged
    present = wanted(learn_from, None, flagged)
    assert root(model) == 3 + present
    records, old = out.records, None
    for label in labels:
        result = model.feedback(records, [label])
        records, before, present = result.records, present, wanted(learn_from, label, flagged)
        assert root(model) == 3 + present
        assert result.retracted.tolist() == [before and not present]
        assert records.label.tolist() == [LABELS[label]]
        statuses = {LEARNED} if present else {NOT_LEARNED, RETRACTED}
        assert set(records.rows["status"].tolist()) <= statuses
        name = (
            "duplicate"
            if label == old
            else "withdrawn"
            if label is None
            else "revised"
            if old is not None
            else "applied"
        )
        assert result.outcome == [name]
        old = label


@pytest.mark.parametrize("variant", [{}, {"family": "gaussian_diagonal"}, {"profile": "paper", "learn_from": "all"}])
def test_a_retracted_sample_leaves_all_statistics_and_restoring_brings_it_back(variant):
    X = clusters(400, 2, missing=0.05)
    model = detector(2, **variant)
    records = model.observe(X).records
    model.feedback(records[399], [True])
    before = model.describe()
    chosen = np.array([60, 77, 130, 200, 231, 350])
    gone = model.feedback(records[chosen], [True] * 6)
    assert gone.retracted.all()
    assert root(model) == before["nodes"][0]["count"] - 6
    back = model.feedback(gone.records, [None] * 6)
    assert not back.retracted.any()
    for was, now in zip(before["nodes"], model.describe()["nodes"], strict=True):
        assert was["count"] == now["count"]
        assert np.allclose(was["mean"], now["mean"], rtol=1e-9, atol=1e-9)
        assert np.allclose(was["covariance"], now["covariance"], rtol=1e-7, atol=1e-9)


def test_retraction_of_early_samples_equals_never_having_seen_them():
    """With one node there is no tree to differ by: the statistics must be those of the others alone."""
    X = 0.5 * clusters(200, 2)
    scaling = {"location": [0.0, 0.0], "scale": [1.0, 1.0]}
    model = detector(2, max_nodes=1, scaling=scaling)
    records = model.observe(X).records
    gone = np.arange(1, 200, 7)
    model.feedback(records[gone], [True] * len(gone))
    other = detector(2, max_nodes=1, scaling=scaling, round_growth=0.0)
    other.observe(np.delete(X, gone, axis=0))
    assert root(model) == 200 - len(gone)
    # the prior was chosen with them, and what is drawn in depends on the root of that time
    assert np.median(np.abs(model.log_density(X) - other.log_density(X))) < 0.05
    never = detector(2, max_nodes=1, scaling=scaling)
    records = never.observe(calm := np.clip(X, -2, 2)).records
    never.feedback(records[gone], [True] * len(gone))
    statistics, rest = never.state.density.nodes.statistics, np.delete(calm, gone, axis=0)
    assert statistics.count[0] == len(rest)
    assert np.allclose(statistics.mean[0], rest.mean(0), rtol=1e-9)
    assert np.allclose(statistics.scatter[0], (rest - rest.mean(0)).T @ (rest - rest.mean(0)), rtol=1e-9)


def test_outcomes_and_duplicates_in_one_call():
    model = detector(2)
    records = model.observe(clusters(60, 2)).records
    twice = records[np.array([40, 41, 40, 40])]
    result = model.feedback(twice, [True, False, True, True])
    assert result.outcome == ["applied", "applied", "duplicate", "duplicate"]
    assert result.retracted.tolist() == [True, False, False, False]
    assert result.records.label.tolist() == [1, -1, 1, 1]
    assert model.costs().labels == 2
    revised = model.feedback(result.records[:2], [False, None])
    assert revised.outcome == ["revised", "withdrawn"]
    assert model.costs().labels == 1
    assert model.threshold == revised.threshold_after


def test_many_labels_at_once_equal_one_by_one():
    X = clusters(300, 2)
    labels = [i % 11 == 0 for i in range(150)]
    together, single = detector(2), detector(2)
    records = together.observe(X).records[100:250]
    single.observe(X)
    together.feedback(records, labels)
    for i, label in enumerate(labels):
        single.feedback(records[i], [label])
    assert together.to_bytes() == single.to_bytes()


# bad input


def bad_matrices():
    loop: list = []
    loop.append(loop)
    nan, inf = float("nan"), float("inf")
    return {
        "too wide": [[1.0, 2.0, 3.0]],
        "too narrow": [[1.0]],
        "empty": [],
        "no row and no column": [[]],
        "three axes": np.zeros((1, 1, 2)),
        "ragged": [[1.0, 2.0], [1.0]],
        "a scalar": 1.0,
        "nothing": None,
        "text": "12",
        "words": [["a", "b"]],
        "an object": [[object(), 1.0]],
        "a mapping": {"a": 1.0, "b": 2.0},
        "infinity": [[1.0, 2.0], [1.0, inf]],
        "minus infinity": [[-inf, 2.0]],
        "too large for a double": [[10**400, 1.0]],
        "too large to print": [[10**5000, 1.0]],
        "a long double": np.array([[np.longdouble("1e400"), 1.0]]),
        "all missing": [[1.0, 2.0], [nan, nan]],
        "complex": [[1j, 1.0]],
        "a loop": loop,
        "a generator": iter([[1.0, 2.0]]),
    }


@pytest.mark.parametrize("name", bad_matrices())
@pytest.mark.parametrize("ready", [False, True])
def test_a_refused_matrix_changes_nothing(name, ready):
    model = detector(2)
    model.observe(clusters(100 if ready else 10, 2))
    before = model.to_bytes()
    for verb in (model.observe, model.score, model.log_density):
        with pytest.raises(InvalidObservation) as caught:
            verb(bad_matrices()[name])
        assert caught.value.field == "X"
        assert len(str(caught.value)) < 300
    assert model.to_bytes() == before


def test_an_error_names_the_place():
    with pytest.raises(InvalidObservation) as caught:
        detector(2).observe([[1.0, 2.0], [1.0, float("inf")]])
    assert (caught.value.row, caught.value.column) == (1, 1)


@pytest.mark.parametrize(
    "labels",
    [
        [],
        [True],
        [True] * 3,
        ["yes", True],
        [1, 0],
        [0.0, 1.0],
        [True, float("nan")],
        [[True], [True]],
        [10**5000, True],
    ],
)
@pytest.mark.parametrize("ready", [False, True])
def test_refused_labels_change_nothing(labels, ready):
    model = detector(2)
    records = model.observe(clusters(100 if ready else 10, 2)).records
    before = model.to_bytes()
    with pytest.raises(InvalidObservation) as caught:
        model.feedback(records[:2], labels)
    assert caught.value.field == "labels"
    assert model.to_bytes() == before


def test_two_labels_for_one_sample_are_refused_whole():
    model = detector(2)
    records = model.observe(clusters(100, 2)).records
    before = model.to_bytes()
    for pair in ([True, False], [None, True], [False, None]):
        with pytest.raises(InvalidObservation):
            model.feedback(records[np.array([50, 60, 60])], [True, *pair])
    assert model.to_bytes() == before


@pytest.mark.parametrize("first_seq", [1, 101, 2**40])
def test_records_of_another_life_of_the_stream_are_refused(first_seq):
    """Seq 96 to a detector that begins at 101 read the warm-up from its end, and labelled another sample."""
    model = detector(2, learn_from="all")
    stranger = Detector(DetectorConfig(n_features=2), first_seq=first_seq + 500)
    records = stranger.observe(clusters(100, 2)).records
    model = Detector(DetectorConfig(n_features=2), first_seq=first_seq)
    model.observe(clusters(100, 2))
    earlier = Detector(DetectorConfig(n_features=2), first_seq=max(first_seq - 100, 1)).observe(clusters(50, 2)).records
    before = model.to_bytes()
    strangers = [records[95]] if first_seq == 1 else [records[95], earlier[45]]
    for record in strangers:
        with pytest.raises(InvalidObservation) as caught:
            model.feedback(record, [True])
        assert caught.value.field == "records"
    assert model.to_bytes() == before


# warm-up, seq, purity


def test_the_warmup_counts_down_and_says_nothing():
    model = detector(2)
    for t in range(32):
        assert (model.ready, model.samples_needed) == (False, 32 - t)
        out = model.observe([[float(t), 1.0]])
        assert not out.ready[0]
        assert not out.is_anomaly[0]
        assert np.isnan(out.score[0])
        assert np.isnan(out.threshold[0])
        assert out.samples_needed == 31 - t
    assert model.ready
    out = model.observe([[3.0, 1.0]])
    assert out.ready[0]
    assert np.isfinite(out.score[0])


def test_there_is_no_score_before_ready():
    model = detector(2)
    with pytest.raises(NotReady) as caught:
        model.score([[1.0, 2.0]])
    assert caught.value.samples_needed == 32
    with pytest.raises(NotReady):
        model.density_grid(0, 1, 3)
    assert np.isnan(model.threshold)


def test_labels_during_the_warmup_decide_what_is_learned_at_its_end():
    X = clusters(40, 2)
    model = detector(2)
    records = model.observe(X[:20]).records
    early = model.feedback(records[np.array([3, 5, 7])], [True, False, True])
    assert early.outcome == ["applied"] * 3
    model.feedback(early.records[2], [None])
    model.observe(X[20:])
    model.feedback(records[19], [None])
    assert model.describe()["n_learned"] == 39
    late = model.feedback(early.records[0], [False])
    assert late.outcome == ["revised"]
    assert root(model) == 40
    again = model.feedback(records[3], [False])  # the record as it was before all labels
    assert again.outcome == ["duplicate"]
    assert model.costs().labels == 0  # nobody decided about these


def test_a_warmup_sample_labelled_later_is_retracted():
    X = clusters(100, 2)
    model = detector(2)
    records = model.observe(X).records
    assert model.feedback(records[4], [True]).retracted.tolist() == [True]
    assert model.feedback(records[4], [True]).outcome == ["duplicate"]
    model.feedback(records[99], [True])
    assert root(model) == 98


def test_seq_goes_on_from_first_seq():
    model = Detector(DetectorConfig(n_features=2), first_seq=1001)
    assert model.observe(clusters(40, 2)).seq.tolist() == list(range(1001, 1041))
    assert model.n_seen == 40
    restored = Detector.from_bytes(model.to_bytes())
    assert restored.observe([[0.0, 0.0]]).seq.tolist() == [1041]
    assert model.observe(np.zeros((0, 2))).seq.tolist() == []


@pytest.mark.parametrize("profile", ["default", "paper"])
def test_scoring_is_pure_and_inputs_are_not_kept(profile):
    X = clusters(200, 2, missing=0.1)
    model = detector(2, profile=profile)
    given = X.copy()
    model.observe(given)
    before = model.to_bytes()
    assert np.array_equal(model.log_density(X), -model.score(X))
    model.describe()
    model.density_grid(0, 1, 5)
    model.costs()
    given[:] = 1e9
    assert model.to_bytes() == before
    assert np.array_equal(given, np.full_like(X, 1e9))


def test_a_decision_is_score_above_threshold():
    out = detector(2, expected_anomaly_rate=0.05).observe(clusters(500, 2))
    assert out.is_anomaly.any()
    assert np.array_equal(out.is_anomaly[out.ready], (out.score > out.threshold)[out.ready])


def test_integers_missing_values_and_lists_are_samples():
    model, other = detector(2), detector(2)
    rows = [[i % 7, i % 5] for i in range(50)] + [[2**64 - 1, 3], [None, 2]]
    model.observe(rows)
    other.observe(np.array(rows, dtype=float))
    assert model.to_bytes() == other.to_bytes()
    assert sys.float_info.max > model.score([[2**64 - 1, 3]])[0]


@pytest.mark.parametrize("delay", [8, 12])
def test_labelled_anomalies_of_a_young_stream_do_not_hide_the_next(delay):
    """The first flagged sample of each incident counts as ordinary; while labels left it there, the next passed."""
    detector = Detector(DetectorConfig(n_features=2))
    X = np.random.default_rng(5).normal([40.0, 20.0], [5.0, 3.0], (200, 2))
    anomaly = np.array([[100.0, 60.0]])
    detector.observe(X[:140])
    before, told = detector.threshold, []
    for start in (140, 140 + delay):
        told.append(detector.observe(anomaly))
        detector.observe(X[start : start + delay])
    hidden = detector.threshold
    labelled = [detector.feedback(out.records, [True]) for out in told]
    assert labelled[-1].threshold_after < before + 10 < hidden
    assert Detector.from_bytes(detector.to_bytes()).threshold == labelled[-1].threshold_after
    for feedback in reversed(labelled):
        detector.feedback(feedback.records, [None])
    assert detector.threshold > before + 10
    for out in told:
        detector.feedback(out.records, [True])
    assert detector.observe(anomaly).is_anomaly[0]
