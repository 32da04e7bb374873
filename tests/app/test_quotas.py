"""What a key may use: samples and requests in a time, streams, watchers. What is refused changes nothing."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import limits
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits.aio.storage import MemoryStorage, memory
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from app.security.grants import digest_of
from app.security.quotas import wait_seconds
from app.storage import StoreUnavailable, StreamNotFound
from app.storage.memory import MemoryStore
from tests.app.harness import NOW, DisturbedStore, FakeClock, Service, blobs, raising, until
from tests.app.watcher import Watcher
from tests.effort import tries


class Time:
    """Stands in for the module that `limits` takes the time from."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.time = now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """A clock that the windows go by too."""
    clock = FakeClock()
    monkeypatch.setattr(memory, "time", Time(clock.now))
    return clock


@pytest.fixture
def running(tmp_path: Path, clock: FakeClock):
    """Run a service with a key without limits, `ops`, and one, `ci`, with these."""

    @asynccontextmanager
    async def run(store: Any = None, given: Any = None, **of_ci: Any) -> AsyncIterator[Service]:
        lines = [
            {"name": "ci", "sha256": digest_of("k-ci").hex(), "scopes": ["admin"], "streams": "ci-*", "limits": of_ci},
            {"name": "ops", "sha256": digest_of("k-ops").hex(), "scopes": ["admin"]},
        ]
        path = tmp_path / "keys"
        path.write_text("\n".join(map(json.dumps, lines)))
        async with Service(store, clock=clock, api_keys_file=str(path), **(given or {})) as service:
            yield service

    return run


CI, OPS = {"X-API-Key": "k-ci"}, {"X-API-Key": "k-ops"}


def observing(n: int, stream: str = "ci-1", headers: dict[str, str] = CI, query: str = "", **more: Any) -> Any:
    body = {"samples": blobs(n).tolist()} | more
    return {"method": "POST", "path": f"/observe?stream={stream}{query}", "json": body, "headers": headers}


async def seen(service: Service, stream: str = "ci-1") -> int:
    return (await service.accepted("GET", f"/streams/{stream}", headers=OPS))["n_seen"]


async def refusals(service: Service, limit: str) -> tuple[float, float]:
    """Count what was refused by a limit: in all, and of the key `ci`."""
    text = (await service.http.get("/metrics", headers=OPS)).text.splitlines()
    names = (
        f'itan_limit_refusals_total{{limit="{limit}"}}',
        f'itan_key_limit_refusals_total{{key="ci",limit="{limit}"}}',
    )
    found = [[line for line in text if line.startswith(name)] for name in names]
    total, of_key = (float(lines[0].rpartition(" ")[2]) if lines else math.nan for lines in found)
    return total, of_key


async def test_a_key_gets_so_many_samples_in_a_time(running, clock):
    async with running(samples="100/minute") as service:
        await service.accepted(**observing(60))
        await service.accepted(**observing(40))
        answer = await service.http.request(**rest(observing(1)))
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (429, "rate_limited")
        assert (problem["field"], problem["value"]) == ("samples", 1)
        assert "100 per 1 minute" in problem["limit"]
        assert "'ci'" in problem["limit"]
        wait = int(answer.headers["retry-after"])
        assert f"try again in {wait} s" in problem["detail"]
        assert await seen(service) == 100
        assert await refusals(service, "samples") == (1, 1)
        await service.accepted(**observing(500, headers=OPS))
        clock.advance(wait)
        await service.accepted(**observing(1))


def rest(given: dict[str, Any]) -> dict[str, Any]:
    """Name the arguments as the client does."""
    return {"url" if name == "path" else name: value for name, value in given.items()}


async def test_scores_and_points_count_as_samples_do(running):
    async with running(samples="100/minute") as service:
        await service.accepted(**observing(80, headers=OPS))
        await service.accepted(**observing(50, query="&learn=false"))
        points = {"json": {"points": blobs(50).tolist()}, "headers": CI}
        await service.accepted("POST", "/density?stream=ci-1", **points)
        for given in (observing(1), observing(1, query="&learn=false")):
            await service.refused(status=429, code="rate_limited", **given)
        await service.refused("POST", "/density?stream=ci-1", 429, "rate_limited", **points)
        assert await seen(service) == 80


async def test_bytes_and_lines_count_as_samples_do(running):
    async with running(samples="50/minute") as service:
        await service.accepted(**observing(30))
        headers = CI | {"content-type": "application/octet-stream"}
        body = np.ones((21, 2)).tobytes()
        await service.refused("POST", "/observe?stream=ci-1", 429, "rate_limited", content=body, headers=headers)
        headers = CI | {"content-type": "application/x-ndjson"}
        await service.refused(
            "POST", "/observe?stream=ci-1", 429, "rate_limited", content="[1,2]\n" * 21, headers=headers
        )
        assert await seen(service) == 30


async def test_what_is_refused_for_another_reason_costs_nothing(running):
    async with running(samples="50/minute") as service:
        await service.accepted(**observing(10))
        for _ in range(10):
            body = {"samples": [[1.0, 2.0, 3.0]] * 40}
            await service.refused("POST", "/observe?stream=ci-1", 422, "invalid_samples", json=body, headers=CI)
        await service.accepted(**observing(40))


async def test_more_than_ever_fits_is_not_put_off(running):
    async with running(samples="50/minute") as service:
        problem = await service.refused(status=413, code="too_many", **observing(51))
        assert (problem["field"], problem["value"]) == ("samples", 51)
        assert "at most 50 samples" in problem["limit"]
        assert "limit of key 'ci'" in problem["limit"]
        await service.refused("GET", "/streams/ci-1", 404, "unknown_stream", headers=OPS)
        await service.accepted(**observing(50))


async def test_a_key_that_has_used_up_its_rate_is_refused_before_its_body_is_read(running, clock):
    store = MemoryStore()
    async with running(samples="50/minute", store=store) as service:
        await service.accepted(**observing(50))
        await service.refused(status=429, code="rate_limited", **observing(1))
        asked = []
        store.windows.acquire_sliding_window_entry = lambda *given: asked.append(given)
        body = {"content": "no JSON", "headers": CI | {"content-type": "application/json"}}
        await service.refused("POST", "/observe?stream=ci-1", 429, "rate_limited", **body)
        assert not asked
        del store.windows.acquire_sliding_window_entry
        clock.advance(120)
        await service.refused("POST", "/observe?stream=ci-1", 400, "invalid_json", **body)


async def test_a_key_that_has_used_up_its_requests_is_refused_from_memory(running):
    store = MemoryStore()
    async with running(requests="1/minute", store=store) as service:
        found = [(await service.http.get("/streams", headers=CI)).status_code for _ in range(2)]
        assert found == [200, 429]
        asked = []
        store.windows.acquire_sliding_window_entry = lambda *given: asked.append(given)
        await service.refused("GET", "/streams", 429, "rate_limited", headers=CI)
        assert not asked
        del store.windows.acquire_sliding_window_entry


async def test_a_key_gets_so_many_requests_in_a_time(running, clock):
    async with running(requests="5/second") as service:
        for _ in range(5):
            await service.refused("GET", "/streams/ci-1", 404, "unknown_stream", headers=CI)
        for method, path in [("GET", "/streams"), ("GET", "/streams/other"), ("DELETE", "/streams/ci-1")]:
            await service.refused(method, path, 429, "rate_limited", headers=CI)
        assert (await service.http.get("/streams", headers=OPS)).status_code == 200
        assert (await service.http.get("/livez")).status_code == 200
        await service.refused("GET", "/streams", 401, "unauthenticated", headers={"X-API-Key": "wrong"})
        assert await refusals(service, "requests") == (3, 3)
        clock.advance(2)
        assert (await service.http.get("/streams", headers=CI)).status_code == 200


async def test_while_the_store_is_down_reads_go_on(running, clock):
    store = MemoryStore()
    async with running(requests="2/minute", store=store) as service:
        asked = []

        async def fail(*given: object) -> bool:
            asked.append(given)
            raise StoreUnavailable("down")

        store.windows.acquire_sliding_window_entry = fail
        for _ in range(5):
            assert (await service.http.get("/streams", headers=CI)).status_code == 200
        assert len(asked) == 1  # a store that hangs is not waited for again and again
        del store.windows.acquire_sliding_window_entry
        clock.advance(5)
        found = [(await service.http.get("/streams", headers=CI)).status_code for _ in range(3)]
        assert found == [200, 200, 429]


async def test_the_series_of_a_limited_key_begin_at_0(running):
    async with running(samples="1/second") as service:
        assert await refusals(service, "samples") == (0, 0)
        assert (await refusals(service, "max_streams"))[0] == 0


# streams


async def test_a_key_creates_streams_up_to_its_limit(running):
    async with running(given={"worker": "w"}, streams=3) as service:
        for number in range(3):
            await service.accepted(**observing(1, f"ci-{number}"))
        problem = await service.refused(status=429, code="quota_exceeded", **observing(1, "ci-3"))
        assert (problem["field"], problem["value"]) == ("streams", 3)
        assert "at most 3 streams ci-*" in problem["limit"]
        body = {"json": {"n_features": 1}, "headers": CI}
        answer = await service.http.put("/streams/ci-4", **body)
        assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (
            429,
            "quota_exceeded",
            "60",
        )
        exported = (await service.http.get("/streams/ci-0/export", headers=OPS)).content
        octets = CI | {"content-type": "application/octet-stream"}
        await service.refused("PUT", "/streams/ci-5/import", 429, "quota_exceeded", content=exported, headers=octets)
        await service.accepted("PUT", "/streams/ci-1/import", content=exported, headers=octets)
        await service.accepted(**observing(1, "ci-2"))
        await service.accepted(**observing(1, "other", OPS))
        assert await service.store.streams("", 100) == ["ci-0", "ci-1", "ci-2", "other"]
        assert await refusals(service, "streams") == (3, 3)
        assert service.registry.worker.leases.count() == 4  # none of a stream that is not
        await service.http.delete("/streams/ci-0", headers=OPS)
        await service.accepted(**observing(1, "ci-3"))


async def test_a_key_with_no_streams_of_its_own_observes_those_that_exist(running):
    async with running(streams=0) as service:
        await service.refused(status=404, code="unknown_stream", **observing(1))
        body = {"json": {"n_features": 2}, "headers": CI}
        await service.refused("PUT", "/streams/ci-1", 429, "quota_exceeded", **body)
        await service.accepted(**observing(1, headers=OPS))
        await service.accepted(**observing(1))
        assert await seen(service) == 2


async def test_of_many_streams_at_once_just_those_that_fit_are_created(running):
    async with running(given={"max_streams": 30}, streams=20) as service:
        keys = [(f"ci-{number}", CI) for number in range(60)] + [(f"x-{number}", OPS) for number in range(60)]
        sent = [service.http.request(**rest(observing(20, stream, key))) for stream, key in keys]
        statuses = [answer.status_code for answer in await asyncio.gather(*sent)]
        assert (statuses[:60].count(200), statuses.count(200), statuses.count(429)) == (20, 30, 90)
        assert len(await service.store.streams("", 1000)) == 30
        problem = await service.refused(status=429, code="quota_exceeded", **observing(1, "y", OPS))
        assert "ITAN_MAX_STREAMS" in problem["limit"]


async def test_a_stream_that_may_not_be_costs_no_more_than_its_first_rows(running, monkeypatch):
    async def never(*given: object, **more: object) -> None:
        raise AssertionError("the rest of the samples was learned")

    async with running(given={"max_streams": 1}) as service:
        await service.accepted(**observing(1, "a", OPS))
        monkeypatch.setattr("app.streams.changes.observe.observe_slices", never)
        await service.refused(status=429, code="quota_exceeded", **observing(5_000, "b", OPS))


# bytes


async def kept(service: Service, stream: str = "ci-1") -> int:
    storage = (await service.accepted("GET", f"/streams/{stream}", headers=OPS))["storage"]
    return storage["log_bytes"] + storage["snapshot_bytes"]


async def measured(service: Service) -> None:
    """Wait for the end of the measuring under way."""
    await until(lambda: not service.app.state.service.kept.is_measuring)


async def test_a_key_keeps_so_many_bytes(running, clock):
    async with running(bytes=60_000) as service:
        sent = 0
        while (answer := await service.http.request(**rest(observing(100, f"ci-{sent % 3}")))).status_code == 200:
            sent += 1
            clock.advance(30)
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["field"]) == (429, "quota_exceeded", "bytes")
        assert "at most 60000 bytes of ci-*" in problem["limit"]
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        total = sum([await kept(service, f"ci-{number}") for number in range(3)])
        assert 40_000 < total < 90_000  # bodies are counted until it is measured, and what is kept is longer
        assert await refusals(service, "bytes") == (1, 1)
        await service.accepted(**observing(10, "ci-0", query="&learn=false"))
        label = {"json": {"labels": [{"seq": 1, "anomaly": True}]}, "headers": CI}
        await service.accepted("POST", "/feedback?stream=ci-0&dry_run=true", **label)
        await service.accepted(**observing(500, "other", OPS))
        exported = (await service.http.get("/streams/ci-0/export", headers=OPS)).content
        octets = {"content": exported, "headers": CI | {"content-type": "application/octet-stream"}}
        await service.refused("PUT", "/streams/ci-1/import", 429, "quota_exceeded", **octets)
        for number in range(3):
            await service.http.delete(f"/streams/ci-{number}", headers=CI)
        clock.advance(61)
        await service.http.request(**rest(observing(1, "ci-9")))  # which lets it be measured anew
        await measured(service)
        await service.accepted(**observing(100, "ci-9"))


async def test_what_is_there_at_the_start_is_measured_before_anything_is_kept(running):
    store = MemoryStore()
    async with running(store=store) as service:
        await service.accepted(**observing(1000, "ci-"))
        await service.accepted(**observing(1, "ci-2"))
        await service.accepted(**observing(1000, "ci.1", OPS))
    sizes = [await store.size(name) for name in ("ci-", "ci-2")]
    there = sum(size.log_bytes + size.snapshot_bytes for size in sizes)
    async with running(store=store, bytes=there + 150) as service:
        statuses = [service.http.request(**rest(observing(1, "ci-"))) for _ in range(20)]
        found = [answer.status_code for answer in await asyncio.gather(*statuses)]
        assert 0 < found.count(200) < 20


async def test_labels_of_a_time_count_by_the_samples_that_they_find(running):
    store = MemoryStore()
    async with running(store=store) as service:
        await service.accepted(**observing(400))
    size = await store.size("ci-1")
    async with running(store=store, bytes=size.log_bytes + size.snapshot_bytes + 5_000) as service:
        ranges = [{"from": NOW - 1, "to": NOW + 1, "anomaly": False, "only": "all"}]
        given = {"path": "/feedback?stream=ci-1", "json": {"ranges": ranges}, "headers": CI}
        await service.accepted("POST", "/feedback?stream=ci-1&dry_run=true", json={"ranges": ranges}, headers=CI)
        await service.refused("POST", status=429, code="quota_exceeded", **given)
        assert (await service.accepted("GET", "/streams/ci-1", headers=OPS))["costs"]["labels"] == 0
        given["json"] = {"ranges": [ranges[0] | {"only": "flagged"}]}
        assert (await service.accepted("POST", **given))["found"][0] > 0


async def test_measuring_takes_a_small_part_of_the_time_and_no_fault_of_the_store_stops_it(running, clock):
    store = DisturbedStore(MemoryStore())
    async with running(store=store, bytes=10_000) as service:

        async def slow() -> None:
            clock.advance(3)

        store.before["size"] = slow
        await service.accepted(**observing(1))
        clock.advance(301)
        await service.accepted(**observing(1))
        await measured(service)
        answer = await service.http.request(**rest(observing(900)))
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "600")  # of two names, one there
        clock.advance(601)
        store.before["streams"] = raising(StoreUnavailable("down"))
        await service.accepted(**observing(1))
        await measured(service)
        assert (await service.http.request(**rest(observing(900)))).json()["value"] > 0


async def test_what_comes_while_it_is_measured_counts(running, clock):
    store = DisturbedStore(MemoryStore())
    async with running(store=store, bytes=100_000) as service:
        await service.accepted(**observing(1))
        clock.advance(61)
        go_on = asyncio.Event()
        store.before["streams"] = go_on.wait
        await service.accepted(**observing(1))
        before = len(json.dumps({"samples": blobs(900).tolist()}))
        await service.accepted(**observing(900))
        go_on.set()
        store.before["size"] = raising(StreamNotFound("gone"))
        await measured(service)
        assert (await service.http.request(**rest(observing(3_000)))).json()["value"] > 0.9 * before


# watchers


async def test_one_key_does_not_take_all_the_places(running):
    async with running(given={"max_watchers": 6, "max_key_watchers": 4}, watchers=2) as service:
        await service.accepted(**observing(1, headers=OPS))
        of_ci = [Watcher(service, "ci-1", "k-ci") for _ in range(5)]
        assert sorted([await watcher.status() for watcher in of_ci]) == [200, 200, 429, 429, 429]
        of_ops = [Watcher(service, "ci-1", "k-ops") for _ in range(6)]
        assert sorted([await watcher.status() for watcher in of_ops]) == [200] * 4 + [429] * 2
        assert await refusals(service, "watchers") == (5, 3)
        problem = await service.refused("GET", "/streams/ci-1/events", 429, "quota_exceeded", headers=CI)
        assert problem["value"] == 2
        for watcher in (*of_ci, *of_ops):
            await watcher.leave()
        assert not service.registry.worker.subscriptions
        again = Watcher(service, "ci-1", "k-ci")
        assert await again.status() == 200
        await again.leave()


# the wait


@given(
    amount=st.integers(1, 1000),
    length=st.sampled_from(["second", "minute", "hour"]),
    costs=st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), max_size=8),
    cost=st.floats(0, 1),
)
@settings(max_examples=tries(300), deadline=None)
async def test_after_the_wait_it_passes_and_not_long_before(amount, length, costs, cost):
    clock, original = FakeClock(), memory.time
    clock.wall = math.floor(NOW / 3600) * 3600
    memory.time = Time(clock.now)
    try:
        rate, storage = limits.parse(f"{amount}/{length}"), MemoryStorage()
        limiter = SlidingWindowCounterRateLimiter(storage)
        for pause, share in costs:
            clock.advance(pause * rate.get_expiry())
            await limiter.hit(rate, "k", cost=math.ceil(share * amount) or 1)
        wanted = math.ceil(cost * amount) or 1
        window = await storage.get_sliding_window(rate.key_for("k"), rate.get_expiry())
        wait = wait_seconds(window, rate, wanted)
        assert 0 <= wait <= 2 * rate.get_expiry()
        if wait > 0.01 * rate.get_expiry():
            clock.advance(wait - 0.01 * rate.get_expiry())
            assert not await limiter.test(rate, "k", cost=wanted)
            clock.advance(0.01 * rate.get_expiry())
        else:
            clock.advance(wait)
        clock.advance(1e-3 * rate.get_expiry())
        assert await limiter.hit(rate, "k", cost=wanted)
    finally:
        memory.time = original
