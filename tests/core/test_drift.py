"""Streams that change: how soon a new regime is known, and the old one forgotten, as docs/configuration.md says."""

import numpy as np
import pytest

from core import Detector, DetectorConfig

RNG = np.random.default_rng(0)
OLD, NEW = RNG.normal(size=(3000, 2)), RNG.normal(size=(2000, 2)) * 0.7 + [6.0, -4.0]
DRIFTING = RNG.normal(size=(4000, 2)) + np.linspace(0.0, 13.0, 4000)[:, None]


def scores(X: np.ndarray, half_life: float | None) -> np.ndarray:
    return Detector(DetectorConfig(n_features=2, half_life_samples=half_life)).observe(X).score


@pytest.mark.parametrize(("half_life", "absorbed_after"), [(None, 1200), (200.0, 200), (1000.0, 500)])
def test_an_abrupt_change_is_absorbed(half_life, absorbed_after):
    """Then the new regime scores as if it had been the only one."""
    alone = np.nanmean(scores(NEW, half_life)[1000:])
    after = scores(np.concatenate([OLD, NEW]), half_life)[len(OLD) :]
    assert after[:50].mean() > alone + 3
    assert after[absorbed_after : absorbed_after + 300].mean() < alone + 0.5


def test_a_half_life_forgets():
    """After seven half-lives of another regime the old one is as strange as if it had hardly been seen."""
    strange = []
    for half_life in (None, 200.0):
        detector = Detector(DetectorConfig(n_features=2, half_life_samples=half_life))
        detector.observe(np.concatenate([OLD, NEW[:1400]]))
        strange.append(detector.score(OLD[:300]).mean())
    assert strange[1] > strange[0] + 2


def test_a_half_life_follows_a_gradual_drift():
    """13 deviations in 4000 samples: a model of the whole past spreads out, one that forgets keeps up."""
    whole, recent = (scores(DRIFTING, half_life)[-1500:].mean() for half_life in (None, 200.0))
    assert recent < 3.8
    assert whole > recent + 0.7
