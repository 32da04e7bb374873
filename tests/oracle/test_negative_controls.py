"""The comparison can fail: with one rule of the oracle broken on purpose, core and oracle part."""

import numpy as np
import pytest

from bench.paper.streams import three_gaussians
from core import DetectorConfig
from tests.oracle.in_step import InStep, labels_late
from tests.oracle.naive import NaiveDetector
from tests.oracle.naive_density import LEFT, RIGHT, NaiveDensity
from tests.oracle.naive_threshold import NAIVE_THRESHOLDS, NaiveGradient, NaiveWeighted

SEED = 30


class TiesGoRight(NaiveDensity):
    def nearer_side(self, node, x):
        left, right = (float((x - c) @ (x - c)) for c in node.centroids)
        return LEFT if left < right else RIGHT


class SplitsOneLate(NaiveDensity):
    def is_split_due(self, t):
        return t > 1 and super().is_split_due(t - 1)


class SplitsByLevelAlone(NaiveDensity):
    def separation(self, node):
        return super().separation(node) * 2**node.times_split


class OffsetToTheLetter(NaiveDensity):
    def hyperplane(self, left, right):
        normal, _ = super().hyperplane(left, right)
        return normal, float((left - right) @ (left + right) / 2)


class WeightsAfterComponents(NaiveDensity):
    def move_weights(self, samples):
        for sample in samples:
            for i, side in sample.sides.items():
                self.nodes[i].on_side[side].append(sample)
        self.freeze(self.nodes)
        for sample in samples:
            sample.log_densities = [self.node_log_density(node, sample.value) for node in self.nodes]
            for i, side in sample.sides.items():
                self.nodes[i].on_side[side].remove(sample)
        super().move_weights(samples)


class ThetaFixed(NaiveDensity):
    def theta(self, n, r, a, t):
        return 0.05


class WeightsInHalves(NaiveDensity):
    def share_weight(self, node, counts):
        super().share_weight(node, [1, 1])


class HeirsKeepWhatIsRetracted(NaiveDensity):
    def warm_start(self, child, samples, node):
        super().warm_start(child, samples, node)
        child.inherited = [Copied(s) for s in child.inherited]


class Copied:
    """A sample that does not hear of its retraction."""

    def __init__(self, sample):
        self.value, self.spread, self.void = sample.value, sample.spread, sample.void


class FilledByExpectation(NaiveDensity):
    """Shares by the expected density of the whole sample, which favours nodes that are narrow where it is missing."""

    def evidence_for_imputing(self, given):
        return [expected for expected, _, _, _ in given]


class LearnsBeforeItScores(NaiveDetector):
    def pass_by(self, row, *, decide):
        if self.is_wanted(row):
            self.learn(row, self.density.examine(self.scaled(row.x)))
        row.label, label = 1, row.label  # not a second time
        super().pass_by(row, decide=decide)
        row.label = label


class StepWithoutCost(NaiveGradient):
    def step_size(self):
        return super().step_size() * min(self.cost.values())


class WithoutPrior(NaiveWeighted):
    def prior_cost(self, cut):
        return 0.0


def broken(density=NaiveDensity, threshold=None):
    """A detector type with another density, or another threshold whatever the config names."""
    rules = NAIVE_THRESHOLDS if threshold is None else dict.fromkeys(NAIVE_THRESHOLDS, threshold)
    return type("Broken", (NaiveDetector,), {"density_type": density, "threshold_types": rules})


DEFAULT = {"warmup": 12, "expected_anomaly_rate": 0.2, "cost_false_negative": 3.0}
PAPER = {"profile": "paper", "learn_from": "all", "cost_false_negative": 3.0, "cost_false_positive": 0.5}

BROKEN = {
    "ties go right": (PAPER, broken(TiesGoRight)),
    "beta^k + 1": (PAPER, broken(SplitsOneLate)),
    "ratio by level alone": (PAPER, broken(SplitsByLevelAlone)),
    "offset to the letter": (PAPER, broken(OffsetToTheLetter)),
    "weights after components": (PAPER, broken(WeightsAfterComponents)),
    "theta fixed": (PAPER, broken(ThetaFixed)),
    "step without C_min": (PAPER, broken(threshold=StepWithoutCost)),
    "weights in halves": (DEFAULT, broken(WeightsInHalves)),
    "heirs keep what is retracted": (DEFAULT, broken(HeirsKeepWhatIsRetracted)),
    "learn before score": (DEFAULT, LearnsBeforeItScores),
    "threshold without prior": (DEFAULT, broken(threshold=WithoutPrior)),
    "filled by Bayes": (DEFAULT, broken(FilledByExpectation)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_noticed(rule):
    print(f"seed {SEED}")
    X, anomalous = three_gaussians(SEED, 60)
    X[np.arange(20, 60, 5), 0] = np.nan
    settings, detector_type = BROKEN[rule]
    config = DetectorConfig(n_features=2, **settings)
    with pytest.raises(AssertionError):
        InStep(config, detector_type(config)).run(X, labels_late(anomalous, SEED, share=0.9))


@pytest.mark.parametrize("settings", [DEFAULT, PAPER], ids=["default", "paper"])
def test_without_a_broken_rule_nothing_is_noticed(settings):
    X, anomalous = three_gaussians(SEED, 60)
    X[np.arange(20, 60, 5), 0] = np.nan
    config = DetectorConfig(n_features=2, **settings)
    InStep(config, broken()(config)).run(X, labels_late(anomalous, SEED, share=0.9))
