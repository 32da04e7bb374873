"""The sizes that core.sizes promises, against detectors that have grown as far as they can."""

import numpy as np
import pytest

from core import Detector, DetectorConfig
from core.feedback.costs import MAX_BINS, RunningCosts
from core.sizes import COST_NUMBERS, NUMBER_BYTES, sizes_of
from tests.core.samples import clusters

GROWN = {
    "default": {"n_features": 2, "split": "both", "beta": 1.05, "max_nodes": 31},
    "relative": {"n_features": 2, "split": "both", "beta": 1.05, "max_nodes": 7, "drift_relative": True},
    "diagonal": {"n_features": 70, "split": "both", "beta": 1.05, "max_nodes": 5},
    "calendar": {"n_features": 2, "split": "both", "beta": 1.05, "max_nodes": 15, "calendar": {"periods": ["day", 50]}},
    "context": {
        "features": ({"name": "a"}, {"name": "b", "role": "context"}, {"name": "c", "role": "context"}),
        "split": "both",
        "beta": 1.05,
        "max_nodes": 15,
    },
    "paper": {"n_features": 2, "profile": "paper", "learn_from": "all", "beta": 1.05, "max_nodes": 31},
}
HEADER_OF_RECORDS = 16


@pytest.mark.parametrize("fields", GROWN.values(), ids=list(GROWN))
def test_a_detector_takes_no_more_than_its_sizes(fields):
    detector = Detector(DetectorConfig(**fields))
    X, times = clusters(2000, detector.config.n_features, missing=0.1), np.arange(2000.0)
    X[:, 0] = np.nan_to_num(X[:, 0])  # context alone is no sample
    sizes = sizes_of(detector.config)
    for start in range(0, len(X), 100):
        records = detector.observe(X[start : start + 100], times[start : start + 100]).records
        records = detector.feedback(records, [bool(seq % 3) for seq in records.seq]).records
        assert all(len(records[i].to_bytes()) <= sizes.record_bytes + HEADER_OF_RECORDS for i in range(len(records)))
    assert detector.n_nodes >= detector.config.max_nodes - 1
    assert len(detector.to_bytes()) < sizes.snapshot_bytes < sizes.memory_bytes


def test_the_costs_take_no_more_than_their_share():
    costs = RunningCosts(1.0, 1.0)
    for i in range(2 * MAX_BINS):
        costs.relabel(float(i), i % 2 == 0, 0, 1 if i % 3 else -1)
    most = NUMBER_BYTES * COST_NUMBERS
    assert most / 2 < sum(array.nbytes for array in costs.state().values()) <= most
