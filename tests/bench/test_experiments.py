"""The paper bench as a whole: complete, repeatable, and as good as its floors say."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bench.paper import experiments
from bench.paper.experiments import (
    BEST_GAUSSIAN,
    DEFAULT,
    KERNEL,
    MIXTURE,
    ML,
    PAPER_EG,
    PAPER_SOFT_BAYES,
    TRUTH,
    Experiment,
    run_experiment,
    run_experiments,
)
from bench.paper.published import PUBLISHED
from bench.paper.report import table_of
from bench.paper.streams import TRUE_SCORE, sine_band, three_gaussians

MODELS = [PAPER_EG, PAPER_SOFT_BAYES, DEFAULT, MIXTURE, KERNEL, ML, BEST_GAUSSIAN, TRUTH]
MEASURES = ["log_loss", "papers_log_loss", "median_loss", "clipped_loss", "ranking_auc", "roc_auc"]


def tiny() -> Experiment:
    return run_experiment("exp. 1", [three_gaussians(seed, 80) for seed in (0, 1)], TRUE_SCORE["exp. 1"])


@pytest.fixture(scope="module")
def first() -> Experiment:
    return run_experiment("exp. 1", [three_gaussians(0, 600)], TRUE_SCORE["exp. 1"])


@pytest.fixture(scope="module")
def second() -> Experiment:
    return run_experiment("exp. 2", [sine_band(0, 600)], TRUE_SCORE["exp. 2"])


def without_times(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "milliseconds"} for row in table["rows"]]


def test_a_table_holds_every_model_every_measure_and_the_papers_figures() -> None:
    table = table_of(tiny())
    rows = {row["model"]: row for row in table.to_dict()["rows"]}
    assert list(rows) == MODELS
    for row in rows.values():
        assert all(np.isfinite(row[measure]) and row[f"{measure}_deviation"] is not None for measure in MEASURES)
    assert {m for m, row in rows.items() if row["milliseconds"] is None} == {BEST_GAUSSIAN, TRUTH}
    assert rows[PAPER_EG]["paper_log_loss"] == PUBLISHED["exp. 1"]["ITAN"].log_loss
    assert rows[ML]["paper_milliseconds"] == 39
    assert all(model in table.to_markdown() for model in MODELS)


def test_a_run_repeats_to_the_last_digit_but_for_its_times() -> None:
    first, again = (without_times(table_of(tiny()).to_dict()) for _ in range(2))
    assert first == again


def test_the_third_experiment_is_left_out_without_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(scaling: str) -> None:
        raise LookupError

    monkeypatch.setattr(experiments, "vehicle", absent)
    monkeypatch.setattr(experiments, "run_experiment", lambda name, *rest: name)
    assert list(run_experiments(quick=True)) == ["exp. 1", "exp. 2"]


def loss(experiment: Experiment, model: str) -> float:
    return experiment.trials[model][0].loss.per_normal_round


def auc(experiment: Experiment, model: str) -> float:
    found = experiment.trials[model][0].ranking_auc
    assert found is not None
    return found


def test_the_default_profile_beats_one_gaussian_by_a_margin(first: Experiment, second: Experiment) -> None:
    assert loss(first, DEFAULT) < min(loss(first, ML), loss(first, BEST_GAUSSIAN)) - 0.8
    assert auc(first, DEFAULT) > 0.93
    assert loss(second, DEFAULT) < min(loss(second, ML), loss(second, BEST_GAUSSIAN)) - 0.9
    assert auc(second, DEFAULT) > 0.85


def test_the_paper_profile_beats_the_papers_opponents(first: Experiment, second: Experiment) -> None:
    for experiment in (first, second):
        for opponent in (MIXTURE, KERNEL, ML):
            assert loss(experiment, PAPER_EG) < loss(experiment, opponent) - 0.2


def test_no_model_beats_the_truth_on_average(first: Experiment) -> None:
    assert all(loss(first, model) > loss(first, TRUTH) for model in MODELS if model != TRUTH)
    assert auc(first, TRUTH) > 0.99


def test_one_gaussian_is_blind_to_what_lies_between_the_clusters(first: Experiment) -> None:
    """The negative control: what the floors above ask of the tree, a model without one does not reach."""
    assert auc(first, ML) < 0.2
    assert auc(first, BEST_GAUSSIAN) < 0.2


def test_shuffled_labels_leave_nothing_to_rank() -> None:
    """The negative control of the whole protocol: no truth, no AUC beyond three standard errors of some 40 labels."""
    X, anomalous = three_gaussians(0, 400)
    shuffled = np.random.default_rng(1).permutation(anomalous)
    assert abs(auc(run_experiment("exp. 1", [(X, shuffled)]), DEFAULT) - 0.5) < 0.15
