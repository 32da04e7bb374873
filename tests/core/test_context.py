"""Context and calendar through the whole detector: what is usual at this hour, at this load, of this machine."""

from functools import cache

import numpy as np
import pytest

from app.replay.ranking import ranking_auc
from bench.everyday.paired import CONTEXTS
from core import Detector, DetectorConfig, InvalidObservation
from core.results import Observation

DAY, QUARTER, MONDAY = 86_400.0, 900.0, 1_736_121_600.0
SEEDS = (40, 41)
FIRST_WEEK = slice(8 * 96, None)
LATENCY_OF_LOAD = ({"name": "latency"}, {"name": "load", "role": "context"})


@cache
def played(name: str, seed: int, *, in_context: bool = True) -> tuple[Detector, Observation, np.ndarray]:
    """A situation of the bench, its answers and its truth."""
    stream = CONTEXTS[name](np.random.default_rng([seed, 0]))
    model = Detector(DetectorConfig(stream.X.shape[1], **(stream.context if in_context else stream.config)))
    return model, model.observe(stream.X, stream.clock), stream.anomalous


def figures(name: str, *, in_context: bool = True) -> tuple[float, float, float]:
    """AUC, recall and the share of false alarms, after the first week; means over seeds."""
    each = []
    for seed in SEEDS:
        _, out, truth = played(name, seed, in_context=in_context)
        score, flagged, truth = out.score[FIRST_WEEK], out.is_anomaly[FIRST_WEEK], truth[FIRST_WEEK]
        each.append([ranking_auc(score, truth), flagged[truth].mean(), flagged[~truth].mean()])
    return tuple(np.mean(each, 0))


@pytest.mark.parametrize("name", ["weekday and weekend", "day and night"])
def test_night_s_values_by_day_are_anomalies_for_a_calendar_alone(name):
    auc, recall, false = figures(name)
    assert auc >= 0.99
    assert recall >= 0.7
    assert false <= 0.003
    assert figures(name, in_context=False)[0] < 0.85


def test_a_stream_without_a_season_loses_nothing_by_a_calendar():
    assert figures("no season")[0] >= figures("no season", in_context=False)[0] - 0.002
    model, *_ = played("no season", SEEDS[0])
    assert model.n_nodes == 1


def test_the_day_on_which_the_clocks_change_is_a_day_like_others():
    """By the clock of the zone; by UTC, office hours begin an hour early from then on."""
    stream = CONTEXTS["clock change"](np.random.default_rng([42, 0]))
    rows = slice(13 * 96, 16 * 96)
    alarms = {}
    for zone in ("Europe/Berlin", "UTC"):
        model = Detector(DetectorConfig(2, calendar={"periods": ["day", "week"], "timezone": zone}))
        out = model.observe(stream.X, stream.clock)
        alarms[zone] = int((out.is_anomaly & ~stream.anomalous)[rows].sum())
    assert alarms["Europe/Berlin"] == 0
    assert alarms["UTC"] >= 3


def test_labels_on_swapped_hours_take_their_samples_out():
    model, out, truth = played("day and night", SEEDS[0])
    blob, rows = model.to_bytes(), np.flatnonzero(truth & out.ready)[:6]
    model = Detector.from_bytes(blob)
    said = model.feedback(out.records[rows], [True] * len(rows))
    learned = out.records.rows["status"][rows] == 1
    assert np.array_equal(said.retracted, learned)
    assert learned.any()
    said = model.feedback(said.records, [False] * len(rows))
    assert not said.retracted.any()


def trained(n: int = 400, seed: int = 0, **fields) -> Detector:
    model = Detector(DetectorConfig(**fields))
    model.observe(*walk(n, seed, model.config.n_features))
    return model


def walk(n: int, seed: int, m: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    load = rng.normal(size=(n, 1))
    return load @ np.ones((1, m)) + 0.3 * rng.normal(size=(n, m)), MONDAY + QUARTER * np.arange(float(n))


def test_context_has_no_contribution_and_explains_values():
    model = trained(features=LATENCY_OF_LOAD, calendar={"periods": ["day"]})
    told = model.explain([[3.0, 3.0], [3.0, -3.0], [np.nan, 1.0][::-1]], MONDAY + np.array([0.0, np.nan, 60.0]))
    assert np.isnan(told.contribution[:, 1]).all()
    assert told.contribution.shape == told.expected.shape == (3, 2)
    assert told.expected[:2, 0] == pytest.approx([3.0, -3.0], abs=0.5)
    assert told.contribution[1, 0] > told.contribution[0, 0] + 5
    # what is left without the only value is p(context) over itself
    volume = np.log(model.describe()["scaling"]["scale"][0])
    assert told.contribution[:, 0] == pytest.approx(told.score - volume, abs=1e-9)


def test_what_is_told_of_the_model_is_about_the_features():
    model = trained(4000, features=LATENCY_OF_LOAD, calendar={"periods": ["day", "week"]}, split="both")
    told = model.describe()
    assert told["roles"] == ["value", "context"]
    assert len(told["nodes"]) > 1
    assert {len(node["mean"]) for node in told["nodes"]} == {len(told["scaling"]["scale"])} == {2}
    assert {np.array(node["covariance"]).shape for node in told["nodes"]} == {(2, 2)}
    assert {(len(plane["normal"]), len(plane["calendar"])) for plane in told["hyperplanes"]} == {(2, 8)}
    assert "calendar" not in trained(4000, n_features=2, split="both").describe()["hyperplanes"][0]
    assert np.isfinite(model.density_grid(0, 1, 5)[2]).all()


def test_records_hold_the_features_and_what_was_learned_of_all_columns():
    model = Detector(DetectorConfig(features=LATENCY_OF_LOAD, calendar={"periods": ["day"]}))
    X, times = walk(100, 0)
    X[90, 1] = np.nan
    records = model.observe(X, times).records
    assert records.x.shape == (100, 2)
    assert records.rows["learned"].shape == (100, 6)
    told = model.feedback(records[[90, 95]], [True, False])
    back = type(records).from_bytes(told.records.to_bytes())
    assert model.feedback(back, [None, None]).outcome == ["withdrawn", "withdrawn"]


def test_a_calendar_needs_times_and_not_all_of_them():
    config = DetectorConfig(n_features=2, calendar={"periods": ["day"]})
    model, X, times = Detector(config), *walk(100, 0)
    for ask in (model.observe, model.score, model.log_density, model.explain):
        with pytest.raises(InvalidObservation) as caught:
            ask(X)
        assert caught.value.field == "times"
    assert model.n_seen == 0
    times[[3, 70, 99]] = np.nan
    assert np.isfinite(model.observe(X, times).score[64:]).all()
    assert np.isfinite(model.observe(X, np.full(100, np.nan)).score).all()
    with pytest.raises(InvalidObservation):
        model.observe(X, np.full(100, np.inf))


def test_a_clock_that_fades_samples_needs_all_times():
    model = Detector(DetectorConfig(n_features=2, calendar={"periods": ["day"]}, half_life_seconds=2 * DAY))
    X, times = walk(100, 0)
    model.observe(X, times)
    times[5] = np.nan
    with pytest.raises(InvalidObservation):
        model.observe(X, times)
    assert np.isfinite(model.score(X, times)).all()
    with pytest.raises(InvalidObservation):
        Detector(DetectorConfig(n_features=2)).observe(X, times)


def test_context_alone_is_no_sample():
    model = trained(features=LATENCY_OF_LOAD)
    assert np.isfinite(model.score([[1.0, np.nan]])).all()
    for ask in (model.observe, model.score, model.explain):
        with pytest.raises(InvalidObservation, match="no context") as caught:
            ask([[1.0, 1.0], [np.nan, 1.0]])
        assert caught.value.row == 1
    with pytest.raises(InvalidObservation) as caught:
        model.observe([[1.0, np.inf]])
    assert (caught.value.row, caught.value.column) == (0, 1)


def test_an_unknown_time_is_judged_by_all_hours():
    model, *_ = played("day and night", SEEDS[0])
    noon, midnight = MONDAY + 40 * DAY + DAY / 2, MONDAY + 40 * DAY
    busy = [[75.0, 45.0]]
    at_noon, at_night, unknown = (model.score(busy, [time])[0] for time in (noon, midnight, np.nan))
    assert at_noon + 0.5 < unknown < at_night - 5


def test_a_far_value_is_not_forgiven_and_a_far_context_is_no_error():
    model = trained(features=LATENCY_OF_LOAD)
    score = model.score([[1e308, 0.0], [0.0, 1e308], [1e308, 1e308], [0.0, 0.0]])
    assert score[0] == score[2] == np.finfo(float).max
    assert np.isfinite(score).all()
    assert score[1] < 1e3


def test_a_context_that_wakes_up_changes_no_level():
    """The unit of a value that moves late is a part of all scores, that of a context of none."""
    X, _ = walk(600, 3)
    X[:200, 1] = 7.0
    unit = X * [1.0, 1e-6]
    told = Detector(DetectorConfig(features=LATENCY_OF_LOAD)).observe(X)
    other = Detector(DetectorConfig(features=LATENCY_OF_LOAD))
    again = other.observe(unit)
    np.testing.assert_allclose(again.score[64:], told.score[64:], atol=1e-6)
    assert np.array_equal(again.is_anomaly, told.is_anomaly)
    assert other.state.rule.base == 0.0
    both_values = Detector(DetectorConfig(n_features=2))
    both_values.observe(unit)
    assert both_values.state.rule.base != 0.0


def test_the_calendar_s_columns_keep_their_scale():
    """A warm-up sees a small arc of the circle, and so do the recent samples of a fast stream."""
    model = Detector(DetectorConfig(n_features=1, calendar={"periods": ["week"]}))
    rng = np.random.default_rng(0)
    for start in range(0, 3000, 500):
        model.observe(rng.normal(size=(500, 1)) * 1e-3, MONDAY + 0.1 * np.arange(start, start + 500.0))
    nodes = model.state.density.nodes
    assert nodes.spread[1:].tolist() == [1.0] * 4
    assert not nodes.coarse[1:].any()
    assert len(model.state.scaling.scale) == 1


def test_stillness_is_about_values():
    """A context that stays is no broken sensor: an incident in it is accepted as soon as any other."""
    rng, ends = np.random.default_rng(0), []
    for context in (np.zeros(700), rng.normal(size=700)):
        X = np.column_stack([rng.normal(size=700), context])
        X[600:, 0] += 60.0
        X[:500, 1] += 0.1 * rng.normal(size=500)
        X[500:, 1] = X[500:, 1] if context.any() else 0.0
        out = Detector(DetectorConfig(features=LATENCY_OF_LOAD)).observe(X)
        ends.append(np.flatnonzero(out.event == 3)[:1].tolist())
    assert len(ends[0]) == 1
    assert abs(ends[0][0] - ends[1][0]) <= 8
