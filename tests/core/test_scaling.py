"""The affine scaling: what it is, what an outlier does to it, and that nothing overflows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import DetectorConfig
from core.scaling import LIMIT, Scaling, estimated
from core.scaling import given as given_by

WIDE = st.floats(allow_nan=False, allow_infinity=False)


def test_normal_samples_scale_to_about_unit():
    X = np.random.default_rng(0).normal([5.0, -1e6], [1e-3, 1e4], (4096, 2))
    Z = estimated(X).apply(X)
    assert np.abs(Z.mean(0)).max() < 0.05
    assert np.abs(Z.std(0) - 1).max() < 0.05


def test_a_shift_or_change_of_unit_makes_no_difference():
    X = np.random.default_rng(0).normal(size=(64, 2))
    Z = estimated(X).apply(X)
    for unit, shift in ((1.0, 1e9), (1e-12, 0.0), (1e12, -1e20)):
        moved = X * unit + shift
        assert np.abs(estimated(moved).apply(moved) - Z).max() < 1e-6


def test_one_outlier_moves_neither_location_nor_scale():
    X = np.random.default_rng(0).normal(size=(64, 1))
    calm = estimated(X)
    X[7] = 1e308
    disturbed = estimated(X)
    assert abs(disturbed.location[0] - calm.location[0]) < 0.2
    assert 0.7 < disturbed.scale[0] / calm.scale[0] < 1.4


@pytest.mark.parametrize(
    ("column", "location", "scale"),
    [
        ([7.0] * 32, 7.0, 1.0),
        ([7.0] * 31 + [8.0], 7.0, 1.0),  # one value that differs says nothing of the usual size
        ([7.0] * 29 + [9.0, 11.0, 12.0], 7.0, 4.0),
        ([np.nan] * 32, 0.0, 1.0),
        ([np.nan] * 31 + [5.0], 5.0, 1.0),
    ],
)
def test_constant_and_unknown_features(column, location, scale):
    found = estimated(np.array(column)[:, None])
    assert (found.location[0], found.scale[0]) == (location, scale)


@given(st.lists(WIDE, min_size=1, max_size=9), st.lists(WIDE, min_size=1, max_size=5))
def test_finite_and_never_overflowing_for_all_doubles(column, others):
    scaling = estimated(np.array(column)[:, None])
    Z = scaling.apply(np.array(others + column)[:, None])
    assert scaling.scale[0] > 0
    assert np.isfinite(scaling.log_volume)
    assert (np.abs(Z) <= LIMIT).all()
    order = np.argsort(others)
    assert (np.diff(scaling.apply(np.array(others)[order][:, None])[:, 0]) >= 0).all()


def test_missing_stays_missing():
    assert np.isnan(Scaling(np.zeros(1), np.ones(1)).apply(np.array([[np.nan]])))[0, 0]


def test_a_given_scaling_is_the_users():
    config = DetectorConfig(n_features=1, scaling={"location": [2.0], "scale": [4.0]})
    scaling = given_by(config)
    assert scaling is not None
    assert scaling.apply(np.array([[10.0]])).tolist() == [[2.0]]
    assert scaling.log_volume == pytest.approx(np.log(4.0))
    assert given_by(DetectorConfig(n_features=1)) is None
