"""What an opening holds, and replays that do not come out as logged."""

import tracemalloc
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from app.build import BUILD
from app.storage import Entry
from app.storage.memory import MemoryStore
from app.storage.sqlite import SqliteStore
from app.streams.log.events import batch_body, read_event, read_records
from app.streams.open.replay import TOLERANCE, agree
from core import Records
from tests.app.harness import NOW, Service, blobs


async def altered(column: str, change: float, build: str = BUILD, store: MemoryStore | None = None) -> MemoryStore:
    """Give a stream whose log tells another number of sample 41 than its replay gives."""
    store = store or MemoryStore()
    async with Service(store) as service:
        await service.observe(blobs(40))
        await service.observe([[1.0, 1.0]])
        await service.crash()
    log = store.stored["s"].log
    log[1] = with_other(log[1], column, change, build)
    return store


def with_other(entry: Entry, column: str, change: float, build: str) -> Entry:
    rows = read_records(read_event(entry.body).records).rows.copy()
    rows[column] += change
    event = msgspec.structs.replace(read_event(batch_body(Records(rows), None, 0.0)), build=build)
    return Entry(entry.position, msgspec.msgpack.encode(event), entry.first_seq, entry.ids)


@pytest.mark.parametrize(
    ("column", "change"), [("score", 0.5), ("threshold", 0.5), ("severity", 0.5), ("incident", 7), ("event", 1)]
)
@pytest.mark.parametrize(("build", "reason"), [(BUILD, "other"), ("0.0.1/2.0/1.0", "version"), ("", "version")])
async def test_a_mismatch_is_counted_and_shown_and_the_stream_goes_on(column, change, build, reason, caplog):
    async with Service(await altered(column, change, build)) as service:
        assert (await service.observe([[1.0, 1.0]]))["seq"] == [42]
        described = await service.accepted("GET", "/streams/s")
        found = {"version": 0, "other": 0, reason: 1, "first_seq": 41, "last_seq": 41, "since": NOW}
        assert described["replay_mismatches"] == found
        assert await service.metric("itan_replay_mismatches_total", reason=reason) == 1
    message = next(record.getMessage() for record in caplog.records if "differ" in record.getMessage())
    assert "first at 41" in message


async def test_both_values_are_logged(caplog):
    async with Service() as unbroken:
        await unbroken.observe(blobs(40))
        score = (await unbroken.observe([[1.0, 1.0]]))["score"][0]
    async with Service(await altered("score", 0.5)) as service:
        await service.observe([[1.0, 1.0]])
    assert f"score {score!r}, logged {score + 0.5!r}" in caplog.text


async def test_the_count_outlives_snapshots_and_restarts():
    store = await altered("score", 0.5)
    for _ in range(2):
        async with Service(store) as service:
            described = await service.accepted("GET", "/streams/s")
            assert (described["replay_mismatches"]["other"], described["replay_mismatches"]["first_seq"]) == (1, 41)
            assert await service.metric("itan_mismatched_streams") == 1


async def test_last_bits_are_no_mismatch():
    async with Service(await altered("score", 1e-12), strict_replay=True) as service:
        assert (await service.observe([[1.0, 1.0]]))["seq"] == [42]


@pytest.mark.parametrize(("score", "factor", "expected"), [(0.2, 0.9, True), (0.2, 1.1, False), (50.0, 45.0, True)])
def test_the_tolerance_is_relative_above_one(score, factor, expected):
    same = {"threshold": np.array([np.nan]), "severity": np.array([np.nan])}
    same |= {"incident": np.array([0]), "event": np.array([0])}
    logged = SimpleNamespace(score=np.array([score]), **same)
    replayed = SimpleNamespace(score=np.array([score + factor * TOLERANCE]), **same)
    assert agree(logged, replayed).tolist() == [expected]


async def test_opening_holds_a_few_entries_however_many_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr("app.storage.pages.PAGE_BYTES", 100_000)
    path = tmp_path / "itan.db"
    async with Service(SqliteStore(path)) as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 32, "max_nodes": 1, "max_round": 32})
        for seed in range(60):
            await service.observe(blobs(250, m=32, seed=seed))
        log_bytes = (await service.store.size("s")).log_bytes
        await service.crash()
    async with Service(SqliteStore(path)) as service:
        tracemalloc.start()
        await service.observe(blobs(1, m=32))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    print(f"held {peak:,} bytes at most for a log of {log_bytes:,}")
    assert peak < 0.6 * log_bytes


async def test_a_strict_service_refuses_the_stream_and_no_other():
    store = await altered("score", 0.5)
    before = await store.load("s"), await store.size("s")
    async with Service(store, strict_replay=True) as service:
        for method, path, body in (
            ("POST", "/observe?stream=s", {"samples": [[1.0, 1.0]]}),
            ("POST", "/feedback?stream=s", {"labels": [{"seq": 41, "anomaly": True}]}),
            ("GET", "/streams/s", None),
        ):
            problem = await service.refused(method, path, 503, "replay_mismatch", json=body)
            assert "ITAN_STRICT_REPLAY" in problem["detail"]
            assert "logged" in problem["detail"]
        assert await service.metric("itan_replay_mismatches_total", reason="other") == 1
        assert (await service.observe([[1.0]], "t"))["seq"] == [1]
    assert (await store.load("s"), await store.size("s")) == before


async def test_a_stream_of_the_same_name_is_counted_anew():
    store = await altered("score", 0.5)
    async with Service(store, strict_replay=True) as service:
        await service.refused("GET", "/streams/s", 503, "replay_mismatch")
        assert (await service.http.delete("/streams/s")).status_code == 204
        other = await altered("score", 0.5)
        store.stored["s"] = other.stored["s"]
        await service.refused("GET", "/streams/s", 503, "replay_mismatch")
        assert await service.metric("itan_replay_mismatches_total", reason="other") == 2
