"""A service that was stopped, or that crashed, goes on as one that never ended."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from tests.app.harness import NOW, FakeClock, Service, blobs

X = blobs(400, 3)


@pytest.fixture(params=["memory", "sqlite"])
def reopen(request, tmp_path) -> Callable[[], Any]:
    """Give what opens the same store again."""
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "itan.db")
    store = MemoryStore()
    return lambda: store


async def step(service: Service, number: int) -> dict[str, Any]:
    """Do the next thing of a day: observe a batch, and label what came before."""
    start, size = 40 * number, 40
    ids = [f"i{i}" for i in range(start, start + size)]
    times = [NOW + i for i in range(start, start + size)]
    observed = await service.observe(X[start : start + size], ids=ids, timestamps=times)
    labels = [{"id": f"i{i}", "anomaly": bool(X[i].max() > 15)} for i in range(max(0, start - 60), start, 7)]
    labelled = await service.feedback(*labels) if labels else {}
    return {"observed": observed, "labelled": labelled}


DAY = 10


@pytest.fixture(scope="module")
def unbroken() -> tuple[list[dict[str, Any]], bytes]:
    """Give what a service says that never ends, and its state."""

    async def live() -> tuple[list[dict[str, Any]], bytes]:
        async with Service() as service:
            return [await step(service, number) for number in range(DAY)], await service.export()

    return asyncio.run(live())


@pytest.mark.parametrize("end", ["stop", "crash", "crash after a snapshot"])
async def test_the_scores_are_those_of_an_unbroken_run(reopen, end, unbroken):
    said = []
    for number in range(DAY):
        async with Service(reopen()) as service:
            said.append(await step(service, number))
            if end == "crash after a snapshot" and number % 3 == 0:
                await service.registry.save(service.registry.sessions["s"])
            if end != "stop":
                await service.crash()
    async with Service(reopen()) as service:
        state = await service.export()
        assert await service.metric("itan_replay_mismatches_total", reason="other") == 0
    assert said == unbroken[0]
    if end == "crash":
        assert state == unbroken[1]


async def test_ids_and_labels_live_through_a_crash(reopen):
    async with Service(reopen()) as service:
        first = await step(service, 0)
        second = await step(service, 1)
        await service.crash()
    async with Service(reopen()) as service:
        assert (await step(service, 0))["observed"] == first["observed"]
        assert second["labelled"]["outcomes"]["applied"] == 6
        again = await service.feedback({"id": "i7", "anomaly": bool(X[7].max() > 15)}, {"seq": 80, "anomaly": False})
        assert again["outcome"] == ["duplicate", "applied"]


async def test_reset_and_import_live_through_a_crash(reopen):
    async with Service(reopen()) as service:
        await step(service, 0)
        exported = await service.export()
        await service.accepted("POST", "/streams/s/reset")
        await step(service, 1)
        path = "/streams/t/import"
        await service.accepted("PUT", path, content=exported, headers={"Content-Type": "application/octet-stream"})
        states = [await service.export(name) for name in "st"]
        await service.crash()
    async with Service(reopen()) as service:
        assert [await service.export(name) for name in "st"] == states
        assert (await service.observe(X[:1], "t"))["seq"] == [41]


CUTS = st.lists(st.tuples(st.integers(1, 60), st.sampled_from(["go on", "crash", "stop", "save"])), max_size=8)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CUTS)
def test_however_the_day_is_cut(cuts):
    asyncio.run(compare(cuts))


async def compare(cuts: list[tuple[int, str]]) -> None:
    """Run the same samples cut and whole."""
    store, scores, start = MemoryStore(), [], 0
    service = await Service(store).__aenter__()
    for size, then in cuts:
        if start + size > len(X):
            break
        scores += (await service.observe(X[start : start + size]))["score"]
        start += size
        if then == "save":
            await service.registry.save(service.registry.sessions["s"])
        elif then != "go on":
            await (service.crash() if then == "crash" else service.__aexit__())
            service = await Service(store).__aenter__()
    model = await service.accepted("GET", "/density?stream=s") if start else {}
    assert await service.metric("itan_replay_mismatches_total", reason="other") == 0
    await service.__aexit__()
    async with Service() as whole:
        if start:
            assert (await whole.observe(X[:start]))["score"] == scores
            assert await whole.accepted("GET", "/density?stream=s") == model


@pytest.mark.parametrize(("half_life", "spacing"), [(5.0, None), (3600.0, 40.0)])
async def test_a_pause_in_the_middle_ages_what_is_learned_once(tmp_path, half_life, spacing):
    """By the time of arrival over two seconds, and by timestamps; then killed, and back after a pause."""
    X, grid = blobs(900, 3, seed=4), blobs(20, 3, seed=5).tolist()

    async def feed(service: Service, rows: range) -> list[dict[str, Any]]:
        said = []
        for start in rows[::30]:
            part = slice(start, start + 30)
            times = {} if spacing is None else {"timestamps": [NOW + spacing * i for i in range(*part.indices(900))]}
            said.append(await service.observe(X[part], **times))
            service.clock.advance(0.2 if spacing is None else 30 * spacing)
        return said

    async def looks(service: Service) -> tuple[Any, ...]:
        density = await service.accepted("POST", "/density?stream=s", json={"points": grid})
        return density, await service.accepted("GET", "/density?stream=s"), await service.export()

    async def begun(service: Service) -> list[dict[str, Any]]:
        await service.accepted("PUT", "/streams/s", json={"n_features": 3, "half_life_seconds": half_life})
        return await feed(service, range(450))

    async with Service() as unbroken:
        first = await begun(unbroken)
        unbroken.clock.advance(4)
        expected = first, await feed(unbroken, range(450, 900)), await looks(unbroken)
    clock = FakeClock()
    service = await Service(SqliteStore(tmp_path / "itan.db"), clock).__aenter__()
    first, before = await begun(service), await looks(service)
    await service.crash()
    clock.advance(4)
    async with Service(SqliteStore(tmp_path / "itan.db"), clock) as again:
        assert await looks(again) == before
        assert (first, await feed(again, range(450, 900)), await looks(again)) == expected
        assert await again.metric("itan_replay_mismatches_total", reason="other") == 0
