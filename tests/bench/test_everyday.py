"""The everyday situations: what they promise of themselves, how decisions are judged, and the command."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from app.cli import app
from app.replay.rivals.rival import Decisions
from bench.everyday.deciders import OURS, PEERS, Contender
from bench.everyday.judge import START, judge
from bench.everyday.labelled import dismissals, flagged_rows, incidents
from bench.everyday.paired import paired_table, run_pair, run_paired
from bench.everyday.run import decide, due, run, run_one, table_of
from bench.everyday.seasonal import OF_THE_WEEK, SEASONAL
from bench.everyday.situation import CONTEXTS, DELAY, NEVER, SITUATIONS, Labels, Situation, some_rows, spread
from core import DetectorConfig
from core.arrays import BoolArray, FloatArray

NAMES = list(SITUATIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_situation_repeats_and_tells_its_truth(name: str) -> None:
    first, again, other = (SITUATIONS[name](np.random.default_rng([seed, 0])) for seed in (0, 0, 1))
    n = len(first.X)
    assert np.array_equal(first.X, again.X, equal_nan=True)
    assert not np.array_equal(first.X, other.X, equal_nan=True)
    assert first.anomalous.shape == (n,)
    assert first.anomalous.dtype == bool
    assert not np.isinf(first.X).any()
    assert not np.isnan(first.X).all(1).any()
    assert not first.anomalous[: START + 200].any()
    assert first.anomalous.mean() < 0.25
    assert SITUATIONS[name].__doc__


def test_there_are_enough_of_them() -> None:
    assert len(NAMES) >= 50
    assert len({re.sub(r"[^a-z]", "", name) for name in NAMES}) == len(NAMES)


def test_single_anomalies_lie_apart() -> None:
    rows = spread(np.random.default_rng(0), 200, 500, 3000)
    assert len(rows) == 200
    assert (np.diff(rows) >= 8).all()
    assert rows.min() >= 500
    assert rows.max() < 3000


def decisions(n: int, flags: list[int], anomalies: list[int]) -> tuple[FloatArray, BoolArray, BoolArray]:
    flagged, anomalous = np.zeros(START + n, bool), np.zeros(START + n, bool)
    flagged[START + np.array(flags, int)], anomalous[START + np.array(anomalies, int)] = True, True
    return np.where(anomalous, 2.0, np.where(flagged, 1.0, 0.0)), flagged, anomalous


def test_judgement_of_a_stretch_found_late_and_a_storm() -> None:
    result = judge(*decisions(1000, [12, 13, 500, 501, 599, 620], [10, 11, 12, 13]))
    assert result.recall == 0.5
    assert result.found == 1.0
    assert result.delay == 2.0
    assert result.storm == 3
    assert result.false_share == pytest.approx(4 / 996)
    assert result.cost == pytest.approx((4 + 2) / 10)
    assert result.best_cost == 0.0
    assert result.auc == 1.0


def test_judgement_where_nothing_happens() -> None:
    result = judge(*decisions(500, [3], []))
    assert (result.recall, result.found, result.delay, result.auc) == (None, None, None, None)
    assert result.cost == pytest.approx(1 / 5)


def test_flagging_nothing_costs_one_and_rows_of_the_warm_up_do_not_count() -> None:
    score, flagged, anomalous = decisions(1000, [], list(range(0, 1000, 50)))
    flagged[:START] = True
    assert judge(score, flagged, anomalous).cost == 1.0


def test_a_score_that_is_not_there_ranks_lowest() -> None:
    score, flagged, anomalous = decisions(100, [], [50])
    score[:-40] = np.nan
    assert judge(score, flagged, anomalous).auc == pytest.approx((100 - 40 - 1) / 2 / 99)


def test_a_fifth_of_the_rows_is_labelled_late() -> None:
    anomalous = np.zeros(3000, bool)
    labels = some_rows(np.random.default_rng(0), anomalous, wrong=0.2)
    given = labels.due != NEVER
    assert 0.17 < given.mean() < 0.23
    assert (labels.due[given] - np.flatnonzero(given) == DELAY).all()
    assert 0.17 < labels.said.mean() < 0.23


def test_labels_of_an_incident_come_at_once_and_alone() -> None:
    anomalous = np.zeros(1000, bool)
    anomalous[100:110] = True
    labels = incidents(np.random.default_rng(0), anomalous)
    assert np.flatnonzero(labels.due != NEVER).tolist() == list(range(100, 110))
    assert set(labels.due[100:110].tolist()) == {110 + DELAY}


def test_only_flagged_rows_are_labelled_and_only_once() -> None:
    anomalous = np.zeros(1000, bool)
    flagged, given = np.zeros(1000, bool), np.zeros(1000, bool)
    flagged[[3, 7]], given[7] = True, True
    labels = flagged_rows(np.random.default_rng(0), anomalous)
    assert due(labels, 3 + DELAY, flagged, given).tolist() == []
    assert due(labels, 4 + DELAY, flagged, given).tolist() == [3]
    anomalous[3] = True
    assert due(dismissals(np.random.default_rng(0), anomalous), 1000, flagged, given).tolist() == []


class Recorder:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.labels: list[tuple[int, int, bool]] = []

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        self.seen += X[:, 0].astype(int).tolist()
        return Decisions(X[:, 0], np.zeros(len(X), bool))

    def label(self, rows: FloatArray, said: BoolArray) -> None:
        self.labels += [(len(self.seen), int(row), bool(s)) for row, s in zip(rows, said, strict=True)]


def test_no_label_comes_before_it_is_due_nor_twice() -> None:
    n = 400
    truth = np.arange(n) % 7 == 0
    chosen = Situation(np.arange(n, dtype=float)[:, None], truth)
    recorder = Recorder()
    score = decide(recorder, chosen, Labels(np.arange(n) + 60, truth)).score
    assert recorder.seen == list(range(n))
    assert np.array_equal(score, chosen.X[:, 0])
    assert all(now > row + 60 for now, row, _ in recorder.labels)
    assert [row for _, row, _ in recorder.labels] == list(range(n - 50 - 60))
    assert all(said == truth[row] for _, row, said in recorder.labels)


@pytest.fixture(params=[OURS, *PEERS], ids=lambda c: c.name)
def contender(request: pytest.FixtureRequest) -> Contender:
    chosen: Contender = request.param
    if not chosen.present:
        pytest.skip(f"{chosen.module}, of the group bench, is not installed")
    return chosen


def test_each_finds_a_gross_spike_and_does_not_look_ahead(contender: Contender) -> None:
    X = np.random.default_rng(0).normal(50, 3, (400, 2))
    X[300] = 120.0
    X[100, 0] = np.nan
    changed = X.copy()
    changed[350:] += 40
    truth = np.arange(400) == 300
    first, other = (decide(contender.make(2, {}), Situation(Z, truth), None) for Z in (X, changed))
    assert first.flagged[300]
    assert first.flagged[200:300].mean() <= 0.1
    assert np.array_equal(first.score[:350], other.score[:350], equal_nan=True)
    assert np.array_equal(first.flagged[:350], other.flagged[:350])


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small situations, and ours alone."""

    def small(rng: np.random.Generator) -> Situation:
        return Situation(rng.normal(size=(300, 1)), np.arange(300) == 280)

    monkeypatch.setattr("bench.everyday.run.SITUATIONS", {"one": small, "two": small})
    monkeypatch.setattr("bench.everyday.run.PEERS", ())


@pytest.mark.usefixtures("short")
def test_results_do_not_depend_on_the_number_of_processes() -> None:
    alone = list(run(["one", "two"], [0, 1]))
    assert [r.to_dict() for task in [("one", 0, True), ("one", 1, True)] for r in run_one(task)] == [
        r.to_dict() for r in alone[:4]
    ]
    assert [(r.situation, r.seed, r.labels) for r in alone][:3] == [
        ("one", 0, "none"),
        ("one", 0, "labels"),
        ("one", 1, "none"),
    ]


@pytest.mark.usefixtures("short")
def test_the_table_ends_with_the_mean() -> None:
    table = table_of(list(run(["one", "two"], [0, 1])))
    assert [row["situation"] for row in table.rows] == ["one", "two", "mean"]
    costs = [row["cost ITAN, none"] for row in table.rows]
    assert costs[2] == pytest.approx((costs[0] + costs[1]) / 2)  # type: ignore[operator]
    assert "ITAN, labels" in table.to_markdown()


def test_the_command_runs_what_is_asked_for() -> None:
    words = ["bench", "everyday", "--only", "flat", "--seeds", "1", "--first-seed", "5", "--no-peers", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)["results"]
    assert [(r["situation"], r["seed"], r["labels"]) for r in results] == [("flat", 5, "none"), ("flat", 5, "labels")]
    unknown = CliRunner().invoke(app, ["bench", "everyday", "--only", "sunny"])
    assert unknown.exit_code == 2
    assert "sunny" in unknown.output


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_stream_with_a_context_repeats_and_its_context_is_a_config(name: str) -> None:
    first, again = (CONTEXTS[name](np.random.default_rng([3, 0])) for _ in range(2))
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.clock, again.clock)
    assert (np.diff(first.clock) > 0).all()
    assert 0 < first.anomalous.mean() < 0.1
    assert DetectorConfig(first.X.shape[1], **(first.config | first.context)).context
    assert not DetectorConfig(first.X.shape[1], **first.config).context
    assert CONTEXTS[name].__doc__


def test_pairs_run_the_same_stream_with_and_without_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    def hourly(rng: np.random.Generator) -> Situation:
        hours = np.arange(600) % 24
        X = 10.0 * np.sin(2 * np.pi * hours[:, None] / 24) + rng.normal(size=(600, 1))
        rows = np.flatnonzero(np.arange(600) % 70 == 8)[3:]
        X[rows] = X[rows - 12]
        times = 3600.0 * np.arange(600)
        return Situation(X, np.isin(np.arange(600), rows), times=times, context={"calendar": {"periods": ["day"]}})

    monkeypatch.setitem(CONTEXTS, "hourly", hourly)
    results = list(run_paired(["hourly"], [0, 1], peers=False))
    assert [r.to_dict() for r in results[:4]] == [r.to_dict() for r in run_pair(("hourly", 0, False))]
    table = paired_table(results)
    assert [row["detector"] for row in table.rows] == ["ITAN", "ITAN, in context"]
    plain, told = (float(str(row["AUC"]).split(" / ")[0]) for row in table.rows)
    assert told > 0.9 > plain
    assert "in context" in table.to_markdown()


@pytest.mark.parametrize("peer", SEASONAL, ids=lambda peer: peer.name)
def test_peers_that_know_the_time_find_a_value_of_another_hour(peer: Contender) -> None:
    if not peer.present:
        pytest.skip(f"{peer.module} is not installed")
    rng, times = np.random.default_rng(0), 1.7361216e9 + 900.0 * np.arange(2 * 672)
    X = (20 * np.cos(2 * np.pi * times / 86400))[:, None] + rng.normal(size=(len(times), 1))
    flipped = [1000, 1103, 1245]
    X[flipped] *= -1
    score = peer.make(1, {}).decide(X, times).score
    assert (score[flipped] > np.quantile(score[672:], 0.9)).all()


def test_the_z_score_of_the_week_knows_the_hour() -> None:
    rng, times = np.random.default_rng(0), 1.7361216e9 + 900.0 * np.arange(4 * 672)
    X = (20 * np.cos(2 * np.pi * times / 86400))[:, None] + rng.normal(size=(len(times), 1))
    X[3 * 672 + 48] = -X[3 * 672 + 48]
    told = OF_THE_WEEK.make(1, {}).decide(X, times)
    assert told.flagged[3 * 672 + 48]
    assert told.flagged[2 * 672 :].mean() < 0.03
