"""The Numenta Anomaly Benchmark: its scoring against a plain reading of the rules, and the command on a tiny corpus."""

import json
from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from app.cli import app
from bench.nab.corpus import Series, halves, read_corpus
from bench.nab.run import SEVERITY
from bench.nab.scoring import best_outcome, flags_outcome, outcome_at, worth
from core.arrays import FloatArray
from tests.effort import tries

N = 100
PLAIN = Series("a__plain", np.zeros(N), ((40, 49),))


def naive_sum(corpus: Sequence[Series], scores: Mapping[str, FloatArray], threshold: float) -> float:
    """The raw sum at one threshold, row by row."""
    total = 0.0
    for series in corpus:
        n = len(series.values)
        best = dict.fromkeys(range(len(series.windows)), -1.0)
        for k, (_, last) in enumerate(series.windows):
            if last < int(0.15 * n):
                del best[k]
        for row in range(int(0.15 * n), n):
            if not scores[series.name][row] >= threshold:
                continue
            inside = [k for k, (first, last) in enumerate(series.windows) if first <= row <= last]
            before = [(first, last) for first, last in series.windows if last < row]
            if inside:
                first, last = series.windows[inside[0]]
                position = (row - last - 1) / (last - first + 1)
                best[inside[0]] = max(best[inside[0]], squashed(position) / squashed(-1.0))
            elif before:
                first, last = before[-1]
                position = (row - last) / (last - first)
                total += 0.11 * (-1.0 if position > 3 else squashed(position))
            else:
                total -= 0.11
        total += sum(best.values())
    return total


def squashed(position: float) -> float:
    return 2 / (1 + exp(5 * position)) - 1


def flags(*rows: int) -> FloatArray:
    return np.isin(np.arange(N), rows).astype(float)


def score_of(*rows: int) -> float:
    return flags_outcome([PLAIN], {PLAIN.name: flags(*rows) > 0}).score


def test_a_window_found_at_its_first_row_is_all_and_none_is_nothing() -> None:
    assert score_of(40) == pytest.approx(100.0)
    assert score_of() == 0.0
    assert 50 < score_of(49) < score_of(45) < score_of(41) < 100


def test_only_the_best_flag_of_a_window_counts() -> None:
    assert score_of(40, 41, 45) == score_of(40)


def test_a_false_alarm_costs_more_the_farther_it_lies_from_a_window() -> None:
    costs = [score_of(40) - score_of(40, row) for row in (50, 55, 77, 90, 20)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(costs[-2]) == pytest.approx(100 * 0.11 / 2)


def test_rows_of_the_probation_do_not_count() -> None:
    assert score_of(40, 0, 14) == score_of(40)
    assert score_of(40, 15) < score_of(40)


def test_a_window_inside_the_probation_is_none() -> None:
    early = Series("a__early", np.zeros(N), ((3, 9), (40, 49)))
    assert flags_outcome([early], {early.name: flags(40) > 0}).windows == 1


def test_worth_of_two_windows_follows_the_one_before() -> None:
    both = Series("a__both", np.zeros(N), ((40, 49), (60, 89)))
    value = worth(both).value
    assert value[50 - 15] == pytest.approx(0.11 * squashed(1 / 9))
    assert value[90 - 15] == pytest.approx(0.11 * squashed(1 / 29))


@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 10, 1000]))
@settings(max_examples=tries(40), deadline=None)
def test_the_best_threshold_is_the_best_of_all(seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    corpus = [
        Series("a__1", np.zeros(60), ((20, 27), (40, 44))),
        Series("a__2", np.zeros(90), ()),
        Series("a__3", np.zeros(80), ((2, 8), (30, 39))),
    ]
    scores = {s.name: rng.integers(0, levels, len(s.values)).astype(float) for s in corpus}
    scores["a__2"][rng.random(90) < 0.3] = np.nan
    cuts = [*sorted({v for row in scores.values() for v in row[~np.isnan(row)]}), np.inf]
    sums = [naive_sum(corpus, scores, cut) for cut in cuts]
    best = best_outcome(corpus, scores)
    assert best.windows == 3
    assert best.score == pytest.approx(100 * (max(sums) + 3) / 6)
    for cut, total in zip(cuts, sums, strict=True):
        assert outcome_at(corpus, scores, cut).score == pytest.approx(100 * (total + 3) / 6)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A corpus of four series with one window each, and the results of one detector."""
    windows: dict[str, list[list[str]]] = {}
    rng = np.random.default_rng(0)
    for i in range(4):
        path = f"real/series_{i}.csv"
        times = [f"2014-04-{1 + t // 24:02d} {t % 24:02d}:00:00" for t in range(400)]
        values = rng.normal(size=400) + 50 * (np.arange(400) == 300)
        lines = [f"{time},{value}" for time, value in zip(times, values, strict=True)]
        data = tmp_path / "data" / path
        data.parent.mkdir(parents=True, exist_ok=True)
        data.write_text("\n".join(["timestamp,value", *lines]) + "\n")
        windows[path] = [[f"{times[300]}.000000", f"{times[310]}.000000"]]
        result = tmp_path / "results" / "oracle" / "real" / f"oracle_series_{i}.csv"
        result.parent.mkdir(parents=True, exist_ok=True)
        scored = [f"{line},{int(t == 300)}" for t, line in enumerate(lines)]
        result.write_text("\n".join(["timestamp,value,anomaly_score", *scored]) + "\n")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "combined_windows.json").write_text(json.dumps(windows))
    final = {"oracle": {"standard": 100.0}, "absent": {"standard": 1.0}}
    (tmp_path / "results" / "final_results.json").write_text(json.dumps(final))
    return tmp_path


def test_halves_take_turns_by_the_hash_of_the_name(checkout: Path) -> None:
    parts = halves(read_corpus(checkout))
    assert [len(part) for part in parts.values()] == [2, 2]
    assert {s.name for part in parts.values() for s in part} == {f"real__series_{i}" for i in range(4)}


def test_the_command_scores_ours_and_the_published(checkout: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "nab", str(checkout), "--json"])
    assert done.exit_code == 0, done.output
    ours, others = json.loads(done.stdout)["tables"]
    by_severity = [row for row in ours["rows"] if row["by"] == SEVERITY]
    assert [row["part"] for row in by_severity] == ["whole", "tuning", "validation"]
    assert all(row["score"] == pytest.approx(100) and row["false_alarms"] == 0 for row in by_severity)
    assert [row["detector"] for row in others["rows"]] == ["oracle"]
    assert others["rows"][0]["score"] == pytest.approx(100.0)


def test_another_folder_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "nab", str(tmp_path)])
    assert done.exit_code == 2
    assert "is not a checkout" in done.output
