"""Maintenance windows: what lies in one is scored and marked, and leaves everything else as if it had never come."""

from typing import Any

import numpy as np
import pytest

from app.api.bodies.wording import TIME
from app.documents import FRESH_SECONDS
from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.open.backoff import MAX_PAUSE_SECONDS
from core import Detector
from tests.app.harness import NOW, DisturbedStore, FakeClock, Service, blobs, raising

DEPLOY = {"streams": "web-*", "from": NOW + 100, "to": NOW + 200, "reason": "new release"}
ODD = [[60.0, -60.0]]


async def put(service: Service, name: str = "deploy", **fields: Any) -> dict[str, Any]:
    return await service.accepted("PUT", f"/windows/{name}", json=DEPLOY | fields)


async def model_of(service: Service, stream: str) -> Detector:
    async with service.registry.reading(stream) as session:
        return (await session.state()).detector


async def learned(service: Service, stream: str) -> dict[str, Any]:
    """What a stream has learned, but for the numbers of samples."""
    detector = await model_of(service, stream)
    arrays = detector.state.state()
    gone = ("held_out_first", "held_out_count", "warmup", "incident", "labelled_seq")
    numbers = ("ordinary_seqs", "incident_seqs", "settling_seqs")
    set_aside = {name: (arrays[name] < 0).tobytes() for name in numbers}
    return {name: array.tobytes() for name, array in arrays.items() if name not in gone + numbers} | set_aside


# the documents


async def test_a_window_is_kept_listed_and_deleted(service: Service) -> None:
    put = await service.http.put("/windows/deploy", json=DEPLOY)
    assert (put.status_code, put.json()) == (201, DEPLOY | {"window": "deploy"})
    moments = {"from": "2027-01-15T08:01:40Z", "to": "2027-01-15T09:03:20+01:00"}
    again = await service.http.put("/windows/deploy", json=DEPLOY | moments)
    assert (again.status_code, again.json()) == (200, put.json())
    assert await service.accepted("GET", "/windows/deploy") == put.json()
    assert await service.accepted("GET", "/windows") == {"windows": [put.json()]}
    assert (await service.http.delete("/windows/deploy")).status_code == 204
    for method in ("GET", "DELETE"):
        await service.refused(method, "/windows/deploy", 404, "unknown_window")


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"streams": "web-*-1"}, "invalid_window", "streams"),
        ({"streams": 3}, "invalid_body", "streams"),
        ({"from": NOW + 200}, "invalid_window", "to"),
        ({"to": NOW}, "invalid_window", "to"),
        ({"to": NOW + 367 * 86_400}, "invalid_window", "to"),
        ({"from": 1000 * NOW}, "invalid_window", "from"),
        ({"from": "tomorrow"}, "invalid_body", "from"),
        ({"from": "2027-01-15T08:01:40"}, "invalid_body", "from"),
        ({"from": True}, "invalid_body", "from"),
        ({"from": None}, "invalid_body", "from"),
        ({"reason": "x" * 501}, "invalid_body", "reason"),
        ({"until": 3}, "invalid_body", "until"),
    ],
)
async def test_what_is_no_window_is_refused(service: Service, fields: dict[str, Any], code: str, field: str) -> None:
    problem = await service.refused("PUT", "/windows/deploy", 422, code, json=DEPLOY | fields)
    assert problem["field"] == field
    assert await service.accepted("GET", "/windows") == {"windows": []}


@pytest.mark.parametrize("moment", ["2027-01-15", "2027-01-15T08:01:40", None])
async def test_a_time_that_is_none_is_refused_with_how_to_write_one(service: Service, moment: str | None) -> None:
    for method, path, body, field in (
        ("PUT", "/windows/deploy", DEPLOY | {"from": moment}, "from"),
        ("POST", "/feedback?stream=s", {"ranges": [{"from": moment, "to": NOW, "anomaly": True}]}, "ranges[0].from"),
    ):
        problem = await service.refused(method, path, 422, "invalid_body", json=body)
        assert problem["detail"].startswith(f"{field} is ")
        assert problem["limit"] == TIME


async def test_a_name_that_is_none_is_refused(service: Service) -> None:
    problem = await service.refused("PUT", "/windows/a%20b", 422, "invalid_window", json=DEPLOY)
    assert problem["field"] == "window"


async def test_when_there_is_no_room_the_window_that_is_over_longest_goes() -> None:
    async with Service(max_windows=3) as service:
        over = NOW - service.app.state.service.settings.timestamp_allowance_seconds
        for name, end in (("a", over - 10), ("b", over - 20), ("c", over + 10)):
            await put(service, name, **{"from": over - 100, "to": end})
        await put(service, "a", **{"from": over - 100, "to": over - 5})
        await put(service, "d")
        kept = (await service.accepted("GET", "/windows"))["windows"]
        assert [one["window"] for one in kept] == ["a", "c", "d"]
        await put(service, "e")
        problem = await service.refused("PUT", "/windows/f", 413, "too_many", json=DEPLOY)
        assert "ITAN_MAX_WINDOWS" in problem["limit"]


async def ended_long_ago(service: Service, *names: str, **headers: Any) -> None:
    """Let windows be there that were over two hours ago."""
    for name in names:
        given = DEPLOY | {"from": NOW - 7300, "to": NOW - 7200}
        assert (await service.http.put(f"/windows/{name}", json=given, **headers)).status_code == 201


async def test_the_window_that_would_go_stays_if_the_new_one_cannot_be_kept() -> None:
    store = DisturbedStore(MemoryStore())
    async with Service(store, max_windows=1) as service:
        await ended_long_ago(service, "a")
        store.before["put_document"] = raising(StoreUnavailable("not now"))
        await service.refused("PUT", "/windows/b", 503, "store_unavailable", json=DEPLOY)
        assert [one["window"] for one in (await service.accepted("GET", "/windows"))["windows"]] == ["a"]
        del store.before["put_document"]
        store.before["delete_document"] = raising(StoreUnavailable("not now"))
        await service.refused("PUT", "/windows/b", 503, "store_unavailable", json=DEPLOY)
        assert [one["window"] for one in (await service.accepted("GET", "/windows"))["windows"]] == ["a", "b"]
        del store.before["delete_document"]
        await service.refused("PUT", "/windows/c", 413, "too_many", json=DEPLOY)
        await service.http.delete("/windows/b")
        await put(service, "c")
        assert [one["window"] for one in (await service.accepted("GET", "/windows"))["windows"]] == ["c"]


@pytest.mark.parametrize("when", ["known before", "while it is put"])
async def test_a_window_that_another_worker_has_just_prolonged_does_not_go(when: str) -> None:
    kept, clock = MemoryStore(), FakeClock()
    store = DisturbedStore(kept)
    async with Service(store, clock, worker="a", max_windows=1) as a, Service(kept, clock, worker="b") as b:
        await ended_long_ago(a, "a")
        await a.accepted("GET", "/windows")

        async def prolong() -> None:
            await put(b, "a")

        if when == "known before":
            await prolong()
            await a.refused("PUT", "/windows/b", 413, "too_many", json=DEPLOY)
        else:
            store.before["put_document"] = prolong
            await put(a, "b")
        assert (await b.accepted("GET", "/windows/a"))["to"] == DEPLOY["to"]


KEYS = (
    "all,team:label+read:web-*,one:label:web-1,reader:read:web-*,watcher:read+label:db-*,watcher:read:*,"
    "sender:observe:web-*,other:admin:db-*"
)


@pytest.mark.parametrize(
    ("key", "streams", "allowed"),
    [
        ("all", "*", True),
        ("team", "web-*", True),
        ("team", "web-1*", True),
        ("team", "web-1", True),
        ("team", "web*", False),
        ("team", "*", False),
        ("one", "web-1", True),
        ("one", "web-1*", False),
        ("reader", "web-1", False),
        ("sender", "web-1", False),
        ("other", "db-*", True),
        ("other", "web-1", False),
    ],
)
async def test_who_may_label_all_streams_of_a_window_may_keep_it(key: str, streams: str, allowed: bool) -> None:
    async with Service(api_keys=KEYS) as service:
        headers = {"Authorization": f"Bearer {key}"}
        given = DEPLOY | {"streams": streams}
        answer = await service.http.put("/windows/deploy", json=given, headers=headers)
        assert answer.status_code == (201 if allowed else 403)


async def test_nobody_touches_or_sees_the_windows_of_others() -> None:
    async with Service(api_keys=KEYS) as service:
        as_key = {name: {"Authorization": f"Bearer {name}"} for name in ("team", "other", "reader", "watcher", "one")}
        assert (await service.http.put("/windows/deploy", json=DEPLOY, headers=as_key["team"])).status_code == 201
        theirs = DEPLOY | {"streams": "db-*"}
        assert (await service.http.put("/windows/deploy", json=theirs, headers=as_key["other"])).status_code == 403
        assert (await service.http.put("/windows/deploy", json=theirs, headers=as_key["team"])).status_code == 403
        for method in ("GET", "DELETE"):
            taken, free = [
                await service.http.request(method, f"/windows/{name}", headers=as_key["other"])
                for name in ("deploy", "nobody")
            ]
            assert (taken.status_code, taken.text) == (404, free.text.replace("nobody", "deploy"))
        for name, status in (("reader", 403), ("watcher", 403), ("one", 404)):
            assert (await service.http.delete("/windows/deploy", headers=as_key[name])).status_code == status
        seen = {name: (await service.http.get("/windows", headers=as_key[name])).json() for name in ("team", "other")}
        assert [len(found["windows"]) for found in seen.values()] == [1, 0]
        assert (await service.http.get("/windows/deploy", headers=as_key["reader"])).status_code == 200
        assert (await service.http.delete("/windows/deploy", headers=as_key["team"])).status_code == 204


async def test_a_refusal_of_a_name_tells_nothing_of_the_window_that_has_it() -> None:
    async with Service(api_keys=KEYS) as service:
        as_key = {name: {"Authorization": f"Bearer {name}"} for name in ("team", "other")}
        await service.http.put("/windows/deploy", json=DEPLOY, headers=as_key["team"])
        theirs = DEPLOY | {"streams": "db-*"}
        refused = await service.http.put("/windows/deploy", json=theirs, headers=as_key["other"])
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert "'deploy'" in refused.json()["detail"]
        assert "web" not in refused.text


@pytest.mark.parametrize(("method", "read"), [("PUT", "documents"), ("DELETE", "document")])
async def test_a_key_does_not_change_a_window_that_became_anothers_meanwhile(method: str, read: str) -> None:
    """The window is one of the key's own streams when it is read, and of others when it is written."""
    kept, clock = MemoryStore(), FakeClock()
    store, both = DisturbedStore(kept), {"api_keys": KEYS}
    async with Service(store, clock, worker="a", **both) as a, Service(kept, clock, worker="b", **both) as b:
        team, everyone = ({"Authorization": f"Bearer {name}"} for name in ("team", "all"))
        theirs = DEPLOY | {"streams": "db-*"}
        await a.http.put("/windows/deploy", json=DEPLOY, headers=team)

        async def give_away() -> None:
            store.after.clear()
            await b.http.put("/windows/deploy", json=theirs, headers=everyone)

        store.after[read] = give_away
        given = {"json": DEPLOY | {"reason": "mine"}} if method == "PUT" else {}
        answer = await a.http.request(method, "/windows/deploy", headers=team, **given)
        assert answer.status_code == (403 if method == "PUT" else 404)
        assert (await b.http.get("/windows/deploy", headers=everyone)).json() == theirs | {"window": "deploy"}


async def test_a_key_makes_no_room_with_the_windows_of_others() -> None:
    async with Service(api_keys=KEYS, max_windows=2) as service:
        as_key = {name: {"Authorization": f"Bearer {name}"} for name in ("team", "other", "all")}
        await ended_long_ago(service, "first", headers=as_key["team"])
        await ended_long_ago(service, "second", headers=as_key["team"])
        theirs = DEPLOY | {"streams": "db-*"}
        refused = await service.http.put("/windows/db", json=theirs, headers=as_key["other"])
        assert (refused.status_code, refused.json()["code"]) == (413, "too_many")
        assert len((await service.http.get("/windows", headers=as_key["all"])).json()["windows"]) == 2
        assert (await service.http.put("/windows/third", json=DEPLOY, headers=as_key["team"])).status_code == 201
        seen = (await service.http.get("/windows", headers=as_key["team"])).json()["windows"]
        assert [one["window"] for one in seen] == ["second", "third"]


# the samples


async def test_what_lies_in_a_window_is_as_if_it_had_never_come(service: Service) -> None:
    """By the times of samples, which come in one batch; another stream never sees those in the window."""
    await put(service)
    service.clock.advance(1000)
    X, times = blobs(400), [NOW + i for i in range(400)]
    X[150:160] = [60.0, -60.0]
    X[250:260] = [-60.0, 60.0]
    answer = await service.observe(X, "web-1", timestamps=times)
    kept = [i for i in range(400) if not 100 <= i < 200]
    assert answer["in_maintenance"] == [i not in kept for i in range(400)]
    without = await service.observe(X[kept], "db-1", timestamps=[times[i] for i in kept])
    assert not any(without["in_maintenance"])
    for column in ("score", "threshold", "is_anomaly", "severity", "event", "ready"):
        assert [answer[column][i] for i in kept] == without[column], column
    assert all(answer["is_anomaly"][150:160])
    assert answer["incident"][100:200] == answer["event"][100:200] == [None] * 100
    assert answer["seq"] == list(range(1, 401))
    assert await learned(service, "web-1") == await learned(service, "db-1")
    begins = {
        stream: [(one["begin"], one["n_flagged"], one["state"]) for one in found["incidents"]]
        for stream in ("web-1", "db-1")
        if (found := await service.accepted("GET", f"/incidents?stream={stream}"))
    }
    assert begins["web-1"] == begins["db-1"]
    assert times[250] in [begin for begin, *_ in begins["web-1"]]


async def test_without_a_time_its_arrival_counts(service: Service) -> None:
    await put(service)
    for seconds, expected in ((0, False), (100, True), (99, True), (1, False)):
        service.clock.advance(seconds)
        answer = await service.observe(blobs(1), "web-1")
        assert answer["in_maintenance"] == [expected]
        told = await service.accepted("GET", "/streams/web-1")
        assert told["in_maintenance"] is expected


async def test_they_do_not_count_for_the_warm_up(service: Service) -> None:
    await put(service, **{"from": NOW})
    first = await service.observe(blobs(500), "web-1")
    assert (first["samples_needed"], any(first["ready"]), first["score"][-1]) == (32, False, None)
    service.clock.advance(300)
    assert (await service.observe(blobs(70), "web-1"))["samples_needed"] == 0
    overview = await service.accepted("GET", "/streams/web-1")
    assert (overview["n_seen"], overview["ready"]) == (570, True)


async def test_a_late_label_is_not_learned(service: Service) -> None:
    await service.observe(blobs(100), "web-1")
    await put(service, **{"from": NOW})
    held = await service.observe(ODD * 3, "web-1", ids=["a", "b", "c"])
    before = (await model_of(service, "web-1")).to_bytes()
    labels = [{"id": "a", "anomaly": True}, {"seq": 102, "anomaly": False}, {"id": "a", "anomaly": True}]
    for query in ("&dry_run=true", ""):
        said = await service.feedback(*labels, stream="web-1", query=query)
        assert said["outcome"] == ["not_learned"] * 3
        assert said["retracted"] == [None] * 3
        assert said["outcomes"]["not_learned"] == 2
        assert said["threshold_before"] == said["threshold_after"]
    assert (await model_of(service, "web-1")).to_bytes() == before
    mixed = await service.feedback({"id": "b", "anomaly": True}, {"seq": 7, "anomaly": True}, stream="web-1")
    assert mixed["outcome"] == ["not_learned", "applied"]
    assert held["seq"] == [101, 102, 103]
    shown = await service.accepted("GET", "/streams/web-1/samples/101")
    assert (shown["in_maintenance"], shown["label"]) == (True, None)


async def test_an_open_incident_waits_for_the_end_of_a_window(service: Service) -> None:
    await service.observe(blobs(100), "web-1")
    await service.observe(ODD * 2, "web-1")
    await put(service, **{"from": NOW})
    await service.observe(blobs(30), "web-1")
    await service.observe(ODD * 30, "web-1")
    incident = await incident_of(service, 101)
    assert (incident["state"], incident["n_flagged"], incident["last_seq"]) == ("open", 2, 102)
    service.clock.advance(300)
    again = await service.observe(ODD, "web-1")
    assert again["incident"] == [101]
    await service.observe(blobs(30), "web-1")
    incident = await incident_of(service, 101)
    assert (incident["state"], incident["n_flagged"]) == ("closed", 3)


async def incident_of(service: Service, seq: int) -> dict[str, Any]:
    found = (await service.accepted("GET", "/incidents"))["incidents"]
    return next(one for one in found if one["incident"] == seq)


async def test_a_sample_that_comes_again_is_answered_as_it_was(service: Service) -> None:
    await service.observe(blobs(100), "web-1")
    await put(service, **{"from": NOW})
    first = await service.observe(ODD, "web-1", ids=["a"])
    assert (await service.http.delete("/windows/deploy")).status_code == 204
    again = await service.observe([*ODD, *ODD], "web-1", ids=["a", "b"])
    assert again["in_maintenance"] == [True, False]
    for column in ("seq", "score", "threshold", "is_anomaly", "in_maintenance"):
        assert again[column][0] == first[column][0]


async def test_a_window_for_the_past_changes_only_what_comes_after_it_was_declared(service: Service) -> None:
    service.clock.advance(1000)
    before = await service.observe(blobs(10), "web-1", timestamps=[NOW + 150] * 10)
    await put(service)
    after = await service.observe(blobs(2), "web-1", timestamps=[NOW + 150, NOW + 200])
    assert (any(before["in_maintenance"]), after["in_maintenance"]) == (False, [True, False])
    history = await service.accepted("GET", "/streams/web-1/history")
    assert history["in_maintenance"] == [False] * 10 + [True, False]


async def test_scores_without_learning_are_marked_too(service: Service) -> None:
    await service.observe(blobs(100), "web-1")
    await put(service)
    asked = {"samples": [*ODD, *ODD], "timestamps": [NOW + 150, NOW]}
    service.clock.advance(1000)
    answer = await service.accepted("POST", "/observe?stream=web-1&learn=false", json=asked)
    assert (answer["in_maintenance"], answer["is_anomaly"]) == ([True, False], [True, True])


async def test_records_of_many_streams_are_marked_together_and_alone(service: Service) -> None:
    streams = [f"web-{i}" for i in range(5)] + [f"db-{i}" for i in range(5)]
    for stream in streams:
        await service.observe(blobs(100), stream)
    before = {stream: await learned(service, stream) for stream in streams}
    await put(service, **{"from": NOW})
    records = [{"stream": stream, "sample": ODD[0]} for stream in [*streams, "web-0", "db-0"]]
    answer = await service.accepted("POST", "/ingest", json=records)
    assert answer["in_maintenance"] == [stream.startswith("web") for stream in answer["stream"]]
    assert all(answer["is_anomaly"])
    assert len(set(answer["threshold"][:5] + answer["threshold"][10:11])) == 1
    for stream in streams:
        assert (await learned(service, stream) == before[stream]) == stream.startswith("web")
    flagged = await service.accepted("POST", "/ingest?answer=flagged", json=records[:6])
    assert flagged["in_maintenance"] == [True] * 5 + [False]


async def test_they_are_not_to_review_and_not_counted_as_flagged(service: Service) -> None:
    flagged = (await service.observe(blobs(100), "web-1"))["is_anomaly"].count(True)
    await put(service, **{"from": NOW})
    counted = await metrics_of(service)
    await service.observe(ODD * 5, "web-1")
    (summary,) = (await service.accepted("GET", "/streams?details=true"))["streams"]
    assert summary["flagged_lately"] == flagged
    queue = (await service.accepted("GET", "/streams/web-1/review"))["samples"]
    assert all(sample["seq"] <= 100 for sample in queue)
    grown = {name: value - counted.get(name, 0.0) for name, value in (await metrics_of(service)).items()}
    assert grown['itan_samples_total{outcome="in_maintenance"}'] == 5
    changed = {name.partition("{")[0] for name, n in grown.items() if n}
    of_requests = ("itan_observe_step", "itan_request", "process")
    assert {name for name in changed if not name.startswith(of_requests)} == {
        "itan_log_samples",
        "itan_replay_seconds",
        "itan_samples_total",
        "itan_stream_log_samples",
        "itan_stream_samples",
        "itan_stream_unsaved_events",
        "itan_unsaved_events",
    }


async def metrics_of(service: Service) -> dict[str, float]:
    lines = (await service.http.get("/metrics")).text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


# workers, restarts, the store


@pytest.mark.parametrize("saved", [False, True])
async def test_a_restart_needs_no_windows(saved: bool) -> None:
    """The log says what was in maintenance, whatever became of the window; so does a snapshot."""
    store, clock = MemoryStore(), FakeClock()
    async with Service(store, clock) as service:
        await put(service, streams="*")
        X = blobs(300)
        X[120:130] = X[140:150] = 60.0
        for start in range(0, 300, 20):
            await service.observe(X[start : start + 20], timestamps=[NOW - 10 + i for i in range(start, start + 20)])
            clock.advance(20)
            await service.feedback({"seq": start + 5, "anomaly": start % 40 == 0})
        if saved:
            await service.registry.save(service.registry.sessions["s"])
        assert (await service.http.delete("/windows/deploy")).status_code == 204
        before, incidents = (await model_of(service, "s")).to_bytes(), await service.accepted("GET", "/incidents")
        assert (await model_of(service, "s")).n_held_out == 100
        await service.crash()
    async with Service(store, clock) as again:
        assert (await model_of(again, "s")).to_bytes() == before
        told = await again.accepted("GET", "/streams/s")
        assert told["replay_mismatches"]["other"] == 0
        assert (await again.accepted("GET", "/streams/s/check"))["ok"]
        assert await again.accepted("GET", "/incidents") == incidents


async def test_another_worker_follows_within_seconds() -> None:
    store, clock = MemoryStore(), FakeClock()
    async with Service(store, clock, worker="a") as a, Service(store, clock, worker="b") as b:
        await b.observe(blobs(2), "web-1")
        await put(a, **{"from": NOW - 1})
        clock.advance(FRESH_SECONDS)
        assert (await b.observe(blobs(2), "web-1"))["in_maintenance"] == [True, True]
        await a.http.delete("/windows/deploy")
        assert (await a.observe(blobs(2), "web-2"))["in_maintenance"] == [False, False]
        clock.advance(FRESH_SECONDS)
        assert (await b.observe(blobs(2), "web-1"))["in_maintenance"] == [False, False]


async def test_while_the_windows_cannot_be_read_nothing_is_learned() -> None:
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.observe(blobs(100), "web-1")
        before = (await model_of(service, "web-1")).to_bytes()
        service.clock.advance(FRESH_SECONDS)
        store.before["documents"] = raising(StoreUnavailable("not now"))
        await service.refused("POST", "/observe?stream=web-1", 503, "store_unavailable", json={"samples": ODD})
        records = [{"stream": "web-1", "sample": ODD[0]}, {"stream": "web-2", "sample": ODD[0]}]
        assert (await service.http.post("/ingest", json=records)).status_code == 503
        scored = await service.accepted("POST", "/observe?stream=web-1&learn=false", json={"samples": ODD})
        assert scored["is_anomaly"] == [True]
        assert (await model_of(service, "web-1")).to_bytes() == before
        del store.before["documents"]
        service.clock.advance(MAX_PAUSE_SECONDS)
        assert (await service.observe(ODD, "web-1"))["seq"] == [101]


async def test_few_requests_wait_for_the_windows_of_a_store_that_is_down() -> None:
    store, asked = DisturbedStore(MemoryStore()), []

    async def refuse() -> None:
        asked.append(1)
        raise StoreUnavailable("not now")

    async with Service(store) as service:
        await service.observe(blobs(100), "web-1")
        service.clock.advance(FRESH_SECONDS)
        store.before["documents"] = refuse
        for _ in range(20):
            await service.accepted("POST", "/observe?stream=web-1&learn=false", json={"samples": ODD})
        assert len(asked) == 2


async def test_a_window_that_cannot_be_read_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    async with Service(store) as service:
        await put(service, **{"from": NOW})
        await store.put_document(service.app.state.service.windows._unknown.kind, "bad", b"{")
        service.clock.advance(FRESH_SECONDS)
        for _ in range(2):
            assert (await service.observe(blobs(2), "web-1"))["in_maintenance"] == [True, True]
    assert len([record for record in caplog.records if "bad" in record.getMessage()]) == 1


async def test_an_export_goes_on_elsewhere(service: Service) -> None:
    await put(service, **{"from": NOW})
    await service.observe(blobs(5), "web-1")
    service.clock.advance(300)
    await service.observe(blobs(100), "web-1")
    exported = (await service.http.get("/streams/web-1/export")).content
    answer = await service.http.put(
        "/streams/copy/import", content=exported, headers={"content-type": "application/octet-stream"}
    )
    assert answer.status_code in (200, 201), answer.text
    X = blobs(20, seed=3)
    one, other = await service.observe(X, "web-1"), await service.observe(X, "copy")
    assert one["score"] == other["score"]
    assert np.isfinite(one["threshold"]).all()
