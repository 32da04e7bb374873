"""Labels for all samples of a time, and of an incident: as if each had been labelled by its seq."""

import asyncio
from datetime import UTC, datetime

import pytest

from app.storage.memory import MemoryStore
from tests.app.harness import NOW, DisturbedStore, Service
from tests.app.incidents import begin, broken, ordinary, outage

RANGE = {"from": NOW, "to": NOW + 1e6, "anomaly": True}


async def a_day(service, stream="s", **config):
    """Make 300 ordinary samples, an outage of 12 from NOW + 300 on with ordinary ones in between, and 40 more."""
    await service.accepted("PUT", f"/streams/{stream}", json={"n_features": 2, **config})
    service.clock.advance(2_000)
    mixed = [row for pair in zip(outage(12), ordinary(12, seed=2), strict=True) for row in pair]
    samples = [*ordinary(300), *mixed, *ordinary(40, seed=1)]
    return await service.observe(samples, stream, timestamps=[NOW + place for place in range(len(samples))])


async def by_range(service, *ranges, query="", **more):
    return await service.accepted("POST", f"/feedback?stream=s{query}", json={"ranges": list(ranges), **more})


async def the_incident(service):
    (found, *_) = (await service.accepted("GET", "/incidents?stream=s"))["incidents"]
    return found


def flagged_in(observed, first, last):
    """Give the flagged samples whose places in the request are from first to last."""
    return [observed["seq"][place] for place in range(first, last + 1) if observed["is_anomaly"][place]]


async def one_by_one(seqs, anomaly, **config):
    """Give the answer to labels for these seqs, and the state after them, of a stream as a_day makes it."""
    async with Service() as service:
        await a_day(service, **config)
        answer = await service.feedback(*({"seq": seq, "anomaly": anomaly} for seq in seqs))
        return answer, await service.export()


@pytest.mark.parametrize("anomaly", [True, False, None])
@pytest.mark.parametrize(("only", "seqs"), [("flagged", None), ("all", range(306, 317))])
async def test_a_range_is_as_labels_one_by_one(service, anomaly, only, seqs):
    observed = await a_day(service)
    seqs = list(seqs or flagged_in(observed, 305, 315))
    assert seqs
    before = (await service.store.size("s")).log_entries
    answer = await by_range(service, {"from": NOW + 305, "to": NOW + 315, "anomaly": anomaly, "only": only})
    expected, state = await one_by_one(seqs, anomaly)
    assert answer == expected | {"found": [len(seqs)]}
    assert answer["seq"] == seqs
    assert await service.export() == state
    assert (await service.store.size("s")).log_entries == before + (anomaly is not None)


async def test_times_may_be_texts_and_flagged_is_the_default(service):
    await a_day(service)
    ends = [datetime.fromtimestamp(NOW + end, UTC).isoformat() for end in (305, 315)]
    by_text = await by_range(service, {"from": ends[0], "to": ends[1], "anomaly": True}, query="&dry_run=true")
    by_number = await by_range(service, {"from": NOW + 305, "to": NOW + 315, "anomaly": True}, query="&dry_run=true")
    assert by_text == by_number
    assert 0 < by_text["outcomes"]["applied"] < 11


async def test_a_dry_run_changes_nothing_and_says_what_would_be(service):
    await a_day(service)
    before = await service.export()
    dry = await by_range(service, RANGE, query="&dry_run=true")
    assert await service.export() == before
    assert await by_range(service, RANGE) == dry | {"dry_run": False}


async def test_the_same_again_changes_nothing(service):
    await a_day(service)
    first = await by_range(service, RANGE)
    before = await service.export()
    again = await by_range(service, RANGE)
    assert await service.export() == before
    assert (again["seq"], set(again["outcome"])) == (first["seq"], {"duplicate"})


async def test_a_time_without_samples_finds_none(service):
    await a_day(service)
    for span in ((NOW - 1_000, NOW - 1), (NOW + 305.2, NOW + 305.7), (NOW + 1_000, NOW + 2_000), (NOW + 310.5,) * 2):
        answer = await by_range(service, {"from": span[0], "to": span[1], "anomaly": True, "only": "all"})
        assert (answer["found"], answer["seq"], answer["outcome"]) == ([0], [], [])
        assert set(answer["outcomes"].values()) == {0}


async def test_both_ends_are_in_it(service):
    await a_day(service)
    answer = await by_range(service, {"from": NOW + 305, "to": NOW + 305, "anomaly": True, "only": "all"})
    assert answer["seq"] == [306]


async def test_samples_out_of_order_are_found_by_their_time(service):
    await service.accepted("PUT", "/streams/s", json={"n_features": 2})
    service.clock.advance(100_000)
    for first in (*range(50_000, 51_000, 100), 0, 70_000, 200):
        await service.observe(ordinary(100, seed=first), timestamps=[NOW + first + place for place in range(100)])
    answer = await by_range(service, {"from": NOW + 90, "to": NOW + 205, "anomaly": False, "only": "all"})
    assert answer["seq"] == [*range(1091, 1101), *range(1201, 1207)]


async def test_samples_without_a_time_are_found_by_their_arrival(service):
    for place in range(6):
        await service.observe(ordinary(50, seed=place))
        service.clock.advance(10_000)
    answer = await by_range(service, {"from": NOW + 20_000, "to": NOW + 30_000, "anomaly": False, "only": "all"})
    assert answer["seq"] == list(range(101, 201))


async def test_labels_and_ranges_go_together_and_may_contradict_each_other(service):
    await a_day(service)
    ranges = [
        {"from": NOW + 306, "to": NOW + 307, "anomaly": True, "only": "all"},
        {"from": NOW + 307, "to": NOW + 308, "anomaly": True, "only": "all"},
        {"from": NOW + 310, "to": NOW + 311, "anomaly": True, "only": "all"},
    ]
    before = (await service.store.size("s")).log_entries
    answer = await by_range(service, *ranges, labels=[{"seq": 1, "anomaly": False}, {"seq": 311, "anomaly": False}])
    assert answer["seq"] == [1, 311, 307, 308, 308, 309, 311, 312]
    assert answer["outcome"] == ["applied", "conflict", *["applied"] * 4, "conflict", "applied"]
    assert answer["found"] == [2, 2, 2]
    assert answer["outcomes"]["applied"] == 5
    assert (await service.store.size("s")).log_entries == before + 1


async def test_samples_of_the_warm_up_and_expired_ones_are_as_ever():
    async with Service(label_horizon_samples=300) as service:
        await a_day(service)
        seqs = [*range(60, 63), *range(66, 69)]
        by_seq = await service.feedback(*({"seq": seq, "anomaly": False} for seq in seqs), query="&dry_run=true")
        assert by_seq["outcome"] == ["expired"] * 3 + ["applied"] * 3
        ranges = [{"from": NOW + seq - 1, "to": NOW + seq + 1, "anomaly": False, "only": "all"} for seq in (60, 66)]
        assert await by_range(service, *ranges) == by_seq | {"found": [3, 3], "dry_run": False}
    async with Service() as service:
        await service.observe(ordinary(20))
        answer = await by_range(service, RANGE | {"only": "all"})
        assert answer["outcome"] == ["applied"] * 20
        assert (await by_range(service, RANGE))["found"] == [0]


@pytest.mark.parametrize("only", ["flagged", "all"])
@pytest.mark.parametrize("is_open", [True, False])
async def test_an_incident_is_labelled_as_one(service, only, is_open):
    await begin(service)
    observed = await broken(service, 6)
    between = await service.observe(ordinary(1, seed=3))
    more = await broken(service, 2, seed=5)
    if not is_open:
        await service.observe(ordinary(30, seed=4))
        await broken(service, 2, seed=6)
    incidents = (await service.accepted("GET", "/incidents?stream=s"))["incidents"]
    incident = next(one for one in incidents if one["incident"] == observed["incident"][0])
    assert (incident["state"] == "open") == is_open
    history = await service.accepted("GET", "/streams/s/history?points=10000")
    of_it = [
        seq
        for seq, one, is_anomaly in zip(history["seq"], history["incident"], history["is_anomaly"], strict=True)
        if one == incident["incident"] and (only == "all" or is_anomaly)
    ]
    assert set(observed["seq"]) | set(more["seq"]) <= set(of_it)
    assert (between["seq"][0] in of_it) == (only == "all")
    before = (await service.store.size("s")).log_entries
    path = f"/incidents/{incident['id']}/label"
    dry = await service.accepted("POST", f"{path}?dry_run=true", json={"anomaly": True, "only": only})
    answer = await service.accepted("POST", path, json={"anomaly": True, "only": only})
    assert answer == dry | {"dry_run": False}
    assert (answer["seq"], answer["found"]) == (of_it, [len(of_it)])
    assert set(answer["outcome"]) == {"applied"}
    assert (await service.store.size("s")).log_entries == before + 1
    now = await service.accepted("GET", f"/incidents/{incident['id']}")
    assert (now["state"], now["n_anomalous"]) == ("confirmed", len(of_it))
    again = await service.accepted("POST", path, json={"anomaly": True, "only": only})
    assert set(again["outcome"]) == {"duplicate"}
    await service.accepted("POST", path, json={"anomaly": None, "only": only})
    assert (await service.accepted("GET", f"/incidents/{incident['id']}"))["n_anomalous"] == 0


async def test_an_incident_goes_on_behind_a_maintenance_window(service):
    window = {"streams": "s", "from": NOW + 100, "to": NOW + 200}
    await service.accepted("PUT", "/windows/deploy", json=window)
    await begin(service)
    before = await broken(service, 4)
    service.clock.advance(150)
    inside = [await broken(service, 1, seed=place) for place in range(12)]
    service.clock.advance(100)
    after = await broken(service, 3, seed=20)
    assert after["incident"] == [before["incident"][0]] * 3
    incident = await the_incident(service)
    answer = await service.accepted("POST", f"/incidents/{incident['id']}/label", json={"anomaly": True})
    assert answer["seq"] == [*before["seq"], *after["seq"]]
    assert set(answer["outcome"]) == {"applied"}
    of_window = await by_range(service, RANGE | {"from": NOW + 100, "to": NOW + 200})
    assert of_window["seq"] == [one["seq"][0] for one in inside]
    assert set(of_window["outcome"]) == {"not_learned"}


async def test_an_open_incident_that_is_dismissed_ends(service):
    await begin(service)
    await broken(service, 6)
    incident = await the_incident(service)
    answer = await service.accepted("POST", f"/incidents/{incident['id']}/label", json={"anomaly": False})
    assert answer["accepted"] == [incident["incident"]]
    assert (await the_incident(service))["state"] == "dismissed"


async def test_an_incident_whose_samples_are_gone_has_expired():
    async with Service(label_horizon_samples=200) as service:
        await begin(service)
        await broken(service, 4)
        incident = await the_incident(service)
        for seed in range(5):
            await service.observe(ordinary(100, seed=seed))
            await service.registry.save(service.registry.sessions["s"])
        assert (await service.accepted("GET", "/streams/s/history"))["oldest_seq"] > incident["last_seq"]
        path = f"/incidents/{incident['id']}/label"
        answer = await service.accepted("POST", path, json={"anomaly": True})
        assert (answer["seq"], answer["outcome"]) == ([incident["incident"]], ["expired"])


async def test_an_incident_that_is_none_is_unknown(service):
    await a_day(service)
    incident = await the_incident(service)
    for wrong in ("none", "s~1~1", "other~1~1", incident["id"] + "0"):
        path = f"/incidents/{wrong}/label"
        code = "unknown_stream" if wrong == "other~1~1" else "unknown_incident"
        await service.refused("POST", path, 404, code, json={"anomaly": True})


async def test_a_wrong_label_of_an_incident_is_refused_by_name(service):
    await a_day(service)
    path, before = f"/incidents/{(await the_incident(service))['id']}/label", await service.export()
    for body, field in (
        ({"anomaly": 1}, "anomaly"),
        ({}, "anomaly"),
        ({"anomaly": True, "only": "some"}, "only"),
        ({"anomaly": True, "seq": 1}, "seq"),
        ([], "body"),
    ):
        problem = await service.refused("POST", path, 422, "invalid_body", json=body)
        assert problem["field"] == field, body
    assert await service.export() == before


@pytest.mark.parametrize("padding", [0, 600_000])
async def test_a_wrong_range_is_refused_by_name(service, padding):
    await a_day(service)
    before = await service.export()
    labels = [{"id": "x" * 200, "anomaly": True}] * (padding // 200)
    for given, field in (
        ({"from": NOW + 2}, "from"),
        ({"from": "today"}, "from"),
        ({"from": "2027-01-15T08:00:00"}, "from"),
        ({"from": None}, "from"),
        ({"from": 5}, "from"),
        ({"to": 1e300}, "to"),
        ({"to": NOW * 1000}, "to"),
        ({"anomaly": "yes"}, "anomaly"),
        ({"only": "none"}, "only"),
        ({"seq": 3}, "seq"),
    ):
        range_ = {"from": NOW, "to": NOW + 1, "anomaly": True} | given
        body = {"ranges": [range_]} | ({"labels": labels} if labels else {})
        problem = await service.refused("POST", "/feedback?stream=s", 422, "invalid_body", json=body)
        assert problem["field"] == f"ranges[0].{field}", given
        assert problem["limit"]
    assert await service.export() == before


async def test_bodies_of_ranges_that_cannot_be(service):
    await a_day(service)
    kind = {"content-type": "application/json"}
    by_number = '{"from": 1800000000, "to": 1800000000, "to": 1900000000, "anomaly": true}'
    by_text = '{"from": "2027-01-15T08:00:00Z", "to": 1800000000, "anomaly": true, "anomaly": false}'
    for body, status, field in (
        ('{"ranges": []}', 422, "ranges"),
        ("{}", 422, "labels"),
        ('{"ranges": {}}', 422, "ranges"),
        ('{"ranges": [{"from": 1e400, "to": 1, "anomaly": true}]}', 422, "ranges[0].from"),
        ('{"ranges": [{"from": NaN, "to": 1, "anomaly": true}]}', 400, "body"),
        (f'{{"ranges": [{by_number}]}}', 400, "ranges[0].to"),
        (f'{{"ranges": [{by_text}]}}', 400, "ranges[0].anomaly"),
        (f'{{"ranges": [{",".join(["{}"] * 101)}]}}', 413, "ranges"),
    ):
        answer = await service.http.post("/feedback?stream=s", content=body, headers=kind)
        assert (answer.status_code, answer.json()["field"]) == (status, field), answer.text


async def test_more_samples_than_one_request_may_label_are_refused_with_their_number():
    async with Service(max_labels=11) as service:
        await a_day(service)
        before = await service.export()
        body = {"ranges": [RANGE | {"only": "all"}], "labels": [{"seq": 1, "anomaly": True}]}
        problem = await service.refused("POST", "/feedback?stream=s", 413, "too_many", json=body)
        assert (problem["field"], problem["value"]) == ("ranges", "364 samples")
        assert all(word in problem["limit"] for word in ("10", "ITAN_MAX_LABELS", "split"))
        incident = await the_incident(service)
        path = f"/incidents/{incident['id']}/label"
        assert (await service.refused("POST", path, 413, "too_many", json={"anomaly": True}))["field"] == "incident"
        fits = [{"from": NOW + 300, "to": NOW + 310, "anomaly": True, "only": "all"}]
        assert (await by_range(service, *fits))["found"] == [11]
        assert await service.export() != before


async def test_keys_label_only_streams_of_theirs():
    keys = "all,one:label:s,reads:read,other:label:t*"
    async with Service(key="all", api_keys=keys) as service:
        await a_day(service)
        incident = await the_incident(service)
        for key, status in {"one": 200, "reads": 403, "other": 403}.items():
            headers = {"Authorization": f"Bearer {key}"}
            for path, body in {
                f"/incidents/{incident['id']}/label": {"anomaly": True},
                f"/incidents/s~1~1/label?key={key}": None,
                "/feedback?stream=s": {"ranges": [RANGE]},
            }.items():
                if body is not None:
                    answer = await service.http.post(path, json=body, headers=headers)
                    assert answer.status_code == status, answer.text
        headers = {"Authorization": "Bearer other"}
        unknown = await service.refused(
            "POST", "/incidents/s~1~1/label", 403, "forbidden", json={"anomaly": True}, headers=headers
        )
        known = await service.refused(
            "POST", f"/incidents/{incident['id']}/label", 403, "forbidden", json={"anomaly": True}, headers=headers
        )
        assert unknown["detail"] == known["detail"]


async def test_a_restart_after_it_gives_the_same_state():
    store = MemoryStore()
    async with Service(store) as service:
        await a_day(service)
        await by_range(service, RANGE)
        await service.observe(ordinary(20, seed=9))
        before = await service.export()
        await service.crash()
    async with Service(store, service.clock) as service:
        assert await service.export() == before
        assert (await service.accepted("GET", "/streams/s"))["replay_mismatches"]["version"] == 0
        assert set((await by_range(service, RANGE))["outcome"]) == {"duplicate"}


def halted(store):
    """Let the next read of the log wait when it is done; give when it does, and what lets it go on."""
    has_read, may_go_on = asyncio.Event(), asyncio.Event()

    async def wait():
        store.after.pop("entries")
        has_read.set()
        await may_go_on.wait()

    store.after["entries"] = wait
    return has_read, may_go_on


async def test_the_stream_goes_on_while_its_log_is_looked_through_and_what_came_counts():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await a_day(service)
        has_read, may_go_on = halted(store)
        labelling = asyncio.create_task(by_range(service, RANGE | {"only": "all"}))
        await has_read.wait()
        came = await service.observe(ordinary(3, seed=7), timestamps=[NOW + 400, NOW + 401, NOW + 402])
        await service.feedback({"seq": came["seq"][0], "anomaly": True})
        may_go_on.set()
        answer = await labelling
        assert answer["seq"] == list(range(1, came["seq"][-1] + 1))
        assert answer["outcome"] == ["applied"] * (len(answer["seq"]) - 3) + ["duplicate", "applied", "applied"]


@pytest.mark.parametrize("n", [300, 364, 600])
@pytest.mark.parametrize("of_incident", [True, False])
async def test_a_stream_that_is_made_again_meanwhile_gets_no_labels_of_the_old_one(n, of_incident):
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await a_day(service)
        incident = await the_incident(service)
        path, body = "/feedback?stream=s", {"ranges": [RANGE | {"only": "all"}]}
        if of_incident:
            path, body = f"/incidents/{incident['id']}/label", {"anomaly": True}
        has_read, may_go_on = halted(store)
        labelling = asyncio.create_task(service.http.post(path, json=body))
        await has_read.wait()
        service.clock.advance(10)
        await service.http.delete("/streams/s")
        await service.accepted("PUT", "/streams/s", json={"n_features": 2})
        await service.observe(ordinary(n, seed=8), timestamps=[NOW + place for place in range(n)])
        before = await service.export()
        may_go_on.set()
        answer = await labelling
        code = "unknown_incident" if of_incident else "stream_moved"
        assert (answer.status_code, answer.json()["code"]) == (404 if of_incident else 503, code)
        assert await service.export() == before
