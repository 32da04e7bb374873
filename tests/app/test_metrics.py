import re

import pytest

from app.metrics import (
    CELLS,
    CLOSINGS,
    CONNECTION_CLOSINGS,
    INCIDENT_EVENTS,
    LABEL_OUTCOMES,
    LEASE_CHANGES,
    MISMATCHES,
    OBSERVE_STEPS,
    SAMPLE_OUTCOMES,
    STATUS_CLASSES,
    STORE_ERRORS,
    TRUTHS,
    WRITE_REFUSALS,
)
from app.storage import Cause, Entry, Position, StoreUnavailable, open_store
from app.storage.memory import MemoryStore
from core import DetectorConfig
from tests.app.harness import DisturbedStore, FakeClock, Service, blobs, raising
from tests.servers import RedisServer, find_valkey

RATE = DetectorConfig(n_features=2).false_alarm_rate
LINES = 1_700
SERIES_OF_A_STREAM = 16  # before it is ready; nothing of its scores is known then


async def lines_of(service):
    return (await service.http.get("/metrics")).text.splitlines()


async def test_everything_is_there_at_zero_from_the_start(service):
    assert tuple(Cause) == WRITE_REFUSALS
    for outcome in LABEL_OUTCOMES:
        assert await service.metric("itan_labels_total", outcome=outcome) == 0
    for outcome in SAMPLE_OUTCOMES:
        assert await service.metric("itan_samples_total", outcome=outcome) == 0
    for reason in STORE_ERRORS:
        assert await service.metric("itan_store_errors_total", reason=reason) == 0
    for cause in WRITE_REFUSALS:
        assert await service.metric("itan_store_refused_writes_total", cause=cause) == 0
    for status in STATUS_CLASSES:
        assert await service.metric("itan_requests_total", route="/observe", method="POST", status_class=status) == 0
    for reason in MISMATCHES:
        assert await service.metric("itan_replay_mismatches_total", reason=reason) == 0
    for cell in CELLS:
        assert await service.metric("itan_confusion_total", cell=cell) == 0
    for event in INCIDENT_EVENTS:
        assert await service.metric("itan_incidents_total", event=event) == 0
    for truth in TRUTHS:
        assert await service.metric("itan_expected_flags_total", truth=truth) == 0
    for reason in CLOSINGS:
        assert await service.metric("itan_streams_closed_total", reason=reason) == 0
    for reason in CONNECTION_CLOSINGS:
        assert await service.metric("itan_connections_closed_total", reason=reason) == 0
    for change in LEASE_CHANGES:
        assert await service.metric("itan_lease_changes_total", change=change) == 0
    counters = ("flags_total", "splits_total", "retractions_total", "store_setbacks_total")
    counters += ("snapshot_failures_total", "store_retries_total", "score_nats_count", "surprise_nats_count")
    for name in (*counters, "connections", "open_streams", "hidden_streams", "cost", "unsaved_events"):
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
    await service.registry.save(service.registry.sessions["a"])
    assert await service.metric("itan_snapshot_age_seconds") == 5


async def test_how_long_a_snapshot_has_been_due():
    async with Service(snapshot_every_seconds=30) as service:
        await service.observe([[1.0]], "old")
        service.clock.advance(29)
        assert await service.metric("itan_snapshot_overdue_seconds") == 0
        service.clock.advance(5)
        assert await service.metric("itan_snapshot_overdue_seconds") == 4
        await service.snapshotter.save_due()
        assert await service.metric("itan_snapshot_overdue_seconds") == 0
        await service.observe([[1.0]], "long")
        service.registry.peek("long").note_work(0.01)
        await service.observe([[1.0]], "long")
        service.clock.advance(3)
        assert await service.metric("itan_snapshot_overdue_seconds") == 3
        assert 0.01 < await service.metric("itan_replay_seconds") < 1


async def test_snapshots_are_counted(service):
    await service.observe([[1.0]])
    assert await service.metric("itan_snapshots_total") == 0
    for _ in range(2):
        await service.registry.save(service.registry.sessions["s"])
    assert await service.metric("itan_snapshots_total") == 1


async def test_failed_snapshots_are_counted():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe([[1.0]])
        for error in (StoreUnavailable("gone"), RuntimeError("odd")):
            store.before["save_snapshot"] = raising(error)
            service.clock.advance(22_000)
            await service.snapshotter.save_due()
        assert await service.metric("itan_snapshot_failures_total") == 2
        del store.before["save_snapshot"]
        await service.snapshotter.save_due()
        assert await service.metric("itan_snapshot_age_seconds") == 0


@pytest.mark.parametrize("outcome", ["conflict", "unknown"])
async def test_the_first_of_its_kind_is_seen(service, outcome):
    await service.observe([[1.0]])
    labels = [{"seq": 1, "anomaly": True}, {"seq": 1, "anomaly": False}, {"seq": 9, "anomaly": True}]
    await service.feedback(*labels)
    assert await service.metric("itan_labels_total", outcome=outcome) == 1


async def test_scores_and_surprises_are_counted_by_how_high_they_are(service):
    answer = await service.observe(blobs(900))
    pairs = [pair for pair in zip(answer["score"], answer["threshold"], strict=True) if pair[0] is not None]
    flags = sum(answer["is_anomaly"])
    assert len(pairs) == 868
    assert await service.metric("itan_score_nats_count") == await service.metric("itan_surprise_nats_count") == 868
    assert await service.metric("itan_score_nats_bucket", le="5.0") == sum(score <= 5 for score, _ in pairs)
    assert await service.metric("itan_surprise_nats_bucket", le="0.0") == 868 - flags
    assert await service.metric("itan_flags_total") == flags > 0
    assert await service.metric("itan_expected_flags_total", truth="anomalous") == pytest.approx(8.68)
    assert await service.metric("itan_expected_flags_total", truth="normal") == pytest.approx(RATE * (868 - 8.68))


async def test_false_alarms_that_cost_less_are_expected_more_often():
    async with Service() as service:
        await service.accepted("PUT", "/streams/s", json={"n_features": 2, "cost_false_positive": 0.1})
        await service.observe(blobs(132))
        assert await service.metric("itan_expected_flags_total", truth="normal") == pytest.approx(10 * RATE * 99)


async def test_splits_and_retractions_are_counted_as_they_happen(service):
    answer = await service.observe(blobs(900))
    nodes = len((await service.http.get("/density?stream=s")).json()["nodes"])
    assert await service.metric("itan_splits_total") == (nodes - 1) / 2 > 0
    odd = [{"seq": seq, "anomaly": True} for seq in (100, 200, 300)]
    assert sum((await service.feedback(*odd))["retracted"]) == 3
    await service.feedback(*odd)
    assert await service.metric("itan_retractions_total") == 3
    assert answer["seq"][-1] == 900


async def test_labels_are_counted_by_decision_and_truth_and_revised_ones_again(service):
    answer = await service.observe(blobs(400))
    flagged = answer["is_anomaly"].index(True) + 1
    passed = answer["is_anomaly"].index(False, 40) + 1
    in_warmup = {"seq": 1, "anomaly": True}

    async def told():
        return [await service.metric("itan_confusion_total", cell=cell) for cell in CELLS]

    await service.feedback({"seq": flagged, "anomaly": False}, {"seq": passed, "anomaly": True}, in_warmup)
    assert await told() == [0, 1, 0, 1]
    await service.feedback({"seq": flagged, "anomaly": True}, {"seq": passed, "anomaly": False}, query="&dry_run=true")
    await service.feedback({"seq": flagged, "anomaly": False})
    assert await told() == [0, 1, 0, 1]
    await service.feedback({"seq": flagged, "anomaly": True}, {"seq": passed, "anomaly": None})
    assert await told() == [1, 1, 0, 1]


async def test_counters_only_rise_and_a_replay_counts_nothing_again():
    clock = FakeClock()
    store = MemoryStore(clock.monotonic)

    def counters(lines):
        named = [line.rpartition(" ") for line in lines if re.match(r"itan_\w+(_total|_count|_bucket)\b", line)]
        return {name: float(value) for name, _, value in named if "/metrics" not in name}

    service = Service(store, clock, memory_budget_mb=1e-6)  # no room for any
    async with service:
        for stream in ("s", "t"):
            await service.observe(blobs(900), stream)
            await service.feedback(*({"seq": seq, "anomaly": seq % 2 == 0} for seq in range(700, 720)), stream=stream)
        before = counters(await lines_of(service))
        await service.registry.close_unused()
        assert await service.metric("itan_open_streams") == 0
        for stream in ("s", "t"):
            assert (await service.http.get(f"/streams/{stream}/export")).status_code == 200
        after = counters(await lines_of(service))
        assert all(after[name] >= before[name] for name in before)
        await service.observe(30.0 - 4.0 * blobs(900, seed=1))  # elsewhere, so that nodes are cut
        assert await service.metric("itan_splits_total") > before["itan_splits_total"]
        await service.crash()
    again = Service(store, clock)
    async with again:
        blank = counters(await lines_of(again))
        await again.http.get("/streams/s/export")
        replayed = counters(await lines_of(again))
        risen = {name.partition("{")[0] for name in blank if replayed[name] > blank[name]}
        assert risen <= {
            "itan_streams_opened_total",
            "itan_lease_changes_total",
            "itan_requests_total",
            "itan_request_seconds_count",
            "itan_request_seconds_bucket",
        }
        await again.observe([[0.0, 0.0]])
        assert await again.metric("itan_nodes") > 5
        assert await again.metric("itan_splits_total") <= 1
        assert await again.metric("itan_samples_total", outcome="learned") == 1


async def test_changes_of_leases_are_counted():
    clock = FakeClock()
    store = MemoryStore(clock.monotonic)

    async def told(service):
        return [await service.metric("itan_lease_changes_total", change=change) for change in LEASE_CHANGES]

    async with Service(store, clock, worker="a") as a, Service(store, clock, worker="b", handover_seconds=0) as b:
        for stream in ("s", "t"):
            await a.observe([[1.0]], stream)
        assert await a.metric("itan_leases_held") == 2
        await b.refused("POST", "/observe?stream=s", 503, "stream_elsewhere", json={"samples": [[1.0]]})
        assert (await told(a), await told(b)) == ([2, 0, 0, 0, 0], [0, 0, 0, 1, 0])
        await a.http.delete("/streams/t")
        clock.advance(60)
        await b.observe([[1.0]])
        await a.registry.worker.leases.renew()
        assert (await told(a), await told(b)) == ([2, 1, 1, 0, 0], [1, 0, 0, 1, 0])
        assert await a.metric("itan_leases_held") == 0


async def test_commands_sent_again_to_a_store_are_counted(tmp_path):
    server = RedisServer(find_valkey(), tmp_path)
    server.start()
    store = open_store(server.url)
    async with Service(store) as service:
        assert await service.metric("itan_store_retries_total") == 0
        server.kill()
        with pytest.raises(StoreUnavailable):
            await store.append("s", Position(0, 0), Entry(Position(1, 0), b"", 1))
        of_appends = await service.metric("itan_store_retries_total")
        with pytest.raises(StoreUnavailable):
            await store.entries("s", Position(0, 0), 1)
        assert await service.metric("itan_store_retries_total") > of_appends > 0


async def test_what_was_set_is_told_beside_what_is():
    async with Service(memory_budget_mb=64) as service:
        assert await service.metric("itan_memory_budget_bytes") == 64 * 2**20
