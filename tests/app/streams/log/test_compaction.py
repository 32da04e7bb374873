"""A stream whose log is moved into blocks at random moments answers as one whose log stays as it is."""

import json
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from app.storage import START, Fenced, Position, StaleWriter, StoredBlock, StoreUnavailable, StreamNotFound
from app.streams.log import compaction
from app.streams.log.blocks import Block
from app.streams.log.log import Log
from tests.app import archived
from tests.app.harness import DisturbedStore, FakeClock, MemoryStore, Service, blobs, raising
from tests.app.streams.maintenance.test_repair import damage, filled

X = blobs(400, seed=3)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(compaction, "LEAST_SAMPLES", 15)
    monkeypatch.setattr(compaction, "MOST_SAMPLES", 40)


class Pair:
    """Two services that get the same requests; of the first the log is compacted."""

    def __init__(self) -> None:
        self.services = [Service(MemoryStore(), FakeClock(), compact_log=compact) for compact in (True, False)]
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        for service in self.services:
            await self._stack.enter_async_context(service)

    async def both(self, method: str, path: str, **given: Any) -> Any:
        """Send a request to both, and give their common answer."""
        answers = [await service.accepted(method, path, **given) for service in self.services]
        assert answers[0] == answers[1], (method, path, given)
        return answers[0]

    async def save(self) -> int:
        """Store snapshots, then make blocks; give how many there are."""
        for service in self.services:
            if session := service.registry.sessions.get("s"):
                await service.registry.save(session)
            await service.app.state.compactor.compact_due()
        assert not self.services[1].store.stored["s"].blocks
        return len(self.services[0].store.stored["s"].blocks)

    async def restart(self) -> None:
        """Kill both, and go on with what they stored."""
        stores = [(service.store, service.clock) for service in self.services]
        for service in self.services:
            await service.crash()
        self.services = [
            Service(*kept, compact_log=compact) for kept, compact in zip(stores, (True, False), strict=True)
        ]
        await self.start()

    async def close(self) -> None:
        await self._stack.aclose()


@pytest.mark.parametrize("seed", range(2))
async def test_blocks_change_no_answer(seed):
    generator, pair, n = random.Random(seed), Pair(), 0
    await pair.start()
    await pair.both("PUT", "/streams/s", json={"n_features": 2, "warmup": 30})
    most = 0
    for _ in range(45):
        for service in pair.services:
            service.clock.advance(1)
        match generator.choice(
            ["observe"] * 6 + ["again", "seq", "id", "time", "sample", "history", "save", "save", "restart", "check"]
        ):
            case "observe" if n < len(X):
                k = min(generator.choice([1, 4, 12]), len(X) - n)
                ids = [f"id {n + i}" for i in range(k)]
                await pair.both(
                    "POST", "/observe?stream=s&explain=true", json={"samples": X[n : n + k].tolist(), "ids": ids}
                )
                n += k
            case "again" if n:
                at = generator.randrange(n)
                await pair.both(
                    "POST", "/observe?stream=s&explain=true", json={"samples": [X[at].tolist()], "ids": [f"id {at}"]}
                )
            case "seq" if n:
                labels = [
                    {"seq": generator.randint(1, n), "anomaly": generator.choice([True, False, None])} for _ in range(4)
                ]
                await pair.both("POST", "/feedback?stream=s", json={"labels": labels})
            case "id" if n:
                labels = [{"id": f"id {generator.randrange(n)}", "anomaly": False}]
                await pair.both("POST", "/feedback?stream=s", json={"labels": labels})
            case "time":
                begin = 1_800_000_000 + generator.randrange(45)
                span = {"from": begin, "to": begin + 9, "anomaly": True, "only": "all"}
                await pair.both("POST", "/feedback?stream=s", json={"ranges": [span]})
            case "sample" if n:
                await pair.both("GET", f"/streams/s/samples/{generator.randint(1, n)}")
            case "history":
                await pair.both("GET", f"/streams/s/history?from={generator.randint(1, n + 1)}&values=true")
            case "save":
                most = max(most, await pair.save())
            case "restart":
                await pair.restart()
            case "check":
                await pair.both("GET", "/streams/s/check")
    assert most > 1
    first, second = [await service.export() for service in pair.services]
    assert first == second
    await pair.close()


async def packed() -> tuple[MemoryStore, dict[str, Any]]:
    """A stream with an older snapshot, then blocks up to the newest one, and what its model is."""
    store = MemoryStore()
    await filled(store)
    async with Service(store) as service:
        await service.feedback({"seq": 150, "anomaly": False})
        expected = await service.accepted("GET", "/density?stream=s")
        await service.registry.save(service.registry.sessions["s"])
        await service.app.state.compactor.compact_due()
        await service.crash()
    stored = store.stored["s"]
    assert stored.base.position < stored.blocks[-1].position <= stored.snapshot.position
    return store, expected


async def test_a_stream_is_rebuilt_through_its_blocks():
    store, expected = await packed()
    damage(store, "cut")
    async with Service(store) as service:
        assert await service.accepted("GET", "/density?stream=s") == expected
        assert (await service.accepted("GET", "/streams/s"))["rebuilt"]["lost_first_seq"] is None


async def test_known_ids_are_found_page_by_page_without_reading_entries(monkeypatch):
    store, _ = await packed()
    monkeypatch.setattr(Block, "entries", None)
    monkeypatch.setattr("app.storage.pages.PAGE_BYTES", 1)
    known = {f"i{i}": i + 1 for i in range(0, 150, 7)}
    assert await Log(store, "s").find_ids([*known, "new"]) == known


def spoil(store: MemoryStore, at: int) -> list[StoredBlock]:
    """Damage a block, and give all."""
    blocks = store.stored["s"].blocks
    blocks[at] = replace(blocks[at], body=blocks[at].body[:-9] + b"not so it")
    return blocks


async def test_a_damaged_block_is_named_and_hinders_only_what_needs_it():
    store, expected = await packed()
    blocks = spoil(store, 0)
    async with Service(store) as service:
        assert await service.accepted("GET", "/density?stream=s") == expected
        problem = await service.refused("GET", "/streams/s/samples/1", 500, "store_corrupt")
        assert f"the block up to {blocks[0].position}" in problem["detail"]
        findings = (await service.accepted("GET", "/streams/s/check"))["findings"]
        assert any(finding["kind"] == "log_damaged" for finding in findings)
        late = {"seq": blocks[-1].position.seq - 1, "anomaly": True}
        assert (await service.feedback(late))["outcome"] == ["applied"]


@pytest.mark.parametrize(("at", "is_replayed"), [(0, False), (1, False), (2, True)])
async def test_a_check_finds_each_damaged_block_and_a_lossy_repair_begins_the_log_after_it(at, is_replayed):
    store, expected = await packed()
    block = spoil(store, at)[at]
    if not is_replayed:
        store.stored["s"].base = store.stored["s"].snapshot
    async with Service(store) as service:
        check = await service.accepted("GET", "/streams/s/check")
        first, last = block.after.seq + 1, block.position.seq
        assert f"samples {first} to {last}, cannot be read" in json.dumps(check["findings"])
        assert check["repair"].startswith(f"loses the log up to sample {last},")
        await service.refused("POST", "/streams/s/repair", 409, "repair_loses")
        assert (await service.accepted("POST", "/streams/s/repair?lossy=true"))["changed"]
        check = await service.accepted("GET", "/streams/s/check")
        assert (check["ok"], check["findings"]) == (True, [])
        assert await service.accepted("GET", "/density?stream=s") == expected
        late = [{"id": f"i{seq - 1}", "anomaly": True} for seq in (first, last, last + 1)]
        assert (await service.feedback(*late))["outcome"] == ["unknown", "unknown", "applied"]
        await service.accepted("GET", "/streams/s/history?from=1")
        await service.crash()
    async with Service(store) as service:
        assert (await service.accepted("GET", "/streams/s"))["rebuilt"] is None


async def test_a_log_that_begins_after_a_damaged_block_drops_the_archived_files_before_it(tmp_path):
    async with Service(**archived.settings(tmp_path, compact_log=False)) as service:
        await archived.feed(service)
        await archived.move(service)
        token = service.registry.worker.leases.token("s")
        assert await compaction.compact(service.store, "s", Position(112, 0), 1, token)
        last = spoil(service.store, 0)[0].position.seq
        check = await service.accepted("GET", "/streams/s/check")
        assert check["repair"].startswith(f"loses the log up to sample {last},")
        await service.accepted("POST", "/streams/s/repair?lossy=true")
        assert (await service.accepted("GET", "/streams/s/check"))["findings"] == []
        assert await service.store.files("s") == []
        late = [{"id": f"id-{seq}", "anomaly": True} for seq in (3, last, last + 1)]
        assert (await service.feedback(*late))["outcome"] == ["unknown", "unknown", "applied"]
        await archived.feed(service, 0, 40)
        await archived.move(service)
        assert await service.store.files("s")


async def test_the_failure_of_one_stream_leaves_the_others_their_turn(caplog):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        for stream in ("a", "b", "left"):
            await service.observe(X[:60], stream=stream)
            await service.registry.save(service.registry.sessions[stream])
        service.registry.worker.leases.drop("left")
        store.before["compact"] = raising(StoreUnavailable("no room"))
        await service.app.state.compactor.compact_due()
        assert caplog.text.count("stays as it is: no room") == 2
        assert await service.metric("itan_compaction_failures_total") == 2
        assert not service.registry.worker.to_compact
        del store.before["compact"]
        await service.observe(X[60:90], stream="b")
        await service.registry.save(service.registry.sessions["b"])
        await service.app.state.compactor.compact_due()
        moved = sum(block.position.seq - block.after.seq for block in store.store.stored["b"].blocks)
        assert await service.metric("itan_compacted_samples_total") == moved
    assert [bool(store.store.stored[stream].blocks) for stream in ("a", "b", "left")] == [False, True, False]


@pytest.mark.parametrize("error", [Fenced("s", 1, 2), StaleWriter("s", START, START), StreamNotFound("s")])
async def test_a_stream_that_is_gone_meanwhile_is_no_failure(error, caplog):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(X[:60])
        await service.registry.save(service.registry.sessions["s"])
        store.before["compact"] = raising(error)
        await service.app.state.compactor.compact_due()
        assert await service.metric("itan_compaction_failures_total") == 0
    assert not store.store.stored["s"].blocks
    assert "stays as it is" not in caplog.text


async def test_labels_and_ids_reach_samples_in_every_tier(tmp_path):
    answers = []
    for given in (archived.IN_STORE | {"compact_log": False}, archived.settings(tmp_path)):
        async with Service(**given) as service:
            await archived.feed(service)
            await service.registry.save(service.registry.sessions["s"])
            await service.app.state.compactor.compact_due()
            if "archive" in given:
                await archived.move(service)
            seqs = [3, 60, 85, 100, 119]
            labels = [{"id": f"id-{seq}", "anomaly": seq % 2 == 0} for seq in seqs]
            answers.append(
                [
                    *[await service.feedback(*labels) for _ in range(2)],
                    *[await service.observe(archived.X[seq - 1 : seq], ids=[f"id-{seq}"]) for seq in seqs],
                    await service.accepted("GET", "/streams/s/history?from=1&points=1000&values=true"),
                    (await service.accepted("GET", "/streams/s/check"))["findings"],
                    service.registry.peek("s").detector.to_bytes(),
                ]
            )
    assert answers[0] == answers[1]
    stored = service.store.stored["s"]
    assert 1 < stored.blocks[0].after.seq < 85 < stored.blocks[-1].position.seq
    assert await service.store.files("s")
