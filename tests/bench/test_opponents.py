"""The paper's opponents against what they are defined as."""

import numpy as np
import pytest
from scipy.stats import gaussian_kde, multivariate_normal

from bench.paper.opponents import (
    PRIOR_COUNT,
    BestGaussian,
    RunningGaussian,
    WindowedKernel,
    WindowedMixture,
    gaussian_log_density,
)
from bench.paper.streams import three_gaussians
from bench.protocol import Model, log_loss, prequential
from core.arrays import FloatArray

RNG = np.random.default_rng(3)
SAMPLES = RNG.normal(size=(100, 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]]) + [3.0, -1.0]


def learned(model: Model, X: FloatArray) -> Model:
    for x in X:
        model.learn(x[None])
    return model


def test_the_gaussian_density_is_scipys() -> None:
    covariance = np.array([[2.0, 0.3], [0.3, 0.5]])
    ours = gaussian_log_density(SAMPLES, np.array([3.0, 0.0]), covariance)
    assert ours == pytest.approx(multivariate_normal([3.0, 0.0], covariance).logpdf(SAMPLES))


def test_ml_is_the_gaussian_of_all_past_samples_and_the_prior() -> None:
    model = learned(RunningGaussian(2), SAMPLES)
    n = len(SAMPLES) + PRIOR_COUNT
    mean = SAMPLES.sum(0) / n
    # the prior's pseudo-samples lie at 0, with covariance I
    scatter = SAMPLES.T @ SAMPLES + PRIOR_COUNT * np.eye(2) - n * np.outer(mean, mean)
    assert model.score(SAMPLES) == pytest.approx(-multivariate_normal(mean, scatter / n).logpdf(SAMPLES))


def test_wkde_is_scipys_with_silvermans_bandwidth_on_one_feature() -> None:
    one = SAMPLES[:, :1]
    model = learned(WindowedKernel(1), one)
    window = one[-10:, 0]
    # scipy divides the variance by n - 1, ours adds the prior's pseudo-samples
    ratio = ((window - window.mean()) ** 2).sum() + PRIOR_COUNT
    factor = (4 / (3 * 10)) ** 0.2 * np.sqrt(ratio / (10 + PRIOR_COUNT)) / window.std(ddof=1)
    assert model.score(one) == pytest.approx(-gaussian_kde(window, factor).logpdf(one[:, 0]))


def test_wgmm_forgets_what_is_older_than_its_window() -> None:
    # ceil(log2 100) = 7 samples
    models = [learned(WindowedMixture(2, 2), X) for X in (SAMPLES, np.concatenate([SAMPLES[:93] + 50, SAMPLES[93:]]))]
    scores = [model.score(SAMPLES) for model in models]
    assert scores[0] == pytest.approx(scores[1])


def test_wgmm_of_one_component_is_its_windows_gaussian() -> None:
    model = learned(WindowedMixture(2, 1, 0.1), SAMPLES)
    window = SAMPLES[-7:]
    mean = window.sum(0) / 7.1
    deviation = window - mean
    covariance = (deviation.T @ deviation + 0.1 * np.eye(2)) / 7.1
    assert model.score(SAMPLES) == pytest.approx(-multivariate_normal(mean, covariance).logpdf(SAMPLES), abs=0.01)


def test_wgmm_with_components_tells_clusters_apart() -> None:
    clusters = SAMPLES * 0.05 + np.where(np.arange(100) % 2, 4, -4)[:, None]
    one, two = (learned(WindowedMixture(2, k), clusters).score(clusters).mean() for k in (1, 2))
    assert two < one - 0.5


@pytest.mark.parametrize("make", [RunningGaussian, WindowedKernel, lambda m: WindowedMixture(m, 3)])
def test_every_opponent_has_a_density_from_the_first_round_on(make: type) -> None:
    X, anomalous = three_gaussians(0, 60)
    assert np.isfinite(prequential(make(2), X, anomalous, normals_only=True).scores).all()
    axis = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    assert np.exp(-learned(make(2), X).score(grid)).sum() * 0.01 == pytest.approx(1, abs=0.02)


def test_no_single_gaussian_beats_the_best_in_hindsight() -> None:
    X, anomalous = three_gaussians(0, 500)
    runs = [prequential(m, X, anomalous, normals_only=True) for m in (BestGaussian(X[~anomalous]), RunningGaussian(2))]
    best, running = (log_loss(run.scores, anomalous).per_normal_round for run in runs)
    assert best == pytest.approx(3.42, abs=0.05)
    assert best < running < best + 0.3
