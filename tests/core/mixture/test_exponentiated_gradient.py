"""A step of exponentiated gradient is that of Theorem 1."""

from math import log, sqrt

import numpy as np
import pytest

from core.mixture.exponentiated_gradient import RATIO_CAP
from tests.core.mixture.trees import learn, three


def test_one_step_of_exponentiated_gradient_is_theorem_1s():
    mixture = three("eg")
    f, alpha = np.array([0.2, 0.9, 0.001]), mixture.weights.copy()
    p = f @ alpha
    learn(mixture, np.log(f)[None])
    ratio = np.minimum(f / p, RATIO_CAP)
    R, A, T, complexity = max(1.0, ratio.max()), max(-log(p), 1e-3), 1, sqrt(log(3))
    theta = 2 * complexity / (R * sqrt(2 * A * T) + R**2 * complexity)
    moved = alpha * np.exp(theta * ratio)
    assert mixture.weights == pytest.approx(moved / moved.sum())
