import re

import pytest

from app.metrics import (
    CELLS,
    CLOSINGS,
    LABEL_OUTCOMES,
    LEASE_CHANGES,
    MISMATCHES,
    OBSERVE_STEPS,
    SAMPLE_OUTCOMES,
    STATUS_CLASSES,
    STORE_ERRORS,
)
from app.storage.base import StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.labelling import OUTCOMES
from tests.app.harness import DisturbedStore, Service, blobs, raising

LINES = 1_000
SERIES_OF_A_STREAM = 14  # before it is ready; nothing of its scores is known then


async def lines_of(service):
    return (await service.http.get("/metrics")).text.splitlines()


async def test_everything_is_there_at_zero_from_the_start(service):
    assert LABEL_OUTCOMES == OUTCOMES
    for outcome in LABEL_OUTCOMES:
        assert await service.metric("itan_labels_total", outcome=outcome) == 0
    for outcome in SAMPLE_OUTCOMES:
        assert await service.metric("itan_samples_total", outcome=outcome) == 0
    for reason in STORE_ERRORS:
        assert await service.metric("itan_store_errors_total", reason=reason) == 0
    for status in STATUS_CLASSES:
        assert await service.metric("itan_requests_total", route="/observe", method="POST", status_class=status) == 0
    for reason in MISMATCHES:
        assert await service.metric("itan_replay_mismatches_total", reason=reason) == 0
    for cell in CELLS:
        assert await service.metric("itan_confusion_total", cell=cell) == 0
    for reason in CLOSINGS:
        assert await service.metric("itan_streams_closed_total", reason=reason) == 0
    for change in LEASE_CHANGES:
        assert await service.metric("itan_lease_changes_total", change=change) == 0
    counters = ("flags_total", "expected_flags_total", "splits_total", "retractions_total", "store_setbacks_total")
    counters += ("snapshot_failures_total", "store_retries_total", "score_nats_count", "surprise_nats_count")
    for name in (*counters, "open_streams", "hidden_streams", "cost", "unsaved_events"):
        assert await service.metric(f"itan_{name}") == 0


async def test_requests_are_counted_by_route_and_status(service):
    await service.observe(blobs(3))
    await service.http.post("/observe?stream=s", json={"samples": []})
    of_observe = {"route": "/observe", "method": "POST"}
    assert await service.metric("itan_requests_total", **of_observe, status_class="2xx") == 1
    assert await service.metric("itan_requests_total", **of_observe, status_class="4xx") == 1
    assert await service.metric("itan_request_seconds_count", route="/observe") == 2
    await service.http.get("/streams/s")
    await service.http.get("/streams/t")
    of_stream = {"route": "/streams/{stream}", "method": "GET"}
    assert await service.metric("itan_requests_total", **of_stream, status_class="2xx") == 1
    assert await service.metric("itan_requests_total", **of_stream, status_class="4xx") == 1


async def test_each_step_of_observe_is_timed_once_a_request(service):
    async def count(step):
        return await service.metric("itan_observe_step_seconds_count", step=step)

    assert [await count(step) for step in OBSERVE_STEPS] == [0, 0, 0, 0]
    X = blobs(300)
    await service.observe(X, ids=[f"i{k}" for k in range(300)])
    assert [await count(step) for step in OBSERVE_STEPS] == [1, 1, 1, 1]
    await service.observe(X[:1], ids=["i0"])  # known: nothing to learn, nothing to append
    await service.accepted("POST", "/observe?stream=s&learn=false", json={"samples": X.tolist()})
    assert [await count(step) for step in OBSERVE_STEPS] == [2, 1, 1, 2]
    assert await service.metric("itan_observe_step_seconds_sum", step="engine") > 0


async def test_flags_are_counted(service):
    await service.observe(blobs(64))
    before = await service.metric("itan_flags_total")
    await service.observe([[1e6, 0.0]])
    assert await service.metric("itan_flags_total") == before + 1


@pytest.mark.parametrize("top", [0, 20])
async def test_random_paths_methods_and_streams_make_no_series(top):
    async with Service(memory_budget_mb=0.5, metrics_top_streams=top) as service:
        await lines_of(service)
        before = len(await lines_of(service))
        for i in range(300):
            await service.http.request(["GET", "BREW", "POST"][i % 3], f"/random/{i}?x={i}")
            await service.http.request(f"M{i}", "/observe")
            await service.observe([[1.0]], f"stream-{i}")
        assert len(await lines_of(service)) == before + top * SERIES_OF_A_STREAM < LINES
        assert await service.metric("itan_requests_total", route="other", method="other", status_class="4xx") == 600
        assert 20 < await service.metric("itan_open_streams") < 60
        assert 0 < await service.metric("itan_open_stream_bytes") < 0.6 * 2**20
        assert await service.metric("itan_streams_closed_total", reason="room") > 200
        for i in range(300):
            await service.http.delete(f"/streams/stream-{i}")
        assert await service.metric("itan_open_streams") == await service.metric("itan_open_stream_bytes") == 0
        assert len(await lines_of(service)) == before


async def test_no_number_is_nan(service):
    await service.observe(blobs(5))
    await service.observe(blobs(50), "ready")
    assert not re.search(r"\bNaN\b", "\n".join(await lines_of(service)))


async def test_the_age_of_unsaved_changes(service):
    assert await service.metric("itan_snapshot_age_seconds") == 0
    await service.observe([[1.0]], "a")
    service.clock.advance(10)
    await service.observe([[1.0]], "b")
    service.clock.advance(5)
    assert await service.metric("itan_snapshot_age_seconds") == 15
    await service.registry.save(service.registry._sessions["a"])
    assert await service.metric("itan_snapshot_age_seconds") == 5


async def test_snapshots_are_counted(service):
    await service.observe([[1.0]])
    assert await service.metric("itan_snapshots_total") == 0
    for _ in range(2):
        await service.registry.save(service.registry._sessions["s"])
    assert await service.metric("itan_snapshots_total") == 1


async def test_failed_snapshots_are_counted():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe([[1.0]])
        for error in (StoreUnavailable("gone"), RuntimeError("odd")):
            store.before["save_snapshot"] = raising(error)
            service.clock.advance(60)
            await service.registry.save_due()
        assert await service.metric("itan_snapshot_failures_total") == 2
        del store.before["save_snapshot"]
        await service.registry.save_due()
        assert await service.metric("itan_snapshot_age_seconds") == 0


@pytest.mark.parametrize("outcome", ["conflict", "unknown"])
async def test_the_first_of_its_kind_is_seen(service, outcome):
    await service.observe([[1.0]])
    labels = [{"seq": 1, "anomaly": True}, {"seq": 1, "anomaly": False}, {"seq": 9, "anomaly": True}]
    await service.feedback(*labels)
    assert await service.metric("itan_labels_total", outcome=outcome) == 1
