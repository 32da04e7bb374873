"""The log in the store is as long as its limits allow; without an archive labels end where it does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from app.settings import Settings
from app.storage.memory import MemoryStore
from app.streams.log import compaction
from app.streams.open.retention import from_share
from tests.app.archived import IDS, X, feed, move, oldest_in_store, settings
from tests.app.harness import FakeClock, Service

N = 60
LEAST = 65_536
"""The least that a log may be limited to in bytes."""
GENERATOR = np.random.default_rng(5)


class Counting:
    """Counts the calls of a verb of the store."""

    def __init__(self, verb: Callable[..., Any]) -> None:
        self._verb, self.count = verb, 0

    async def __call__(self, *given: Any, **more: Any) -> Any:
        self.count += 1
        return await self._verb(*given, **more)


async def observe(service: Service, batch: int, features: int) -> None:
    await service.observe(GENERATOR.normal(size=(batch, features)), ids=[str(x) for x in GENERATOR.random(batch)])


async def fill(service: Service, batch: int, features: int = 8, *, n: int = 480) -> None:
    """Post samples, and a label for one in a while."""
    for start in range(0, n, batch):
        await observe(service, batch, features)
        if start % 40 == 0:
            await service.feedback({"seq": start + batch, "anomaly": True})


async def expect_labels_to_end_with_the_log(service: Service, batch: int = 1) -> None:
    oldest = await oldest_in_store(service)
    labels = [{"seq": oldest - 1, "anomaly": False}, {"seq": oldest + batch - 1, "anomaly": False}]
    assert (await service.feedback(*labels))["outcome"] == ["expired", "applied"]


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


@pytest.mark.parametrize("batch", [1, 8])
async def test_a_log_takes_no_more_bytes_than_it_may(batch):
    async with Service(log_bytes=LEAST, compact_log=False) as service:
        await fill(service, batch)
        assert (await service.store.size("s")).log_bytes > LEAST
        await save(service)
        assert LEAST / 2 < (await service.store.size("s")).log_bytes <= LEAST
        await expect_labels_to_end_with_the_log(service, batch)


async def in_blocks(n: int) -> MemoryStore:
    """Give a store with a stream "s" whose log is in blocks, as far as it fills them."""
    store = MemoryStore()
    async with Service(store) as service:
        await fill(service, 20, 64, n=n)
        await save(service)
        await service.app.state.compactor.compact_due()
    return store


async def save_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observe some more samples; one snapshot is enough to trim the log."""
    await observe(service, 5, 64)
    monkeypatch.setattr(service.store, "save_snapshot", saves := Counting(service.store.save_snapshot))
    await save(service)
    assert saves.count == 1


async def test_blocks_that_are_too_many_go_with_one_snapshot(monkeypatch):
    monkeypatch.setattr(compaction, "LEAST_SAMPLES", 100)
    monkeypatch.setattr(compaction, "MOST_SAMPLES", 100)
    store = await in_blocks(600)
    blocks, most = list(store.stored["s"].blocks), (await store.size("s")).log_bytes // 2
    assert len(blocks) == 6
    async with Service(store, log_bytes=most) as service:
        await save_again(service, monkeypatch)
        assert most / 2 < (await store.size("s")).log_bytes <= most
        assert blocks[-1] in store.stored["s"].blocks
        await expect_labels_to_end_with_the_log(service)


async def test_a_block_larger_than_the_limit_goes_and_what_comes_after_it_stays(monkeypatch):
    store = await in_blocks(540)
    (block,) = store.stored["s"].blocks
    assert len(block.body) > LEAST
    async with Service(store, log_bytes=LEAST) as service:
        await save_again(service, monkeypatch)
        assert await oldest_in_store(service) == block.position.seq + 1
        await expect_labels_to_end_with_the_log(service)


def test_a_limit_below_a_block_is_refused():
    with pytest.raises(ValidationError, match=r"log_bytes\n.*greater than or equal to 65536"):
        Settings(log_bytes=LEAST - 1)


async def test_a_log_moves_to_the_archive_when_it_takes_too_many_bytes(tmp_path):
    async with Service(**settings(tmp_path, log_samples=None, log_bytes=LEAST)) as service:
        await fill(service, 8)
        await move(service)
        assert LEAST / 4 < (await service.store.size("s")).log_bytes <= LEAST * 7 / 8
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
