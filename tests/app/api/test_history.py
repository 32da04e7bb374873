"""What the live page reads of a stream: history, single samples, the review queue, streams in short."""

import asyncio
from copy import deepcopy
from unittest.mock import AsyncMock

import numpy as np
import pytest

from app.storage.memory import MemoryStore
from app.streams.views import history
from tests.app.harness import Service, blobs
from tests.app.incidents import begin, broken, ordinary

COLUMNS = ("seq", "score", "threshold", "is_anomaly", "incident")


@pytest.fixture(scope="module")
def life():
    """600 samples in batches of many sizes, what was answered in columns, and the stream as it is stored."""
    X = blobs(600, seed=1)
    X[[350, 450, 550]] += 300.0

    async def live():
        said, start = {name: [] for name in COLUMNS}, 0
        async with Service() as service:
            for size in [1] * 20 + [7] * 40 + [300]:
                part = X[start : start + size]
                answer = await service.observe(part, ids=[f"id{i}" for i in range(start, start + size)])
                start += size
                for name, column in said.items():
                    column += answer[name]
        return X, said, service.store.stored["s"]

    return asyncio.run(live())


@pytest.fixture
async def filled(service, life):
    """A service that has this stream open."""
    service.x, service.said, stored = life
    service.store.stored["s"] = deepcopy(stored)
    await service.observe(service.x[:1], ids=["id0"])
    return service


async def test_it_is_what_was_answered(filled):
    page = await filled.accepted("GET", "/streams/s/history?from=1&values=true")
    assert {name: page[name] for name in COLUMNS} == filled.said
    assert page["values"] == filled.x.tolist()
    assert page["id"] == [f"id{i}" for i in range(600)]
    assert (page["oldest_seq"], page["newest_seq"], page["next"], page["thinned"]) == (1, 600, None, False)
    assert page["features"] == ["0", "1"]


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("", 1, 600),
        ("points=50", 551, 600),
        ("from=590", 590, 600),
        ("from=17&to=33", 17, 33),
        ("to=20", 1, 20),
        ("to=20&points=16", 5, 20),
        ("from=600&to=600", 600, 600),
        ("from=599&to=9007199254740991", 599, 600),
        ("from=601", 1, 0),
        ("from=30&to=20", 1, 0),
    ],
)
async def test_a_range_is_inclusive_and_cut_to_what_there_is(filled, query, first, last):
    page = await filled.accepted("GET", f"/streams/s/history?{query}")
    assert page["seq"] == list(range(first, last + 1))
    assert page["next"] is None


async def test_labels_are_those_of_now(filled):
    await filled.feedback({"seq": 5, "anomaly": True}, {"seq": 400, "anomaly": False}, {"seq": 401, "anomaly": True})
    await filled.feedback({"seq": 401, "anomaly": None}, {"seq": 400, "anomaly": True})
    page = await filled.accepted("GET", "/streams/s/history?from=1")
    assert {seq: label for seq, label in zip(page["seq"], page["label"], strict=True) if label is not None} == {
        5: True,
        400: True,
    }


async def test_a_thinned_run_keeps_what_matters(filled):
    await filled.feedback(*({"seq": seq, "anomaly": False} for seq in (3, 299, 431)))
    page = await filled.accepted("GET", "/streams/s/history?from=1&points=100")
    flagged = {seq for seq, flag in zip(filled.said["seq"], filled.said["is_anomaly"], strict=True) if flag}
    assert page["thinned"]
    assert not page["marked_thinned"]
    assert len(page["seq"]) <= 100
    assert flagged | {3, 299, 431} <= set(page["seq"])
    scores = [score for score in filled.said["score"] if score is not None]
    assert {max(scores), min(scores)} <= set(page["score"])


async def test_a_long_range_is_read_part_by_part(filled, monkeypatch):
    monkeypatch.setattr(history, "MAX_SCANNED", 250)
    seqs, start, requests = [], 1, 0
    while start is not None:
        page = await filled.accepted("GET", f"/streams/s/history?from={start}&to=590")
        seqs += page["seq"]
        start, requests = page["next"], requests + 1
    assert seqs == list(range(1, 591))
    assert requests == 3


async def test_after_a_reset_the_log_begins_anew(filled):
    await filled.accepted("POST", "/streams/s/reset")
    page = await filled.accepted("GET", "/streams/s/history?from=1")
    assert (page["seq"], page["oldest_seq"], page["newest_seq"], page["position"]) == ([], 601, 600, "600-1")
    await filled.observe(blobs(3))
    page = await filled.accepted("GET", "/streams/s/history?from=1")
    assert (page["seq"], page["oldest_seq"], page["newest_seq"]) == ([601, 602, 603], 601, 603)
    await filled.refused("GET", "/streams/s/samples/600", 404, "unknown_sample")


async def test_a_trimmed_log_gives_what_it_holds():
    async with Service(label_horizon_samples=50, snapshot_replay_seconds=1e-9) as service:
        for _ in range(20):
            await service.observe(blobs(10))
            await service.feedback({"seq": 1, "anomaly": True})
        await service.snapshotter.save_due()
        page = await service.accepted("GET", "/streams/s/history?from=1")
        assert 1 < page["oldest_seq"] <= 151
        assert page["seq"] == list(range(page["oldest_seq"], 201))
        await service.refused("GET", "/streams/s/samples/1", 404, "unknown_sample")


async def test_wide_values_are_fewer(service):
    await service.observe(blobs(300, m=256)[:, :256])
    page = await service.accepted("GET", "/streams/s/history?points=10000&values=true")
    assert len(page["values"]) == len(page["seq"]) == 300
    assert history.MAX_SCANNED > 0
    await service.observe(blobs(2000, m=256), stream="s")
    page = await service.accepted("GET", "/streams/s/history?points=10000&values=true&from=1")
    assert len(page["seq"]) <= 500_000 // 256
    assert page["thinned"]


async def test_the_time_is_the_timestamp_or_that_of_arrival(service):
    now = service.clock.wall
    await service.observe([[1.0, 2.0]], timestamps=[now - 60])
    await service.observe([[1.0, 2.0]])
    page = await service.accepted("GET", "/streams/s/history")
    assert page["time"] == [now - 60, now]


async def test_reading_opens_no_stream(filled):
    store = filled.store
    await filled.registry.save(filled.registry.sessions["s"], closing="room")
    assert not filled.registry.sessions
    for path in ("history?values=true", "review"):
        await filled.accepted("GET", f"/streams/s/{path}")
    await filled.accepted("GET", "/streams?details=true")
    assert not filled.registry.sessions
    assert store is filled.store


async def test_one_sample_is_explained_by_the_model_of_now(filled):
    flagged = filled.said["seq"][filled.said["is_anomaly"].index(True)]
    for seq in (flagged, 500, 3):
        sample = await filled.accepted("GET", f"/streams/s/samples/{seq}")
        assert sample["values"] == dict(zip("01", filled.x[seq - 1].tolist(), strict=True))
        assert sample["score"] == filled.said["score"][seq - 1]
        assert sample["is_anomaly"] == (seq == flagged or filled.said["is_anomaly"][seq - 1])
        body = {"samples": [filled.x[seq - 1].tolist()]}
        again = await filled.accepted("POST", "/observe?stream=s&learn=false", json=body)
        assert sample["score_now"] == pytest.approx(again["score"][0])
        assert sample["contributions"].keys() == sample["expected"].keys() == {"0", "1"}
        assert sample["path"][0] == 0
        assert sample["first_explanation"] is None
    await filled.feedback({"seq": 500, "anomaly": False})
    assert (await filled.accepted("GET", "/streams/s/samples/500"))["label"] is False


async def test_the_explanation_given_at_first_is_kept(filled):
    path = "/observe?stream=s&explain=true"
    answer = await filled.accepted("POST", path, json={"samples": [[1.0, 2.0], [400.0, -90.0]]})
    sample = await filled.accepted("GET", "/streams/s/samples/602")
    assert sample["first_explanation"] == answer["explanation"][1]
    await filled.observe(blobs(300, seed=9))
    later = await filled.accepted("GET", "/streams/s/samples/602")
    assert later["first_explanation"] == answer["explanation"][1]
    assert later["contributions"] != sample["contributions"]


async def test_before_the_stream_is_ready_nothing_is_explained(service):
    await service.observe(blobs(5))
    sample = await service.accepted("GET", "/streams/s/samples/5")
    assert [sample[name] for name in ("score", "score_now", "contributions", "expected", "path")] == [None] * 5
    assert (await service.accepted("GET", "/streams/s/review"))["samples"] == []


@pytest.mark.parametrize("seq", [601, 2**53 - 1])
async def test_a_sample_that_is_not_there(filled, seq):
    problem = await filled.refused("GET", f"/streams/s/samples/{seq}", 404, "unknown_sample")
    assert (problem["field"], problem["value"]) == ("seq", seq)


async def test_the_queue_holds_the_close_calls_by_distance(service):
    await begin(service, 400)
    near = [await close_call(service, margin) for margin in (0.3, 0.05, 0.2)]
    seqs = (await service.observe(near))["seq"]
    queue = await service.accepted("GET", "/streams/s/review")
    scores = (await service.accepted("GET", "/streams/s/history"))["score"]
    assert queue["border"] == pytest.approx(0.5 * np.subtract(*np.quantile(scores[-345:], [0.75, 0.25])), rel=0.2)
    assert {one["seq"] for one in queue["samples"]} >= set(seqs)
    distances = [one["threshold"] - one["score"] for one in queue["samples"]]
    assert distances == sorted(distances)
    assert 0 < distances[0] < distances[-1] <= queue["border"]
    assert queue["incidents"] == []


async def close_call(service, margin):
    """Find a sample whose score is so much below the threshold."""
    ray = np.linspace([0.0, 0.0], [8.0, 8.0], 800)
    tried = await service.accepted("POST", "/observe?stream=s&learn=false", json={"samples": ray.tolist()})
    below = np.array(tried["threshold"]) - np.array(tried["score"])
    return ray[abs(below - margin).argmin()].tolist()


def in_incident(filled):
    """Which samples belong to an incident."""
    return np.array([incident is not None for incident in filled.said["incident"]])


async def test_the_queue_holds_the_incidents_without_a_label_open_ones_first_then_the_gravest(service):
    await begin(service, 400)
    for n, seed in ((3, 1), (6, 2)):
        await broken(service, n, seed)
        await service.observe(ordinary(20, seed))
    await broken(service, 2)
    queue = await service.accepted("GET", "/streams/s/review")
    everything = (await service.accepted("GET", "/incidents?stream=s"))["incidents"]
    assert [one["state"] for one in queue["incidents"]] == ["open", "closed", "closed"]
    assert sorted(queue["incidents"], key=lambda one: one["incident"]) == everything[::-1]
    assert queue["incidents"][1]["peak_severity"] > queue["incidents"][2]["peak_severity"]
    assert queue["to_review"] == 3
    short = await service.accepted("GET", "/streams/s/review?limit=1")
    assert (short["incidents"], short["to_review"]) == (queue["incidents"][:1], 3)
    for truth in (True, False):
        await service.feedback({"seq": queue["incidents"][1]["peak_seq"], "anomaly": truth})
        left = await service.accepted("GET", "/streams/s/review")
        assert (left["incidents"], left["to_review"]) == ([queue["incidents"][0], queue["incidents"][2]], 2)
    await service.feedback({"seq": queue["incidents"][1]["peak_seq"], "anomaly": None})
    assert len((await service.accepted("GET", "/streams/s/review"))["incidents"]) == 3


async def test_incidents_too_old_to_be_labelled_are_not_to_review_neither_here_nor_in_the_list():
    async with Service(label_horizon_samples=300) as service:
        await begin(service, 400)
        for seed, n_after in ((1, 270), (2, 20)):
            await broken(service, 3, seed)
            await service.observe(ordinary(n_after, seed))
        queue = await service.accepted("GET", "/streams/s/review")
        (summary,) = (await service.accepted("GET", "/streams?details=true"))["streams"]
        assert summary["to_review"] == queue["to_review"] == 2
        await service.observe(ordinary(10, 3))
        queue = await service.accepted("GET", "/streams/s/review")
        (summary,) = (await service.accepted("GET", "/streams?details=true"))["streams"]
        assert summary["to_review"] == queue["to_review"] == 1


async def test_flagged_samples_whose_incident_the_index_does_not_hold_are_reviewed_one_by_one(filled):
    flagged = set(np.array(filled.said["seq"])[filled.said["is_anomaly"]].tolist())
    before = {one["seq"] for one in (await filled.accepted("GET", "/streams/s/review"))["samples"]}
    filled.store.incidents = AsyncMock(return_value=[])
    after = {one["seq"] for one in (await filled.accepted("GET", "/streams/s/review"))["samples"]}
    assert flagged
    assert not flagged & before
    assert flagged <= after


async def test_what_has_a_label_leaves_the_queue_and_comes_back_without(service):
    await begin(service, 400)
    seqs = (await service.observe([await close_call(service, margin) for margin in (0.3, 0.05, 0.2)]))["seq"]
    for truth, is_there in ((False, False), (None, True), (True, False)):
        await service.feedback({"seq": seqs[0], "anomaly": truth})
        queue = await service.accepted("GET", "/streams/s/review")
        assert (seqs[0] in [one["seq"] for one in queue["samples"]]) == is_there


async def test_a_short_queue_holds_the_newest(service):
    await begin(service, 400)
    await service.observe([await close_call(service, margin) for margin in (0.3, 0.05, 0.2)])
    everything = (await service.accepted("GET", "/streams/s/review"))["samples"]
    short = (await service.accepted("GET", "/streams/s/review?limit=2"))["samples"]
    assert {one["seq"] for one in short} == set(sorted(one["seq"] for one in everything)[-2:])


async def test_streams_in_short_say_the_same_open_and_closed(filled):
    await filled.feedback({"seq": 300, "anomaly": True})
    (opened,) = (await filled.accepted("GET", "/streams?details=true"))["streams"]
    full = await filled.accepted("GET", "/streams/s")
    assert opened["n_seen"] == full["n_seen"] == 600
    assert opened["n_flagged"] == sum(filled.said["is_anomaly"])
    assert opened["n_nodes"] == len((await filled.accepted("GET", "/density?stream=s"))["nodes"])
    assert opened["threshold"] == full["threshold"]
    assert (opened["labels"], opened["misses"] + opened["true_alarms"]) == (1, 1)
    assert opened["newest_time"] == filled.clock.wall
    await filled.registry.save(filled.registry.sessions["s"], closing="room")
    (closed,) = (await filled.accepted("GET", "/streams?details=true"))["streams"]
    assert closed.pop("silent_seconds") >= opened.pop("silent_seconds")
    assert closed == opened


async def test_a_stream_of_another_worker_counts_what_its_log_holds():
    store = MemoryStore()
    async with Service(store, worker="writer") as writer, Service(store, worker="reader") as reader:
        await writer.observe(blobs(100))
        (seen,) = (await reader.accepted("GET", "/streams?details=true"))["streams"]
        assert (seen["n_seen"], seen["as_of_seq"]) == (100, 0)
        assert (await reader.accepted("GET", "/streams/s/history"))["newest_seq"] == 100


async def test_a_damaged_stream_is_named_in_the_list_and_spoils_nothing(filled):
    await filled.observe(blobs(5), stream="t")
    await filled.registry.save(filled.registry.sessions["s"], closing="room")
    stored = filled.store.stored["s"]
    stored.snapshot = type(stored.snapshot)(stored.snapshot.position, b"damaged")
    assert not (await filled.accepted("GET", "/streams/s/check"))["ok"]
    first, second = (await filled.accepted("GET", "/streams?details=true"))["streams"]
    assert (first["stream"], first["readable"], first["n_seen"]) == ("s", False, None)
    assert (second["stream"], second["readable"], second["n_seen"]) == ("t", True, 5)


async def test_the_model_can_be_had_without_its_covariances(filled):
    whole = await filled.accepted("GET", "/density?stream=s")
    short = await filled.accepted("GET", "/density?stream=s&covariances=false")
    assert [{k: v for k, v in node.items() if k != "covariance"} for node in whole["nodes"]] == short["nodes"]
