"""The log in the store is as long as its limits allow; without an archive labels end where it does."""

import pytest

from app.settings import Settings
from app.storage.memory import MemoryStore
from app.streams.open.retention import from_share
from tests.app.archived import IDS, X, feed, move, oldest_in_store, settings
from tests.app.harness import FakeClock, Service

N = 60


async def save(service: Service) -> None:
    await service.registry.save(service.registry.sessions["s"])


async def test_without_an_archive_samples_and_their_labels_end_at_the_earlier_limit():
    async with Service(log_samples=20, label_horizon_samples=40) as service:
        await feed(service, 0, N)
        await save(service)
        assert await oldest_in_store(service) == N - 20 + 1
        labels = [{"seq": N - 20, "anomaly": True}, {"seq": N - 19, "anomaly": True}]
        assert (await service.feedback(*labels))["outcome"] == ["expired", "applied"]
        assert (await service.observe(X[:1], ids=IDS[:1]))["seq"] == [N + 1], "its id is forgotten too"


async def test_snapshots_come_often_enough_to_keep_a_short_log_short():
    async with Service(log_samples=40) as service:
        for last in range(1, N + 1):
            await service.observe(X[last - 1 : last])
            await service.snapshotter.save_due()
            assert last - await oldest_in_store(service) < 40 + 5
        assert await service.metric("itan_snapshots_total") <= N / 5


async def test_without_an_archive_the_log_ends_after_its_time():
    async with Service(log_seconds=100.0) as service:
        await feed(service, 0, 20)
        await save(service)
        service.clock.advance(101.0)
        for first in range(20, N, 4):  # age removes a tenth at a time
            await feed(service, first, first + 4)
            await save(service)
        assert 4 < await oldest_in_store(service) <= 21


@pytest.mark.parametrize("batch", [1, 4])
async def test_a_log_takes_no_more_bytes_than_it_may(batch):
    most = 6_000
    async with Service(log_bytes=most) as service:
        for start in range(0, N, batch):
            await service.observe(X[start : start + batch], ids=IDS[start : start + batch])
            if start % 20 == 0:
                await service.feedback({"seq": start + 1, "anomaly": True})
        assert (await service.store.size("s")).log_bytes > most
        await save(service)
        assert most / 2 < (await service.store.size("s")).log_bytes <= most
        oldest = await oldest_in_store(service)
        labels = [{"seq": oldest - 1, "anomaly": False}, {"seq": oldest, "anomaly": False}]
        assert (await service.feedback(*labels))["outcome"][0] == "expired"


async def test_a_log_moves_to_the_archive_when_it_takes_too_many_bytes(tmp_path):
    most = 8_000
    async with Service(**settings(tmp_path, log_samples=None, log_bytes=most)) as service:
        await feed(service, 0, N)
        await move(service)
        assert most / 4 < (await service.store.size("s")).log_bytes <= most * 7 / 8
        assert (await service.feedback({"seq": 1, "anomaly": True}))["outcome"] == ["applied"]


async def test_a_log_moves_to_the_archive_when_it_is_old(tmp_path):
    async with Service(
        **settings(tmp_path, log_samples=None, log_seconds=1000.0, label_horizon_seconds=10_000.0)
    ) as service:
        for first in range(0, N, 12):
            await feed(service, first, first + 12)
            await save(service)
            service.clock.advance(250.0)
        await feed(service, N, N + 4)
        await move(service)
        assert 13 < await oldest_in_store(service) <= 37
        assert (await service.feedback({"seq": 1, "anomaly": True}))["outcome"] == ["applied"]


async def test_a_silent_log_moves_to_the_archive(tmp_path):
    clock = FakeClock()
    given = settings(tmp_path, log_samples=None, log_seconds=1000.0)
    async with Service(MemoryStore(clock.monotonic), clock, **given) as service:
        await feed(service, 0, N)
        await save(service)
        async with service.registry.changing("s") as session:
            session.forget()
        clock.advance(100_000.0)
        for _ in range(2):
            await service.app.state.sweeper.sweep()
            await service.app.state.archiver.work()
            assert "s" not in service.registry.sessions
        assert (await service.store.size("s")).log_entries == 0
        assert not await service.app.state.sweeper._is_old("s", (await service.store.silences(["s"]))["s"])
        for seq in (1, N):  # at the end of a log that is empty by now
            assert (await service.feedback({"seq": seq, "anomaly": True}))["outcome"] == ["applied"]
        clock.advance(10_000.0)
        await feed(service, N, N + 4)
        await move(service)
        clock.advance(100_000.0)
        await feed(service, N + 4, N + 8)
        await move(service)
        assert (await service.feedback({"seq": N, "anomaly": True}))["outcome"] == ["duplicate"]
        assert len(await service.store.files("s")) == 2


def test_the_limits_of_the_store_bound_labels_only_without_an_archive():
    given = {"label_horizon_samples": 100, "label_horizon_seconds": 100.0, "log_samples": 10, "log_seconds": 10.0}
    bare, archived = Settings(**given), Settings(**given, archive="/somewhere")
    assert (bare.horizon_samples, bare.horizon_seconds) == (10, 10.0)
    assert (archived.horizon_samples, archived.horizon_seconds) == (100, 100.0)
    assert (archived.kept_samples, archived.kept_seconds) == (10, 10.0)
    assert Settings(log_samples=10**9).horizon_samples == 1_000_000


def test_a_share_of_the_samples_always_drops_some_if_it_is_below_one():
    assert from_share(1, 101, 1.2) == 1
    assert from_share(1, 101, 0.5) == 51
    assert from_share(1, 2, 0.999) == 2
    assert from_share(7, 7, 0.5) == 7
