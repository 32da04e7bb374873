import math

import numpy as np

from tests.app.harness import blobs


async def test_points_get_log_densities_and_nothing_is_learned(service):
    await service.observe(blobs(100))
    before = await service.export()
    answer = await service.accepted(
        "POST", "/density?stream=s", json={"points": [[0, 0], [3, 3], [1e200, 0], [None, 0]]}
    )
    inside, between, outside, _ = answer["log_density"]
    assert inside > between > outside
    assert all(map(math.isfinite, answer["log_density"]))
    scored = await service.accepted("POST", "/observe?stream=s&learn=false", json={"samples": [[0, 0]]})
    assert scored["score"] == [-inside]
    assert await service.export() == before


async def test_before_ready_there_is_no_density(service):
    await service.observe(blobs(30))
    problem = await service.refused("POST", "/density?stream=s", 409, "not_ready", json={"points": [[0, 0]]})
    assert problem["samples_needed"] == 2
    assert (await service.accepted("GET", "/density?stream=s"))["n_seen"] == 30


async def test_the_model_is_described(service):
    await service.observe(blobs(300))
    model = await service.accepted("GET", "/density?stream=s")
    assert model["n_learned"] == model["n_seen"] == 300
    assert sum(node["weight"] for node in model["nodes"]) == 1 or math.isclose(
        sum(node["weight"] for node in model["nodes"]), 1
    )


async def test_a_grid_holds_the_marginal(service):
    await service.observe([{"a": x, "b": y} for x, y in blobs(200).tolist()])
    grid = await service.accepted("GET", "/density/grid?stream=s&x=b&y=a&size=8")
    assert np.array(grid["log_density"]).shape == (8, 8)
    points = [{"a": grid["y_values"][2], "b": grid["x_values"][5]}]
    answer = await service.accepted("POST", "/density?stream=s", json={"points": points})
    np.testing.assert_allclose(answer["log_density"][0], grid["log_density"][2][5])
