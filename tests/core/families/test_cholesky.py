"""A factor for every covariance, however bad."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.families.cholesky import factor


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 3))
def test_a_good_covariance_is_factorised_exactly(seed, m, nodes):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(nodes, m, m + 2))
    scales = 10.0 ** rng.uniform(-12, 12, size=(nodes, m))
    covariances = A @ A.transpose(0, 2, 1) * scales[:, :, None] * scales[:, None, :]
    lower, deviations = factor(covariances)
    L = deviations[:, :, None] * lower
    size = deviations[:, :, None] * deviations[:, None, :]
    assert np.abs((L @ L.transpose(0, 2, 1) - covariances) / size).max() < 1e-12
    assert not np.triu(lower, 1).any()


@pytest.mark.parametrize(
    "correlation",
    [
        np.ones((4, 4)),
        [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
        [[1, -1], [-1, 1]],
        [[1, 1 + 1e-15], [1 + 1e-15, 1]],
        [[1, 5], [5, 1]],
        [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]],
        [[1, 1e180], [1e180, 1]],
    ],
)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_bad_covariance_is_factorised_all_the_same(correlation, scale):
    """One-hot columns and copies: a factorisation that raises stops the stream, one with negative pivots poisons it."""
    bad = np.array(correlation, float) * scale * scale
    good = np.eye(len(bad)) * scale * scale
    lower, deviations = factor(np.stack([good, bad]))
    assert np.isfinite(lower).all()
    assert np.allclose(deviations, scale)
    assert (np.einsum("nii->ni", lower) > 0).all()
    assert np.array_equal(lower[0], np.eye(len(bad)))


def test_dependent_features_are_shrunk_by_as_little_as_helps():
    lower, _ = factor(np.ones((1, 3, 3)))
    assert np.abs(lower[0] @ lower[0].T - 1).max() <= 1e-9


def test_one_bad_covariance_leaves_the_factors_of_the_others_alone():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 7))
    alone = factor((A @ A.T)[None])[0][0]
    beside = factor(np.stack([np.ones((5, 5)), A @ A.T]))[0][1]
    assert np.array_equal(alone, beside)
