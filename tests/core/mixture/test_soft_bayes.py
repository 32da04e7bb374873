"""A step of Soft-Bayes is that of its formula."""

import numpy as np
import pytest

from core.mixture.learning_rates import SOFT_BAYES_RATE
from tests.core.mixture.trees import learn, three


def test_one_step_of_soft_bayes():
    mixture = three("soft_bayes")
    for t in range(200):
        f, alpha = np.array([0.2, 0.9, 0.001 * t]) + 1e-9, mixture.weights.copy()
        learn(mixture, np.log(f)[None])
        rate = max(SOFT_BAYES_RATE, 1 / (t + 2))
        moved = alpha * ((1 - rate) + rate * f / (f @ alpha))
        assert mixture.weights == pytest.approx(moved / moved.sum())
