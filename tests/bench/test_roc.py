"""The vectorised replay of Alg. 3 is core's Alg. 3; the curve's area is that of its points."""

import numpy as np
import pytest

from bench.paper.roc import RANGE, adaptive_flags, adaptive_roc, area_under
from core.threshold.gradient import GradientThreshold

RNG = np.random.default_rng(11)
ANOMALOUS = RNG.random(400) < 0.2
SCORES = np.where(ANOMALOUS, RNG.normal(4, 2, 400), RNG.normal(1.5, 1, 400))


@pytest.mark.parametrize("cost", [0.01, 0.3, 0.99])
def test_the_replay_decides_as_core_does(cost: float) -> None:
    rule = GradientThreshold(*RANGE, 1.0, cost)
    flagged = []
    for t, (score, anomalous) in enumerate(zip(SCORES.tolist(), ANOMALOUS, strict=True)):
        flagged.append(bool(score > rule.value))
        rule.label(t + 1, score, 1 if anomalous else -1)
    assert adaptive_flags(SCORES, ANOMALOUS, np.array([cost]))[:, 0].tolist() == flagged
    assert 0 < sum(flagged) < 400


def test_a_hundred_points_start_where_false_alarms_are_free() -> None:
    false_alarms, detections = adaptive_roc(SCORES, ANOMALOUS)
    assert len(false_alarms) == len(detections) == 100
    assert (false_alarms[0], detections[0]) == (1.0, 1.0)
    assert false_alarms[-1] < false_alarms[1]


def test_the_area_of_chance_and_of_perfection() -> None:
    assert area_under((np.array([0.5]), np.array([0.5]))) == 0.5
    assert area_under((np.array([0.0]), np.array([1.0]))) == 1.0


def test_a_useful_score_has_more_area_than_a_shuffled_one() -> None:
    shuffled = np.random.default_rng(0).permutation(SCORES)
    useful, useless = (area_under(adaptive_roc(s, ANOMALOUS)) for s in (SCORES, shuffled))
    assert useful > 0.7
    assert abs(useless - 0.5) < 0.1
