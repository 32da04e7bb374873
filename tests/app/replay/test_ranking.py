"""Ranking figures against values worked out by hand, and against their definitions on random data with many ties."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.replay import ranking
from app.replay.ranking import average_precision, best_fixed_threshold, ranking_auc

JUDGED = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)


def arrays(judged: list[tuple[float, bool]]) -> tuple[ranking.Floats, ranking.Bools]:
    return np.array([float(s) for s, _ in judged]), np.array([y for _, y in judged])


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(ranking).failed == 0


@pytest.mark.parametrize(
    ("scores", "labels", "auc", "precision"),
    [
        # the example of scikit-learn's documentation: 0.75 and 0.8333
        ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.75, 1 / 2 + 1 / 3),
        ([1, 2, 3, 4], [0, 0, 1, 1], 1.0, 1.0),
        ([4, 3, 2, 1], [0, 0, 1, 1], 0.0, (1 / 3 + 2 / 4) / 2),
        # one tie over all: chance, and the share of anomalies
        ([5, 5, 5, 5], [0, 1, 0, 0], 0.5, 0.25),
        # a tie between the kinds at 2 counts half a pair; precision there is 2 of 3
        ([1, 2, 2, 3], [0, 0, 1, 1], 3.5 / 4, 1 / 2 + (2 / 3) / 2),
        ([1.7e308, -1.7e308, 0, 1], [1, 0, 0, 1], 1.0, 1.0),
    ],
)
def test_ranking_by_hand(scores: list[float], labels: list[int], auc: float, precision: float) -> None:
    anomalous = np.array(labels, dtype=bool)
    assert ranking_auc(np.array(scores, dtype=float), anomalous) == pytest.approx(auc)
    assert average_precision(np.array(scores, dtype=float), anomalous) == pytest.approx(precision)


@pytest.mark.parametrize("labels", [[], [True], [False, False]])
def test_one_kind_alone_has_no_ranking(labels: list[bool]) -> None:
    assert ranking_auc(np.arange(len(labels), dtype=float), np.array(labels, dtype=bool)) is None


@given(JUDGED)
def test_auc_is_the_share_of_pairs_in_the_right_order(judged: list[tuple[float, bool]]) -> None:
    bad, good = [s for s, y in judged if y], [s for s, y in judged if not y]
    pairs = [(b > g) + (b == g) / 2 for b in bad for g in good]
    assert ranking_auc(*arrays(judged)) == (pytest.approx(np.mean(pairs)) if pairs else None)


@given(JUDGED)
def test_precision_is_averaged_over_distinct_thresholds(judged: list[tuple[float, bool]]) -> None:
    n_bad = sum(y for _, y in judged)
    total, recall = 0.0, 0.0
    for cut in sorted({s for s, _ in judged}, reverse=True):
        above = [y for s, y in judged if s >= cut]
        new_recall = sum(above) / n_bad if n_bad else 0.0
        total += (new_recall - recall) * sum(above) / len(above)
        recall = new_recall
    assert average_precision(*arrays(judged)) == (pytest.approx(total) if n_bad else None)


@given(JUDGED, st.sampled_from([(1.0, 1.0), (5.0, 1.0), (1.0, 3.0)]))
def test_no_threshold_is_cheaper_than_the_best_one(
    judged: list[tuple[float, bool]], costs: tuple[float, float]
) -> None:
    def cost(threshold: float) -> float:
        return sum(costs[0] if y else costs[1] for s, y in judged if (s > threshold) != y)

    best = best_fixed_threshold(*arrays(judged), *costs)
    assert cost(best.threshold) == best.cost
    assert best.cost == min(cost(threshold) for threshold in np.arange(-4, 4, 0.5))


def test_nothing_judged_costs_nothing() -> None:
    assert best_fixed_threshold(np.array([]), np.array([], dtype=bool), 1, 1).cost == 0
