"""Grids of the density: the same numbers as in one piece, in little memory, and not computed twice."""

import asyncio
import time
import tracemalloc

import numpy as np
import pytest

from app.streams.views import grids
from tests.app.harness import Service, blobs

PATH = "/density/grid?stream=s&x=0&y=1"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the sizes of the grids that were computed."""
    sizes: list[int] = []
    compute = grids.computed

    async def count(detector, pair, size):
        sizes.append(size)
        return await compute(detector, pair, size)

    monkeypatch.setattr(grids, "computed", count)
    return sizes


async def grow(service: Service, n: int = 1000) -> None:
    """Observe so many samples of 40 clusters: the model has many nodes then."""
    rng = np.random.default_rng(0)
    centres = 60.0 * rng.random((40, 2))
    await service.observe(centres[rng.integers(0, 40, n)] + rng.normal(size=(n, 2)))


async def test_in_slices_the_numbers_are_the_same(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await grow(service)
    detector = service.registry.peek("s").detector
    x, y, whole = detector.density_grid(0, 1, 40)
    monkeypatch.setattr(grids, "MAX_VALUES", 7 * detector.n_nodes)
    grid = await service.accepted("GET", f"{PATH}&size=40")
    assert np.array_equal(grid["log_density"], whole)
    assert np.array_equal(grid["x_values"], x)
    assert np.array_equal(grid["y_values"], y)


async def test_one_model_is_shown_though_the_stream_goes_on(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await grow(service)
    detector = service.registry.peek("s").detector
    _, _, before = detector.density_grid(0, 1, 32)
    monkeypatch.setattr(grids, "MAX_VALUES", detector.n_nodes)
    seq = detector.next_seq - 1
    asked = asyncio.create_task(service.accepted("GET", f"{PATH}&size=32"))
    for _ in range(20):
        await asyncio.sleep(0)
    await service.observe(blobs(600))
    assert not asked.done()
    grid = await asked
    assert grid["as_of_seq"] == seq
    assert np.array_equal(grid["log_density"], before)
    assert not np.array_equal(before, detector.density_grid(0, 1, 32)[2])


async def test_the_last_one_is_kept_until_the_stream_goes_on(service: Service, computed: list[int]) -> None:
    await service.observe(blobs(100))
    first = await service.accepted("GET", f"{PATH}&size=8")
    assert await service.accepted("GET", f"{PATH}&size=8") == first
    assert computed == [8]
    await service.feedback({"seq": 90, "anomaly": True})
    labelled = await service.accepted("GET", f"{PATH}&size=8")
    await service.observe(blobs(1))
    assert (await service.accepted("GET", f"{PATH}&size=8"))["as_of_seq"] == labelled["as_of_seq"] + 1
    assert computed == [8, 8, 8]
    await service.accepted("GET", "/density/grid?stream=s&x=1&y=0&size=8")
    await service.accepted("GET", "/density/grid?stream=s&x=1&y=0&size=9")
    assert computed == [8, 8, 8, 8, 9]


async def test_another_stream_of_the_same_name_has_its_own(service: Service, computed: list[int]) -> None:
    for seed in (0, 1):
        await service.observe(blobs(100, seed=seed))
        await service.accepted("GET", f"{PATH}&size=8")
        await service.http.delete("/streams/s")
    assert computed == [8, 8]


async def test_who_asks_at_the_same_time_shares_one(service: Service, computed: list[int]) -> None:
    await grow(service)
    answers = await asyncio.gather(*(service.accepted("GET", f"{PATH}&size=64") for _ in range(20)))
    assert computed == [64]
    assert all(answer == answers[0] for answer in answers)


async def test_who_waited_while_the_stream_went_on_shares_too(
    service: Service, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    await grow(service)
    monkeypatch.setattr(grids, "MAX_VALUES", 2000)
    asked = [asyncio.create_task(service.accepted("GET", f"{PATH}&size=64")) for _ in range(20)]
    while not all(task.done() for task in asked):
        await service.observe(blobs(1))
    # the first, and for all that came after it had begun one more
    assert len(computed) <= 2


async def test_so_many_are_cached_and_no_more(service: Service, computed: list[int]) -> None:
    for k in range(grids.MAX_CACHED + 1):
        await service.observe(blobs(40), f"s{k}")
        await service.accepted("GET", f"/density/grid?stream=s{k}&x=0&y=1&size=2")
    n_computed = len(computed)
    for k in (1, grids.MAX_CACHED):
        await service.accepted("GET", f"/density/grid?stream=s{k}&x=0&y=1&size=2")
    assert len(computed) == n_computed
    await service.accepted("GET", "/density/grid?stream=s0&x=0&y=1&size=2")
    assert len(computed) == n_computed + 1


async def test_the_largest_grid_takes_little_memory(service: Service) -> None:
    await grow(service, 4000)
    tracemalloc.start()
    try:
        assert (await service.http.get(f"{PATH}&size=256")).status_code == 200
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6


async def test_others_have_their_turn_while_the_largest_grid_is_computed(service: Service) -> None:
    await grow(service, 4000)
    asked, waits = asyncio.create_task(service.http.get(f"{PATH}&size=256")), []
    while not asked.done():
        # CPU, not time: that depends on what else runs on the machine
        began = time.thread_time()
        await asyncio.sleep(0)
        assert (await service.http.get("/livez")).status_code == 200
        waits.append(time.thread_time() - began)
    assert (await asked).status_code == 200
    assert len(waits) > 20
    assert np.quantile(waits, 0.99) < 0.05
