"""What a replay is compared with: scores, thresholds by the labels known, and the figures of the table."""

import doctest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from app.replay.feed import Outcome
from app.replay.ranking import best_fixed_threshold
from app.replay.rivals import comparison, judging, windows
from app.replay.rivals.comparison import compare_rivals
from app.replay.rivals.judging import judge
from app.replay.rivals.rival import Bools, Decisions, Floats
from app.replay.rivals.table import format_contest
from app.replay.rivals.threshold import CheapestCut
from app.replay.rivals.trees import TREES_WINDOW, Trees, half_space_trees
from app.replay.rivals.windows import Windowed, z_score
from core import Detector, DetectorConfig
from core.config.schema import config_schema

N, DELAY, EVERY = 700, 30, 50


def stream(seed: int = 3, n: int = N) -> tuple[Floats, Bools]:
    lot = np.random.default_rng(seed)
    anomalous = lot.random(n) < 0.04
    X = lot.normal(size=(n, 3)) + np.where(anomalous, 2.5, 0.0)[:, None]
    X[lot.random(X.shape) < 0.02] = np.nan
    X[np.isnan(X).all(1)] = 0.0
    return X, anomalous


def outcome_of(X: Floats, anomalous: Bools, label: list[bool | None] | None = None) -> Outcome:
    """Play the samples through a detector as a replay would."""
    label = list(map(bool, anomalous)) if label is None else label
    outcome = Outcome(batches=[X], label=label)
    detector, records, waiting = Detector(DetectorConfig(X.shape[1])), [], 0
    for end in range(EVERY, len(X) + 1, EVERY):
        seen = detector.observe(X[end - EVERY : end])
        records += [seen.records[i : i + 1] for i in range(EVERY)]
        outcome.score += [None if np.isnan(s) else float(s) for s in seen.score]
        outcome.flag += seen.is_anomaly.tolist()
        due = [p for p in range(waiting, max(end - DELAY, waiting)) if label[p] is not None]
        for position in due:
            detector.feedback(records[position], [label[position]])
        outcome.sent.append((end, due))
        waiting = max(end - DELAY, waiting)
    return outcome


CONFIG: dict[str, Any] = {
    "profile": "default",
    "features": None,
    "n_features": 3,
    "calendar": None,
    "cost_false_negative": 5.0,
    "cost_false_positive": 1.0,
    "expected_anomaly_rate": 0.01,
}


@pytest.mark.parametrize("module", [judging, windows])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_the_config_of_a_rival_is_made_of_fields_that_exist() -> None:
    assert set(comparison.SHARED_FIELDS) < set(config_schema()["properties"])


@pytest.mark.parametrize("cut", [1, 7, 300])
def test_a_rolling_z_score_is_that_of_the_samples_before(cut: int) -> None:
    X, _ = stream()
    scorer = Windowed(z_score)
    scores = np.concatenate([scorer.score(X[at : at + cut]) for at in range(0, N, cut)])
    filled = windows.FilledIn().fill(X)
    for t in (0, 31, 32, 100, 256, 257, N - 1):
        past = filled[max(t - 256, 0) : t]
        expected = np.nan if t < 32 else np.abs((filled[t] - past.mean(0)) / past.std(0)).max()
        assert scores[t] == pytest.approx(expected, nan_ok=True)


def test_a_feature_that_stood_still_scores_when_it_moves() -> None:
    X = np.ones((60, 1))
    X[50] = 1.5
    scores = Windowed(z_score).score(X)
    assert scores[40] == 0
    assert scores[50] == windows.JUMP


def test_half_space_trees_are_those_of_river_and_silent_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("river")
    window = 40
    monkeypatch.setattr("app.replay.rivals.trees.TREES_WINDOW", window)
    X = np.nan_to_num(stream()[0])[: window + 30]
    scores, model = Trees().score(X), half_space_trees()
    assert np.isnan(scores[:window]).all()
    for t, x in enumerate(X):
        if t >= window:
            assert scores[t] == model.score(x[None])[0]
        model.learn(x[None])


def test_a_threshold_is_the_cheapest_on_the_labels_known() -> None:
    lot = np.random.default_rng(0)
    scores, anomalous = lot.normal(size=400), lot.random(400) < 0.1
    scores[:20] = np.nan
    cut = CheapestCut((5.0, 1.0), expected_rate=0.05)
    cut.follow(scores[:100], np.empty(0, np.int64), np.empty(0, np.bool_))
    assert cut.threshold == np.quantile(scores[20:100], 0.95)
    known = np.arange(20, 150)
    cut.follow(scores[:200], known, anomalous[known])
    assert cut.threshold == best_fixed_threshold(scores[known], anomalous[known], 5.0, 1.0).threshold


def test_a_fixed_threshold_stays_after_its_time() -> None:
    scores, anomalous = np.arange(100.0), np.arange(100) > 50
    cut = CheapestCut((1.0, 1.0), 0.01, frozen_after=60)
    cut.follow(scores[:60], np.arange(60), anomalous[:60])
    assert cut.threshold == 50
    cut.follow(scores, np.arange(100), ~anomalous)
    assert cut.threshold == 50


def test_no_rival_sees_a_label_before_the_stream_did() -> None:
    X, anomalous = stream()
    outcome = outcome_of(X, anomalous)
    turned = Outcome(**vars(outcome))
    seen_until = 400
    late = sorted(p for after, positions in outcome.sent for p in positions if after > seen_until)
    assert 200 < len(late) < N
    turned.label = [not label if p in set(late) else label for p, label in enumerate(outcome.label)]
    first, second = (compare_rivals(each, CONFIG).decisions for each in (outcome, turned))
    for name in first:
        if "hindsight" not in name:
            assert first[name].flagged[:seen_until].tolist() == second[name].flagged[:seen_until].tolist(), name
    # and those that move do so for the labels that came
    assert first["rolling z-score"].flagged.tolist() != second["rolling z-score"].flagged.tolist()
    assert first["itan, paper profile"].flagged.tolist() != second["itan, paper profile"].flagged.tolist()


def test_all_are_judged_on_the_same_samples() -> None:
    pytest.importorskip("river")
    X, anomalous = stream()
    label = [None if p % 9 == 0 else bool(said) for p, said in enumerate(anomalous)]
    contest = compare_rivals(outcome_of(X, anomalous, label), CONFIG)
    names = [standing.name for standing in contest.standings]
    assert names[0] == "itan"
    assert "half-space trees" in names
    assert not contest.judged[:TREES_WINDOW].any()
    assert contest.judged.sum() == sum(said is not None for said in label[TREES_WINDOW:])
    hindsight, fixed = contest.standings[-1], contest.standings[names.index("itan, fixed threshold")]
    assert hindsight.cost <= contest.standings[0].cost
    assert hindsight.ranking_auc == contest.standings[0].ranking_auc == fixed.ranking_auc
    table = format_contest(contest)
    assert f"Compared on {contest.judged.sum()} samples" in table
    assert all(name in table for name in names)


def test_how_much_there_is_to_decide_is_known_before() -> None:
    X, anomalous = stream(n=400)
    told: list[tuple[int, list[int]]] = []

    @contextmanager
    def watch(total: int) -> Iterator[Callable[[int], object]]:
        told.append((total, []))
        yield told[-1][1].append

    compare_rivals(outcome_of(X, anomalous), CONFIG, watch, with_rivals=False)
    assert told == []
    compare_rivals(outcome_of(X, anomalous), CONFIG, watch)
    ((total, steps),) = told
    assert total == sum(steps) >= 3 * 400
    assert len(steps) >= 3 * 4


def test_who_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("river")
    X, anomalous = stream(n=400)
    assert any("need 250 samples" in note for note in compare_rivals(outcome_of(X, anomalous), CONFIG).notes)
    monkeypatch.setattr(comparison, "find_spec", lambda name: None)
    notes = compare_rivals(outcome_of(X, anomalous), CONFIG).notes
    assert any("river is not installed" in note for note in notes)


def test_figures_by_hand() -> None:
    truth = np.array([0, 1, 1, 0, 1, 0, 0, 1], bool)
    flagged = np.array([0, 0, 1, 1, 0, 0, 1, 1], bool)
    score = np.arange(8.0)
    times = np.arange(8) * 43_200.0
    judged = np.ones(8, bool)
    judged[6] = False
    found = judge("it", Decisions(score, flagged), judged, truth, times, (5.0, 2.0))
    assert (found.precision, found.recall, found.f1) == (2 / 3, 2 / 4, 4 / 7)
    assert (found.cost, found.false_alarms, found.events, found.events_found) == (5 * 2 + 2 * 1, 1, 3, 2)
    assert found.false_alarms_a_day == 1 / 3.5
    assert judge("it", Decisions(score, flagged), judged, truth, None, (5.0, 2.0)).false_alarms_a_day is None
    nothing = judge("it", Decisions(score, flagged & False), judged, truth & False, times, (5.0, 2.0))
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.ranking_auc, nothing.events) == (None,) * 4 + (0,)
