"""What people are shown is the model itself, in their units."""

import json

import numpy as np
import pytest
from scipy.stats import multivariate_t, t

from tests.core.samples import clusters, detector

UNITS, ORIGIN = np.array([1e-6, 3.0, 1e9]), np.array([5.0, -1e6, 1e12])


def trained(**fields):
    model = detector(3, **fields)
    model.observe(clusters(400) * UNITS + ORIGIN)
    return model


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_the_described_mixture_is_the_density(family):
    """Sum of weight times Student t, over the nodes as described, in the user's units, Jacobian included."""
    model = trained(family=family)
    nodes = model.describe()["nodes"]
    assert len(nodes) > 5
    X = clusters(50, seed=1) * UNITS + ORIGIN
    unit = (X - ORIGIN) / UNITS
    density = np.zeros(50)
    for node in nodes:
        mean = (np.array(node["mean"]) - ORIGIN) / UNITS
        covariance = np.array(node["covariance"]) / UNITS / UNITS[:, None]
        freedom = node["degrees_of_freedom"]
        if family == "gaussian":
            part = multivariate_t(mean, covariance, freedom).pdf(unit)
        else:
            part = t.pdf(unit, freedom, mean, np.sqrt(np.diag(covariance))).prod(1)
        density += node["weight"] * part / UNITS.prod()
    near = density > 1e-250
    assert near.sum() > 40
    assert np.allclose(model.score(X)[near], -np.log(density[near]), rtol=1e-5, atol=1e-4)


def test_the_described_hyperplanes_send_samples_to_the_described_children():
    model = trained()
    seen = model.describe()
    nodes, X = seen["nodes"], clusters(400) * UNITS + ORIGIN
    held = {0: np.ones(400, bool)}
    for plane in seen["hyperplanes"]:
        above = X @ np.array(plane["normal"]) >= plane["offset"]
        held[plane["left"]] = held[plane["node"]] & above
        held[plane["right"]] = held[plane["node"]] & ~above
        assert nodes[plane["left"]]["parent"] == nodes[plane["right"]]["parent"] == plane["node"]
        assert nodes[plane["left"]]["level"] == nodes[plane["node"]]["level"] + 1
    internal = model.state.density.tree.membership(model.state.scaling.apply(X))
    calm = np.abs((X - ORIGIN) / UNITS).max(1) < 10  # what is not drawn in
    agree = np.stack([held[node["id"]] for node in nodes], axis=1)[calm] == internal[calm]
    assert agree.mean() > 0.999
    assert [n["leaf"] for n in nodes] == [n["id"] not in {p["node"] for p in seen["hyperplanes"]} for n in nodes]


@pytest.mark.parametrize("family", ["gaussian", "gaussian_diagonal"])
def test_a_grid_integrates_to_about_one(family):
    model = detector(3, family=family)
    X = clusters(400)
    X[60::50] /= 20
    model.observe(X * UNITS + ORIGIN)
    x, y, log_density = model.density_grid(2, 0, 121)
    assert log_density.shape == (121, 121)
    total = np.exp(log_density).sum() * (x[1] - x[0]) * (y[1] - y[0])
    assert total == pytest.approx(1, abs=0.05)


def test_a_grid_has_y_along_its_rows():
    model = detector(2)
    X = np.random.default_rng(0).normal([0, 100], [1, 1], (200, 2))
    model.observe(X)
    x, y, log_density = model.density_grid(0, 1, 41)
    row, column = np.unravel_index(log_density.argmax(), log_density.shape)
    assert abs(x[column]) < 1
    assert abs(y[row] - 100) < 1
    assert np.allclose(log_density[row, column], model.log_density([[x[column], y[row]]])[0])


@pytest.mark.parametrize("fields", [{}, {"profile": "paper", "learn_from": "all"}])
def test_a_description_is_json_at_every_time(fields):
    model = detector(3, **fields)
    for X in (np.zeros((0, 3)), clusters(10), clusters(200) * UNITS, clusters(20) * 1e300):
        model.observe(X)
        json.dumps(model.describe(), allow_nan=False)
