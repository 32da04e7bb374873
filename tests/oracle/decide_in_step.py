"""Runs core's decisions and the oracle's side by side on scores alone, and compares all that is decided."""

import numpy as np

from core import DetectorConfig
from core.arrays import BoolArray
from core.decision.rule import DecisionRule, Decisions
from tests.oracle.in_step import close
from tests.oracle.naive_decision import NaiveDecision


def in_stretches() -> BoolArray:
    """A short incident, an outage, and a change that lasts for a while."""
    anomalous = np.zeros(1800, bool)
    for start, length in ((300, 12), (950, 340), (1500, 70)):
        anomalous[start : start + length] = True
    return anomalous


def decide_in_step(
    config: DetectorConfig,
    anomalous: BoolArray,
    rng: np.random.Generator,
    labelled: float,
    far: float = 2.0,
    naive_type: type[NaiveDecision] = NaiveDecision,
) -> list[int]:
    """Decide the same samples by both, with labels for a share of them; the events. AssertionError where they differ.

    Samples with ties, holes, and values that stand still in the third of four quarters; a time is missing often.
    """
    n = len(anomalous)
    scores = np.round(rng.normal(size=n) + far * anomalous, 2)
    X = np.round(rng.normal(size=(n, 2)), 1)
    X[n // 2 : 3 * n // 4, 1] = np.where(anomalous, 7.0, X[:, 1])[n // 2 : 3 * n // 4]
    X[rng.random(n) < 0.1, 0] = np.nan
    times = np.where(rng.random(n) < 0.3, np.nan, np.cumsum(rng.exponential(5.0, n)))
    fast, naive = DecisionRule(config, 1.5), naive_type(config, 1.5)
    known, events = np.zeros(n, int), list[int]()
    for i in range(20):
        fast.warm_up(i + 1, X[i : i + 1], scores[i : i + 1])
        naive.warm_up(i + 1, X[i], scores[i])
    for start in range(20, n, 37):
        rows = range(start, min(start + 37, n))
        decided = fast.decide(start + 1, X[start : rows.stop], scores[start : rows.stop], times[start : rows.stop])
        expected = [naive.decide(i + 1, X[i], scores[i], times[i]) for i in rows]
        for name, column in decided._asdict().items():
            close(name, start, column, [getattr(row, name) for row in expected])
        events += decided.event.tolist()
        told = rng.random(len(rows)) < labelled
        for i in rows:
            if told[i - start]:
                new = int(rng.choice([-1, -1, 0, 1])) if labelled < 0.1 else 1 if anomalous[i] else -1
                tell(fast, naive, i + 1, scores[i], decided, i - start, int(known[i]), new)
                known[i] = new
        fast.follow_labels()
        if told.any():
            naive.follow()
        close("threshold", rows.stop, fast.value, naive.value)
    return events


def tell(
    fast: DecisionRule, naive: NaiveDecision, seq: int, score: float, decided: Decisions, i: int, old: int, new: int
) -> None:
    for rule in (fast, naive):
        rule.label(seq, float(score), float(decided.level[i]), new)
    naive.label_incident(seq, new)
    if decided.incident[i] and decided.incident[i] == fast.incidents.id:
        fast.incidents.label(new, old, flagged=bool(decided.is_anomaly[i]))
    assert fast.incident == naive.open_incident()
