"""A decision rule of each threshold, with defaults, and what tests do with it."""

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.decision.rule import DecisionRule, Decisions

RULES = ["weighted", "hindsight", "ogd", "fixed"]
FOLLOWING = ["weighted", "hindsight"]
SCORES = np.random.default_rng(0).gamma(2.0, 1.0, 1000)


class Rule(DecisionRule):
    """Numbers the samples itself; their values never stand still, and they have no times."""

    n_decided = 0

    def pass_by(self, scores: FloatArray) -> Decisions:
        seq = self.n_decided + 1
        self.n_decided += len(scores)
        X = np.arange(seq, self.n_decided + 1.0)[:, None]
        return self.decide(seq, X, np.asarray(scores, float), np.full(len(scores), np.nan))

    def goes_on_from(self, other: "Rule") -> "Rule":
        self.load(other.state(), 1, other.n_decided + 1)
        self.n_decided = other.n_decided
        return self


def rule_of(name: str, *, log_volume: float = 0.0, **fields) -> Rule:
    if name == "fixed":
        fields["threshold_value"] = fields.get("threshold_value", 4.0)
    return Rule(DetectorConfig(n_features=1, threshold=name, **fields), log_volume)


def labelled(rule: Rule, scores, label: int, *, first_seq: int = 1) -> Rule:
    for seq, score in enumerate(scores, first_seq):
        rule.label(seq, float(score), 0.0, label)
    rule.follow_labels()
    return rule


def flags(rule: Rule) -> float:
    return float((rule.value < SCORES).mean())
