"""Flat streams: scores creep by hundredths of a nat as the model is estimated again, and that is no news."""

import numpy as np
import pytest

from core import Detector, DetectorConfig


@pytest.mark.parametrize("row", [500, 1805, 2000, 2048, 2100, 2150])
def test_a_flat_stream_flags_its_jump_alone(row):
    X = np.full((row + 600, 1), 3.3)
    X[row] = 9.0
    flagged = np.flatnonzero(Detector(DetectorConfig(n_features=1)).observe(X).is_anomaly)
    assert flagged.tolist() == [row]


def test_severity_and_threshold_say_the_same_of_scores_that_creep():
    rng = np.random.default_rng(1)
    X = 3.3 + 1e-9 * rng.normal(size=(3000, 1))
    seen = Detector(DetectorConfig(n_features=1)).observe(X)
    ready = seen.ready
    limit = seen.severity[ready][seen.is_anomaly[ready]].min(initial=np.inf)
    assert seen.severity[ready][~seen.is_anomaly[ready]].max() <= limit
