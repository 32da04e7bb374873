"""What a watcher of a stream is told: everything once and in order, however often it is cut off."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from app.storage import Position, StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.errors import UnknownStream
from app.streams.log.log import Log
from app.streams.views.tail import (
    MAX_ROWS,
    Deleted,
    Heartbeat,
    NewConfig,
    NewLabels,
    NewLog,
    NewModel,
    NewSamples,
    Tail,
    Update,
)
from tests.app.harness import DisturbedStore, Service, blobs, raising
from tests.app.incidents import begin, broken

PATIENCE = 20.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.streams.views.tail.PACE_SECONDS", 0.0)
    monkeypatch.setattr("app.streams.views.tail.POLL_SECONDS", 0.02)


async def watch(service: Service, after: Position | None = None, stream: str = "s") -> AsyncIterator[Update]:
    """Give what a watcher is told from now on; the first step takes the place."""
    tail = Tail(service.registry, service.store, stream)
    with service.registry.worker.subscriptions.subscribe(stream) as subscription:
        await tail.begin(after)
        async with aclosing(tail.updates(subscription, lambda: False)) as news:
            async for told in news:
                yield told


async def told(news: AsyncIterator[Update], kind: type[Update]) -> Any:
    """Give the next news of a kind."""
    async with asyncio.timeout(PATIENCE):
        async for one in news:
            if isinstance(one, kind):
                return one
    raise AssertionError(f"no {kind.__name__} came")


async def grow(service: Service, lot: random.Random, batches: int) -> None:
    """Observe batches and label some of their samples."""
    n = 0
    for _ in range(batches):
        size = lot.choice([1, 1, 2, 7, 40])
        await service.observe(blobs(size, seed=lot.randrange(10**6)))
        n += size
        if lot.random() < 0.4:
            await service.feedback({"seq": lot.randint(1, n), "anomaly": lot.random() < 0.5})


@pytest.mark.parametrize("seed", range(5))
async def test_cut_off_anywhere_and_resumed_nothing_is_lost_or_told_twice(
    service: Service, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.streams.views.tail.HEARTBEAT_SECONDS", 0.05)  # so that the end is noticed
    lot = random.Random(seed)
    await service.observe(blobs(1))
    growing = asyncio.create_task(grow(service, lot, 60))
    position, seqs, events = Position(1, 0), [1], list[Position]()
    async with asyncio.timeout(PATIENCE):
        while not growing.done() or position < (await service.store.load("s"))[1]:
            patience = lot.randint(1, 4)
            async with aclosing(watch(service, position)) as news:
                async for one in news:
                    if isinstance(one, NewSamples | NewLabels):
                        assert one.position > position
                        position = one.position
                        if isinstance(one, NewSamples):
                            seqs += one.rows.seq.tolist()
                        else:
                            events.append(one.position)
                        patience -= 1
                    assert not isinstance(one, NewLog | Deleted)
                    if patience == 0 or (growing.done() and position == (await service.store.load("s"))[1]):
                        break
            await asyncio.sleep(0)
    await growing
    assert seqs == list(range(1, seqs[-1] + 1))
    entries = await Log(service.store, "s").entries(Position(0, 0), 10**6)
    assert events == [entry.position for entry in entries if entry.first_seq is None]
    assert seqs[-1] == entries[-1].position.seq


async def test_a_position_within_a_batch_gives_the_rest_of_it(service: Service) -> None:
    await service.observe(blobs(40))
    async with aclosing(watch(service, Position(17, 0))) as news:
        assert (await told(news, NewSamples)).rows.seq.tolist() == list(range(18, 41))


async def test_batches_told_together_are_told_once(service: Service) -> None:
    for _ in range(3):
        await service.observe(blobs(2))
    async with aclosing(watch(service, Position(0, 0))) as news:
        assert (await told(news, NewSamples)).rows.seq.tolist() == [1, 2, 3, 4, 5, 6]
        await service.observe(blobs(1))
        assert (await told(news, NewSamples)).rows.seq.tolist() == [7]


async def test_a_changed_config_is_told(service: Service) -> None:
    await service.observe(blobs(100))
    async with aclosing(watch(service, Position(100, 0))) as news:
        described = await service.accepted("PATCH", "/streams/s", json={"cost_false_negative": 9})
        change = await told(news, NewConfig)
        assert (change.position, change.changed) == (Position(100, 1), {"cost_false_negative": 9.0})
        assert change.threshold == described["threshold"]
        await service.feedback({"seq": 90, "anomaly": False})
        assert (await told(news, NewLabels)).position == Position(100, 2)


async def test_without_a_position_it_begins_now(service: Service) -> None:
    await service.observe(blobs(100))
    async with aclosing(watch(service)) as news:
        assert (await told(news, NewModel)).n_seen == 100
        await service.observe(blobs(3))
        assert (await told(news, NewSamples)).rows.seq.tolist() == [101, 102, 103]


async def test_a_label_is_told_with_the_threshold_after_it(service: Service) -> None:
    await service.observe(blobs(100))
    async with aclosing(watch(service)) as news:
        await told(news, NewModel)
        answer = await service.feedback({"seq": 90, "anomaly": True}, {"seq": 91, "anomaly": False})
        labels = await told(news, NewLabels)
        assert (labels.seq, labels.label, labels.threshold) == ([90, 91], [True, False], answer["threshold_after"])
        answer = await service.feedback({"seq": 90, "anomaly": None})
        assert (await told(news, NewLabels)).label == [None]


async def test_the_model_is_told_when_the_tree_has_grown(service: Service) -> None:
    await service.observe(blobs(20))
    async with aclosing(watch(service)) as news:
        assert (await told(news, NewModel)).n_nodes == 1
        await service.observe(blobs(400))
        grown = await told(news, NewModel)
        model = (await service.http.get("/density?stream=s")).json()
        assert grown == NewModel(420, len(model["nodes"]), 1 + max(node["level"] for node in model["nodes"]))
        assert grown.n_nodes > 1


async def test_many_samples_at_once_are_thinned_but_for_the_flagged(service: Service) -> None:
    await service.observe(blobs(50))
    async with aclosing(watch(service)) as news:
        await told(news, NewModel)
        X = blobs(5000, seed=3)
        X[500::500, 0] *= 10.0 ** np.arange(3, 12)
        answer = await service.observe(X)
        samples = await told(news, NewSamples)
        while samples.position != Position(5050, 0):
            samples = await told(news, NewSamples)
        assert samples.is_downsampled
        assert len(samples.rows) <= MAX_ROWS
        flagged = [seq for seq, flag in zip(answer["seq"], answer["is_anomaly"], strict=True) if flag]
        assert 0 < len(flagged) < 1000
        assert samples.rows.seq[samples.rows.is_anomaly].tolist() == flagged


async def test_a_label_that_ends_an_incident_is_told_with_it(service: Service) -> None:
    await begin(service)
    async with aclosing(watch(service)) as news:
        await told(news, NewModel)
        first = (await broken(service))["seq"][0]
        samples = await told(news, NewSamples)
        assert samples.rows.incident.tolist() == [first] * 12
        await service.feedback({"seq": first, "anomaly": False})
        labels = await told(news, NewLabels)
        assert (labels.seq, labels.label, labels.accepted) == ([first], [False], [first])


@pytest.mark.parametrize("how", ["reset", "import"])
async def test_a_new_log_is_told_and_gone_on_from(service: Service, how: str) -> None:
    await service.observe(blobs(50))
    state = await service.export()
    async with aclosing(watch(service)) as news:
        await told(news, NewModel)
        if how == "reset":
            await service.accepted("POST", "/streams/s/reset")
        else:
            media = {"content-type": "application/octet-stream"}
            await service.accepted("PUT", "/streams/s/import", content=state, headers=media)
        assert (await told(news, NewLog)).position == (await service.store.load("s"))[1]
        await service.observe(blobs(2))
        assert len((await told(news, NewSamples)).rows) == 2


async def test_the_end_of_a_stream_ends_its_watchers(service: Service) -> None:
    await service.observe(blobs(50))
    news = watch(service)
    await told(news, NewModel)
    assert (await service.http.delete("/streams/s")).status_code == 204
    await told(news, Deleted)
    async with asyncio.timeout(PATIENCE):
        assert [one async for one in news] == []
    assert len(service.registry.worker.subscriptions) == 0


async def test_a_position_that_the_log_does_not_know_is_said(service: Service) -> None:
    await service.observe(blobs(50))
    for unknown in (Position(51, 0), Position(10**15, 7)):
        async with aclosing(watch(service, unknown)) as news:
            assert (await told(news, NewLog)).position == Position(50, 0)


async def test_a_position_older_than_the_log_is_said() -> None:
    async with Service(label_horizon_samples=50, snapshot_replay_seconds=1e-9) as service:
        for _ in range(30):
            await service.observe(blobs(10))
        await service.snapshotter.save_due()
        assert (await Log(service.store, "s").entries(Position(0, 0), 1))[0].first_seq > 200
        async with aclosing(watch(service, Position(100, 0))) as news:
            assert (await told(news, NewLog)).position == Position(300, 0)
        async with aclosing(watch(service, Position(250, 0))) as news:
            assert (await told(news, NewSamples)).rows.seq[0] == 251


async def test_a_stream_that_another_worker_writes_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.streams.views.tail.CHECK_SECONDS", 0.1)
    store = MemoryStore()
    async with Service(store, worker="writer") as writer, Service(store, worker="reader") as reader:
        await writer.observe(blobs(50))
        async with aclosing(watch(reader)) as news:
            await told(news, NewModel)
            await writer.observe(blobs(5))
            assert (await told(news, NewSamples)).rows.seq.tolist() == [51, 52, 53, 54, 55]
            await writer.accepted("POST", "/streams/s/reset")
            await writer.observe(blobs(1))
            await told(news, NewLog)
            await writer.http.delete("/streams/s")
            await told(news, Deleted)
        assert not reader.registry.sessions


async def test_a_stream_nobody_has_is_not_watched(service: Service) -> None:
    with pytest.raises(UnknownStream):
        await anext(watch(service))


async def test_a_store_that_is_down_for_a_while_costs_nothing_but_time() -> None:
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(50))
        async with aclosing(watch(service)) as news:
            await told(news, NewModel)
            await service.observe(blobs(2))
            store.before["entries"] = raising(StoreUnavailable("down"))
            waiting = asyncio.create_task(told(news, NewSamples))
            await asyncio.sleep(0)
            assert not waiting.done()
            del store.before["entries"]
            assert (await waiting).rows.seq.tolist() == [51, 52]


async def test_silence_is_told_now_and_then(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.streams.views.tail.HEARTBEAT_SECONDS", 0.05)
    await service.observe(blobs(1))
    async with aclosing(watch(service)) as news:
        await told(news, Heartbeat)
        await told(news, Heartbeat)
