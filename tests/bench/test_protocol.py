"""The protocol: score first, then learn; and the arithmetic of the two conventions of log-loss."""

import doctest

import numpy as np
import pytest

from bench import protocol, tables
from bench.detectors import ItanModel
from bench.paper import opponents, roc
from bench.protocol import log_loss, min_max_scaled, prequential, z_scored
from core import DetectorConfig
from core.arrays import FloatArray

X = np.arange(10.0)[:, None]
ANOMALOUS = np.isin(np.arange(10), [2, 3, 9])


class Recorder:
    """Scores each sample by how many were learned before, and keeps what it was told."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.learned: list[float] = []
        self.scored: list[float] = []

    def score(self, X: FloatArray) -> FloatArray:
        self.scored += X[:, 0].tolist()
        assert not set(self.learned) & set(X[:, 0])
        return np.full(len(X), float(len(self.learned)))

    def learn(self, X: FloatArray) -> None:
        assert set(X[:, 0]) <= set(self.scored)
        self.learned += X[:, 0].tolist()


@pytest.mark.parametrize("module", [protocol, tables, opponents, roc])
def test_the_examples_in_the_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_sample_is_scored_before_it_is_learned_and_anomalies_never_are() -> None:
    model = Recorder(1)
    run = prequential(model, X, ANOMALOUS, normals_only=True)
    assert run.scores.tolist() == [0, 1, 2, 2, 2, 3, 4, 5, 6, 7]
    assert model.learned == [0, 1, 4, 5, 6, 7, 8]


def test_without_labels_everything_is_learned() -> None:
    run = prequential(Recorder(1), X, ANOMALOUS, normals_only=False)
    assert run.scores.tolist() == list(range(10))


def test_a_block_is_scored_whole_before_any_of_it_is_learned() -> None:
    model = Recorder(4)
    run = prequential(model, X, ANOMALOUS, normals_only=True)
    assert run.scores.tolist() == [0] * 4 + [2] * 4 + [6] * 2
    assert model.learned == [0, 1, 4, 5, 6, 7, 8]


def test_a_slow_model_is_stopped_when_its_budget_is_spent() -> None:
    ticks = iter(range(100))
    run = prequential(Recorder(1), X, ANOMALOUS, normals_only=True, budget_seconds=3, clock=lambda: next(ticks))
    assert (len(run.scores), run.stopped, run.seconds) == (3, True, 3)
    assert run.anomalous.tolist() == [False, False, True]


def test_a_run_to_the_end_is_not_marked() -> None:
    assert not prequential(Recorder(3), X, ANOMALOUS, normals_only=True).stopped


def test_the_papers_convention_counts_anomalous_rounds_as_zero() -> None:
    scores = np.array([1.0, 2.0, 900.0, 6.0])
    loss = log_loss(scores, np.array([False, False, True, False]))
    assert (loss.per_normal_round, loss.papers, loss.median, loss.clipped) == (3.0, 9 / 4, 2.0, 3.0)


def test_the_clipped_mean_cuts_one_round() -> None:
    assert log_loss(np.array([0.0, 1e9]), np.zeros(2, bool)).clipped == protocol.CLIPPED_AT / 2


def test_scalings_bear_a_constant_feature() -> None:
    constant = np.column_stack([np.arange(4.0), np.full(4, 7.0)])
    assert z_scored(constant).std(0).tolist() == [1.0, 0.0]
    assert min_max_scaled(constant).max(0).tolist() == [1.0, 0.0]


def test_our_model_scores_by_the_past_alone() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(60, 2))
    changed = samples.copy()
    changed[40:] += 5
    config = DetectorConfig(2, profile="paper")
    runs = [prequential(ItanModel(config), Z, np.zeros(60, bool), normals_only=True).scores for Z in (samples, changed)]
    assert (runs[0][:40] == runs[1][:40]).all()
    assert (runs[0][40:] != runs[1][40:]).any()


def test_our_model_learns_nothing_of_what_is_not_labelled_normal() -> None:
    samples = np.random.default_rng(0).normal(size=(60, 2))
    model = ItanModel(DetectorConfig(2, profile="paper"))
    prequential(model, samples, np.arange(60) % 3 == 0, normals_only=True)
    assert model.detector.describe()["n_learned"] == 40
