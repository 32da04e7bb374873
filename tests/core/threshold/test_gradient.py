"""Alg. 3's step, and its state."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import DetectorConfig
from core.threshold import Threshold, threshold_of


def rule_of(*, log_volume: float = 0.0, **fields) -> Threshold:
    return threshold_of(DetectorConfig(n_features=1, threshold="ogd", **fields), log_volume)


@pytest.mark.parametrize("log_volume", [0.0, 12.5, -700.0])
def test_gradient_step_is_the_papers(log_volume):
    low, high, c_anomalous, c_normal = 0.01, 0.5, 3.0, 0.5
    rule = rule_of(
        log_volume=log_volume,
        threshold_range=(low, high),
        cost_false_negative=c_anomalous,
        cost_false_positive=c_normal,
    )
    tau, cost, diameter = sqrt(low * high), {1: c_anomalous, -1: c_normal}, high - low
    for t, (p, d) in enumerate([(0.1, 1), (0.3, -1), (0.0001, 1), (7.0, -1)], 1):
        rule.label(t, log_volume - log(p), d)
        held = min(max(p, low), high)
        size = (1 + exp(diameter)) ** 2 / (t * min(cost.values()) * exp(diameter))
        tau = min(max(tau + size * d * cost[d] / (1 + exp((tau - held) * d)), low), high)
        assert rule.value == pytest.approx(log_volume - log(tau))


@given(st.floats(1e-300, 1e6), st.integers(1, 3))
def test_the_gradient_threshold_of_a_narrow_range_survives_a_snapshot(low, steps):
    high = low
    for _ in range(steps):
        high = float(np.nextafter(high, 1e7))
    if high > 1e6:
        return
    rule = rule_of(threshold_range=(low, high))
    rule_of(threshold_range=(low, high)).check(rule.state())
