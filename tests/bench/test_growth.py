"""What the figures and the regrets are drawn from."""

import numpy as np
import pytest

from bench.paper.figures.growth import grow, inside, two_means
from bench.paper.regrets import (
    node_log_densities,
    random_stream,
    scored_stream,
    threshold_regret,
    weights_regret,
)
from bench.paper.roc import RANGE
from core.mixture.exponentiated_gradient import ExponentiatedGradient
from core.mixture.soft_bayes import SoftBayes
from core.threshold.gradient import GradientThreshold


def test_the_tree_of_the_papers_figure_has_eleven_nodes() -> None:
    splits, model = grow()
    assert [split.n_learned for split in splits] == [4, 13, 43, 151, 526]
    assert len(model.detector.describe()["nodes"]) == 11


def test_each_new_hyperplane_lies_midway_between_the_centroids_that_are_drawn() -> None:
    for split in grow()[0]:
        left, right = two_means(split.seen)
        normal = np.array(split.hyperplane["normal"])
        assert normal @ (left + right) / 2 == pytest.approx(split.hyperplane["offset"])
        assert normal / np.linalg.norm(normal) == pytest.approx((left - right) / np.linalg.norm(left - right))


def test_children_share_their_parents_subspace() -> None:
    description = grow()[0][-1].description
    X = np.random.default_rng(0).normal(size=(200, 2), scale=2)
    for plane in description["hyperplanes"]:
        left, right, parent = (inside(description, node, X) for node in (plane["left"], plane["right"], plane["node"]))
        assert ((left | right) == parent).all()
        assert not (left & right).any()


@pytest.mark.parametrize("mixture", [ExponentiatedGradient, SoftBayes])
def test_the_weights_regret_stays_under_theorem_1s_bound(mixture: type) -> None:
    regret = weights_regret(mixture, node_log_densities(grow()[1], 400))
    assert (regret.measured < regret.bound).all()
    assert regret.measured[-1] > 0


def test_the_thresholds_regret_stays_under_theorem_2s_bound() -> None:
    for stream in (scored_stream(200), random_stream(400)):
        for costs in ((1.0, 1.0), (1.0, 0.1)):
            regret = threshold_regret(*stream, *costs)
            assert (regret.measured < regret.bound).all()


def test_a_threshold_that_stands_still_breaks_theorem_2s_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: not just any rule stays under the bound."""
    all_anomalous = np.ones(400, bool)
    scores = np.full(400, -np.log(RANGE[0]))
    assert (threshold_regret(scores, all_anomalous, 1.0, 1.0).measured < 10).all()
    monkeypatch.setattr(GradientThreshold, "label", lambda *_: None)
    regret = threshold_regret(scores, all_anomalous, 1.0, 1.0)
    assert regret.measured[-1] > 10 * regret.bound[-1]
