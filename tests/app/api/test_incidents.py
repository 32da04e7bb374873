"""Severity and incidents over HTTP: in each answer, in labels, in the log and in the metrics."""

import json
import math

import pytest

from app.storage.memory import MemoryStore
from tests.app.harness import NOW, Service
from tests.app.incidents import begin, broken, open_incident, ordinary, outage

COLUMNS = ("severity", "incident", "event")
CLOSE_SAMPLES = 8


async def test_an_incident_opens_with_the_first_flag_and_closes_after_calm(service):
    await begin(service)
    assert await open_incident(service) is None
    answer = await broken(service)
    first = answer["seq"][0]
    assert all(answer["is_anomaly"])
    assert answer["event"] == ["opened"] + [None] * 11
    assert answer["incident"] == [first] * 12
    assert await open_incident(service) == first
    calm = await service.observe(ordinary(20, seed=1))
    assert calm["event"] == [None] * (CLOSE_SAMPLES - 1) + ["closed"] + [None] * 12
    assert calm["incident"] == [first] * CLOSE_SAMPLES + [None] * 12
    assert await open_incident(service) is None


async def test_severity_is_null_before_there_are_scores_and_grows_with_the_score_then(service):
    warming = await service.observe(ordinary(10))
    assert warming["severity"] == [None] * 10
    await service.observe(ordinary(990, seed=1))
    answer = await service.observe([[0.0, 0.0], [3.0, 0.0], [9.0, 0.0], [90.0, 0.0]])
    assert answer["severity"] == sorted(answer["severity"])
    assert 0 <= answer["severity"][0] < 1 < 2 < answer["severity"][2]


async def test_no_answer_holds_nan_or_infinity(service):
    await service.observe(ordinary(10))
    await service.observe([[1e308, -1e308]] * 3)
    await service.observe(ordinary(200))
    await service.observe([[1e308, -1e308], [0.0, 0.0]])
    for path in ("history", "samples/1", "samples/212", "review", ""):
        text = (await service.http.get(f"/streams/s/{path}".rstrip("/"))).text
        json.loads(text, parse_constant=pytest.fail)
    severity = (await service.accepted("GET", "/streams/s/history"))["severity"]
    assert all(value is None or math.isfinite(value) for value in severity)


async def test_every_view_says_what_observe_said(service):
    await begin(service, 200)
    said = await broken(service)
    calm = await service.observe(ordinary(10, seed=1))
    said = {name: said[name] + calm[name] for name in ("seq", *COLUMNS)}
    history = await service.accepted("GET", "/streams/s/history?points=22")
    assert {name: history[name] for name in said} == said
    for place in (0, 5, 19):
        sample = await service.accepted("GET", f"/streams/s/samples/{said['seq'][place]}")
        assert [sample[name] for name in COLUMNS] == [said[name][place] for name in COLUMNS]
    queue = await service.accepted("GET", "/streams/s/review?limit=500")
    assert [one["incident"] for one in queue["incidents"]] == [said["incident"][0]]


async def test_a_thinned_history_keeps_where_incidents_opened_and_ended(service):
    await begin(service, 2_000)
    first = (await broken(service))["seq"][0]
    await service.observe(ordinary(2_000, seed=1))
    history = await service.accepted("GET", "/streams/s/history?from=1&points=300")
    assert history["thinned"]
    events = {
        event: seq
        for seq, event, incident in columns(history, "seq", "event", "incident")
        if incident == first and event
    }
    assert events == {"opened": first, "closed": first + 12 + CLOSE_SAMPLES - 1}


def columns(answer, *names):
    return list(zip(*(answer[name] for name in names), strict=True))


async def test_the_list_of_streams_says_which_incident_is_open(service):
    await begin(service, 200)
    first = (await broken(service))["seq"][0]
    (shown,) = (await service.accepted("GET", "/streams?details=true"))["streams"]
    assert (shown["incident"], shown["incidents"] >= 1) == (first, True)


async def test_a_known_id_gets_its_first_answer_also_after_the_incident(service):
    await begin(service, 200)
    ids = [f"i{i}" for i in range(12)]
    said = await service.observe(outage(12), ids=ids)
    await service.observe(ordinary(20, seed=1))
    again = await service.observe(outage(12), ids=ids)
    assert {name: again[name] for name in COLUMNS} == {name: said[name] for name in COLUMNS}
    assert await open_incident(service) is None


async def test_scoring_alone_opens_nothing(service):
    await begin(service, 200)
    answer = await service.accepted("POST", "/observe?stream=s&learn=false", json={"samples": outage(3)})
    assert all(answer["is_anomaly"])
    assert not {"incident", "event"} & set(answer)
    assert await open_incident(service) is None
    assert (await service.observe(outage(1)))["severity"] == answer["severity"][:1]


@pytest.mark.parametrize("place", [0, -1], ids=["oldest", "newest"])
async def test_one_normal_label_ends_the_open_incident_and_a_dry_run_says_so_before(service, place):
    await begin(service)
    answer = await broken(service, 20)
    first, seq = answer["seq"][0], answer["seq"][place]
    before = await service.export()
    foretold = await service.feedback({"seq": seq, "anomaly": False}, query="&dry_run=true")
    assert await service.export() == before
    told = await service.feedback({"seq": seq, "anomaly": False})
    assert told == foretold | {"dry_run": False}
    assert told["accepted"] == [first]
    assert await open_incident(service) is None
    after = await service.observe(outage(200, seed=1))
    assert sum(after["is_anomaly"]) <= 2
    assert (await service.feedback({"seq": seq, "anomaly": False}))["accepted"] == []


async def test_anomalous_labels_end_nothing_and_keep_the_incident_open(service):
    await begin(service, incident_accept_samples=20)
    first = (await broken(service, 10))["seq"][0]
    told = await service.feedback({"seq": first, "anomaly": True})
    assert told["accepted"] == []
    answer = await broken(service, 60, seed=1)
    assert "accepted" not in answer["event"]
    assert await open_incident(service) == first


@pytest.mark.parametrize("together", [True, False])
async def test_labels_of_an_incident_vote_in_any_order(service, together):
    await begin(service)
    answer = await broken(service, 20)
    first = answer["seq"][0]
    counts = await incident_counts(service)
    labels = [{"seq": seq, "anomaly": seq > first} for seq in answer["seq"][:6]]
    if together:
        assert (await service.feedback(*labels))["accepted"] == []
    else:
        assert [(await service.feedback(label))["accepted"] for label in labels] == [[first]] + [[]] * 5
        reopened = counts | {"opened": counts["opened"] + 1, "accepted": counts["accepted"] + 1}
        assert await incident_counts(service) == reopened
    assert await open_incident(service) == first
    assert all((await broken(service, 100, seed=1))["is_anomaly"])
    normal = [{"seq": seq, "anomaly": None if seq <= first + 5 else False} for seq in answer["seq"][1:7]]
    assert (await service.feedback(*normal))["accepted"] == [first]
    assert sum((await broken(service, 100, seed=2))["is_anomaly"]) <= 2


async def test_an_incident_that_lasts_is_accepted(service):
    await begin(service, incident_accept_samples=20)
    answer = await broken(service, 60)
    assert [event for event in answer["event"] if event][:2] == ["opened", "accepted"]
    assert answer["event"].index("accepted") == 19


async def test_an_incident_ends_by_time_where_samples_have_times(service):
    await begin(service, 200, incident_close_seconds=60.0)
    service.clock.advance(1_000.0)
    first = await service.observe(outage(3), timestamps=[NOW + 900, NOW + 901, NOW + 902])
    second = await service.observe(outage(2, seed=1), timestamps=[NOW + 970, NOW + 971])
    assert second["event"] == ["opened", None]
    assert second["incident"] == [second["seq"][0]] * 2 != first["incident"][:2]


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("seed", range(3))
async def test_labelling_one_incident_raises_no_false_alarms(seed, k):
    flags = {}
    for labelled in (False, True):
        async with Service() as service:
            await begin(service, seed=seed)
            answer = await service.observe([[8.0, 8.0]] * k)
            assert all(answer["is_anomaly"])
            if labelled:
                await service.feedback(*({"seq": seq, "anomaly": True} for seq in answer["seq"]))
            flags[labelled] = sum((await service.observe(ordinary(1_000, seed + 100)))["is_anomaly"])
    assert flags[True] <= max(flags[False], 10)


async def test_the_second_outage_is_flagged_as_the_first_was(service):
    lot = ordinary(2_000, seed=2)
    level = [[100.0 + 5.0 * row[0]] for row in lot]
    await service.observe(level[:1_000])
    for start, end in ((1_000, 1_800), (1_800, 2_000)):
        answer = await service.observe([[0.0]] * 30)
        assert sum(answer["is_anomaly"]) >= 24
        assert answer["event"].count("opened") == 1
        await service.observe(level[start:end])


async def test_dismissals_for_weeks_make_fewer_alarms_and_hide_nothing(service):
    dismissed = []
    for batch in range(30):
        answer = await service.observe(ordinary(100, seed=batch))
        flagged = [seq for seq, flag in columns(answer, "seq", "is_anomaly") if flag]
        dismissed.append(len(flagged))
        if flagged:
            await service.feedback(*({"seq": seq, "anomaly": False} for seq in flagged))
    assert sum(dismissed[15:]) <= max(sum(dismissed[:15]), 3)
    for sample in ([6.0, 6.0], [8.0, 8.0], [12.0, 12.0], [0.0, 5.0]):
        assert (await service.observe([sample]))["is_anomaly"] == [True]
        await service.observe(ordinary(20, seed=99))


@pytest.mark.parametrize("n_values", [1, 3], ids=["without jump", "with one jump"])
async def test_flat_values_open_no_incident_of_their_own(service, n_values):
    rows = [[3.3]] * 1_500
    if n_values > 1:
        rows[1_000] = [9.0]
    answer = await service.observe(rows)
    assert [seq for seq, flag in columns(answer, "seq", "is_anomaly") if flag] == ([1_001] if n_values > 1 else [])
    assert answer["event"].count("opened") == n_values // 3


async def test_a_spike_is_one_incident(service):
    answer = await service.observe([[5.0 + (i % 7 - 3) / 3.0 if i != 149 else 41.0] for i in range(200)])
    assert answer["is_anomaly"][149]
    assert (answer["incident"][149], answer["event"][149]) == (150, "opened")


async def test_reset_and_import_leave_no_incident_that_nobody_can_name(service):
    await begin(service, 200)
    first = (await broken(service))["seq"][0]
    exported = await service.export()
    await service.accepted("POST", "/streams/s/reset")
    described = await service.accepted("GET", "/streams/s")
    assert (described["incident"], described["incidents"]) == (None, 0)
    header = {"content-type": "application/octet-stream"}
    await service.accepted("PUT", "/streams/t/import", content=exported, headers=header)
    described = await service.accepted("GET", "/streams/t")
    assert described["incident"] == first
    answer = await service.observe(outage(1, seed=3), stream="t")
    assert answer["incident"] == [first]


async def test_it_goes_on_in_the_middle_of_an_incident_after_a_crash():
    rows = [*ordinary(60), *outage(20), *ordinary(30, seed=1), *outage(5, seed=1)]
    async with Service() as service:
        expected = await service.observe(rows)
        state = await service.export()
    assert [seq for seq, event in columns(expected, "seq", "event") if event] == [61, 88]
    for cut in (61, 70, 83, 87, 112):
        store, said = MemoryStore(), {"score": [], "threshold": [], **{name: [] for name in COLUMNS}}
        for part in (rows[:cut], rows[cut:]):
            async with Service(store) as service:
                answer = await service.observe(part)
                for name, column in said.items():
                    column += answer[name]
                await service.crash()
        assert said == {name: expected[name] for name in said}
        async with Service(store) as service:
            assert await service.export() == state
            for reason in ("version", "other"):
                assert await service.metric("itan_replay_mismatches_total", reason=reason) == 0


async def test_incidents_are_counted_by_what_happened_to_them(service):
    await begin(service, 200, incident_close_seconds=60.0, incident_accept_samples=20)
    counts = await incident_counts(service)
    await broken(service)
    assert await service.metric("itan_open_incidents") == 1
    await service.observe(ordinary(10, seed=1))
    assert await incident_counts(service) == counts | {"opened": counts["opened"] + 1, "closed": counts["closed"] + 1}
    assert await service.metric("itan_open_incidents") == 0


async def incident_counts(service):
    return {
        event: await service.metric("itan_incidents_total", event=event) for event in ("opened", "closed", "accepted")
    }


async def test_no_incident_is_lost_to_the_counts_however_it_ended(service):
    await begin(service, 200, incident_close_seconds=60.0, incident_accept_samples=20)
    service.clock.advance(10_000.0)
    at = NOW + 5_000
    for n in (1, 3, 25, 1):
        await service.observe(outage(n, seed=n), timestamps=[at + i for i in range(n)])
        at += 500
        counts, now_open = await incident_counts(service), await service.metric("itan_open_incidents")
        assert counts["opened"] == counts["closed"] + counts["accepted"] + now_open
    described = await service.accepted("GET", "/streams/s")
    assert described["incidents"] == counts["opened"]
    assert counts["accepted"] == 1
    assert counts["closed"] >= 2
    if described["incident"]:
        await service.feedback({"seq": described["incident"], "anomaly": False})
        assert (await incident_counts(service))["accepted"] == 2
        assert await service.metric("itan_open_incidents") == 0


async def test_what_a_repeated_id_says_is_not_counted_again(service):
    await begin(service, 200)
    ids = [f"i{i}" for i in range(12)]
    await service.observe(outage(12), ids=ids)
    before = await incident_counts(service)
    await service.observe(outage(12), ids=ids)
    assert await incident_counts(service) == before


async def test_the_log_has_a_line_for_each_request_in_which_something_happened(log):
    log.set_up()
    async with Service() as service:
        await begin(service, 200)
        log.lines()
        first = (await broken(service))["seq"][0]
        (line,) = incident_lines(log)
        assert (line["event"], line["stream"]) == (f"stream s: incident {first} opened", "s")
        await broken(service, 1, seed=1)
        assert incident_lines(log) == []
        await service.feedback({"seq": first, "anomaly": False})
        (line,) = incident_lines(log)
        assert line["event"] == f"stream s: incident {first} accepted by a label"


def incident_lines(log):
    return [line for line in log.lines() if "incident" in line["event"]]
