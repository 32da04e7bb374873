"""Every rule, with defaults, and what tests do with it."""

import numpy as np

from core.config import DetectorConfig
from core.threshold import Threshold, threshold_of

RULES = ["weighted", "hindsight", "ogd", "fixed"]
FOLLOWING = ["weighted", "hindsight"]
SCORES = np.random.default_rng(0).gamma(2.0, 1.0, 1000)


def rule_of(name: str, *, log_volume: float = 0.0, **fields) -> Threshold:
    if name == "fixed":
        fields["threshold_value"] = 4.0
    return threshold_of(DetectorConfig(n_features=1, threshold=name, **fields), log_volume)


def labelled(rule: Threshold, scores, label: int, *, first_seq: int = 1) -> Threshold:
    for seq, score in enumerate(scores, first_seq):
        rule.label(seq, float(score), label)
    rule.settle()
    return rule


def flags(rule: Threshold) -> float:
    return float((rule.value < SCORES).mean())
