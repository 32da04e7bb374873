"""Pulls from a made-up Prometheus into a service: the past, the present, gaps, restarts, and what may go wrong."""

import logging

import httpx2
import pytest

from app.pull.errors import Permanent
from app.storage.memory import MemoryStore
from tests.app.harness import DisturbedStore, FakeClock, Service
from tests.app.pull.fakes import NEWEST, NOW, QUERIES, STEP, World, matrix, refusal, steps, wave

BACKFILL = steps(20)


@pytest.fixture
def world(service: Service) -> World:
    return World(service)


def filled(world: World, *streams: str, last: int = NEWEST) -> World:
    """Give both queries values for streams, from before the back-fill to a step."""
    times = steps(40 + (last - NEWEST) // STEP, last)
    for place, stream in enumerate(streams):
        world.prometheus.add("CPU", stream, wave(times, place))
        world.prometheus.add("LATENCY", stream, wave(times, 10 + place))
    return world


async def test_the_past_is_filled_in_and_each_step_is_one_sample(world: World) -> None:
    filled(world, "web-1:9100", "web-2:9100")
    await world.pull()
    for place, stream in enumerate(("web-1:9100", "web-2:9100")):
        cpu, latency = wave(BACKFILL, place), wave(BACKFILL, 10 + place)
        assert await world.samples(stream) == {time: [cpu[time], latency[time]] for time in BACKFILL}
    described = await world.service.accepted("GET", "/streams/web-1:9100")
    assert [one["name"] for one in described["config"]["features"]] == ["cpu", "latency"]
    assert described["newest_timestamp"] == NEWEST
    assert world.summary.startswith("40 samples sent, 0 of them flagged; done until 2027-01-15T07:59:30Z")


async def test_it_asks_each_query_once_for_the_newest_step_and_once_for_the_past(world: World) -> None:
    filled(world, "a")
    await world.pull()
    assert world.prometheus.ranges == [(NEWEST, NEWEST)] * 2 + [(BACKFILL[0], NEWEST)] * 2
    assert {form["timeout"] for form in world.prometheus.asked} == {"30s"}
    assert all(form["step"] == "30" for form in world.prometheus.asked)


async def test_it_follows_and_asks_once_a_step_and_query_always_equally_late(world: World) -> None:
    filled(world, "a", last=NEWEST + 100 * STEP)
    world.ends = NOW + 3.5 * STEP
    await world.pull(once=False)
    assert world.prometheus.ranges[4:] == [(NEWEST + n * STEP,) * 2 for n in (1, 2, 3) for _ in range(2)]
    assert list(await world.samples("a")) == [*BACKFILL, *(NEWEST + n * STEP for n in (1, 2, 3))]
    first, *others = [seconds for seconds in world.waits if seconds]
    assert STEP < first < STEP + 10
    assert others == [STEP] * 3


async def test_a_restart_continues_after_the_newest_sample(world: World) -> None:
    filled(world, "a", "b", last=NEWEST + 100 * STEP)
    await world.pull()
    world.prometheus.asked.clear()
    world.service.clock.advance(5 * STEP)
    await world.pull()
    assert world.prometheus.ranges == [(NEWEST + 5 * STEP,) * 2] * 2 + [(NEWEST + STEP, NEWEST + 5 * STEP)] * 2
    assert list(await world.samples("b")) == [*BACKFILL, *(NEWEST + n * STEP for n in range(1, 6))]


async def test_a_gap_longer_than_the_backfill_stays(world: World) -> None:
    filled(world, "a", last=NEWEST + 300 * STEP)
    await world.pull()
    world.service.clock.advance(300 * STEP)
    await world.pull()
    assert list(await world.samples("a")) == [*BACKFILL, *steps(20, NEWEST + 300 * STEP)]


async def test_samples_that_one_stream_misses_are_sent_and_none_is_sent_twice(world: World) -> None:
    filled(world, "a", "b")
    await world.service.accepted(
        "POST",
        "/ingest",
        json=[{"stream": "a", "sample": {"cpu": 9, "latency": 9}, "id": "x", "timestamp": BACKFILL[9]}],
    )
    await world.pull()
    assert list(await world.samples("a")) == BACKFILL[9:]
    assert list(await world.samples("b")) == BACKFILL


async def test_a_restart_begins_where_the_stream_is_that_has_come_least_far(world: World) -> None:
    filled(world, "a", "b")
    for stream, newest in (("a", BACKFILL[15]), ("b", BACKFILL[9])):
        record = {"stream": stream, "sample": {"cpu": 9, "latency": 9}, "id": "x", "timestamp": newest}
        await world.service.accepted("POST", "/ingest", json=[record])
    await world.pull()
    assert world.prometheus.ranges[-1] == (BACKFILL[10], NEWEST)
    assert list(await world.samples("a")) == BACKFILL[15:]
    assert list(await world.samples("b")) == BACKFILL[9:]
    # none of a is sent that it has
    assert world.summary.startswith("14 samples sent")


async def test_new_streams_do_not_make_a_restart_begin_from_afar_unless_they_were_there(world: World) -> None:
    filled(world, "a", last=NEWEST + 9 * STEP)
    await world.pull()
    world.prometheus.add("CPU", "new", wave(steps(4, NEWEST + 5 * STEP)))
    world.service.clock.advance(5 * STEP)
    world.prometheus.asked.clear()
    await world.pull()
    assert list(await world.samples("new")) == steps(4, NEWEST + 5 * STEP)
    assert min(first for first, _ in world.prometheus.ranges) == NEWEST
    world.prometheus.add("CPU", "overlooked", wave(steps(40, NEWEST + 5 * STEP)))
    await world.pull()
    assert list(await world.samples("overlooked")) == steps(20, NEWEST + 5 * STEP)
    assert list(await world.samples("a")) == [*BACKFILL, *(NEWEST + n * STEP for n in range(1, 6))]


async def test_streams_that_come_and_go_keep_their_places(world: World) -> None:
    filled(world, "a", last=NEWEST + 100 * STEP)
    present = [*steps(3), *(NEWEST + n * STEP for n in (8, 9, 10, 14))]
    world.prometheus.add("CPU", "b", wave(present))
    world.ends = NOW + 12.5 * STEP
    await world.pull(once=False)
    world.ends = NOW + 20 * STEP
    world.service.clock.advance(3 * STEP)
    await world.pull(once=False)
    assert list(await world.samples("b")) == present


async def test_what_a_query_does_not_give_is_missing_and_nothing_at_all_is_no_sample(world: World) -> None:
    values = {BACKFILL[1]: 1.5, BACKFILL[2]: "NaN", BACKFILL[3]: "+Inf", BACKFILL[4]: "-Inf", BACKFILL[5]: 2}
    world.prometheus.add("CPU", "a", values)
    world.prometheus.add("LATENCY", "a", {BACKFILL[0]: 7, BACKFILL[1]: 8, BACKFILL[3]: 9})
    await world.pull()
    assert await world.samples("a") == {
        BACKFILL[0]: [None, 7],
        BACKFILL[1]: [1.5, 8],
        BACKFILL[3]: [None, 9],
        BACKFILL[5]: [2, None],
    }
    assert "3 values not finite" in world.summary


async def test_a_context_alone_is_no_sample_and_the_stream_has_the_config_of_the_file(world: World) -> None:
    queries = QUERIES.replace("{cpu: CPU, ", "\n  cpu: {query: CPU, role: context, kind: lognormal}\n  ").replace(
        "LATENCY}", "LATENCY"
    )
    world.prometheus.add("CPU", "a", dict.fromkeys(BACKFILL, 1.0))
    world.prometheus.add("LATENCY", "a", dict.fromkeys(BACKFILL[4:6], 2.0))
    more = "calendar: [day, week]\ntimezone: Europe/Berlin\nconfig: {expected_anomaly_rate: 0.005}\n"
    await world.pull(queries + more)
    assert await world.samples("a") == {time: [1.0, 2.0] for time in BACKFILL[4:6]}
    config = (await world.service.accepted("GET", "/streams/a"))["config"]
    assert config["features"] == [
        {"name": "cpu", "kind": "lognormal", "role": "context"},
        {"name": "latency", "kind": "gaussian", "role": "value"},
    ]
    assert config["calendar"] == {"periods": ["day", "week"], "timezone": "Europe/Berlin"}
    assert config["expected_anomaly_rate"] == 0.005


async def test_one_stream_for_queries_without_labels(world: World) -> None:
    world.prometheus.add("CPU", {}, wave(BACKFILL))
    await world.pull(QUERIES.replace("stream: instance", "stream_id: shop"))
    assert list(await world.samples("shop")) == BACKFILL


async def test_a_template_names_streams_and_other_characters_are_written_by_their_codes(world: World) -> None:
    world.prometheus.add("CPU", {"job": "node", "path": "/var/log"}, wave(BACKFILL))
    await world.pull(QUERIES.replace("stream: instance", 'stream: "prom:{job}:{path}"'))
    assert list(await world.samples("prom:node:_2Fvar_2Flog")) == BACKFILL


async def test_windows_hold_so_many_values_and_never_more_points_than_prometheus_gives(world: World) -> None:
    world.prometheus.add("CPU", "a", dict.fromkeys(steps(30), 1))
    text = "stream: instance\nstep: 1s\nbackfill: 20000s\ndelay: 30s\nqueries: {cpu: CPU}\n"
    await world.pull(text)
    lengths = [last - first + 1 for first, last in world.prometheus.ranges[1:]]
    assert lengths == [11_000, 9_000]
    world.prometheus.asked.clear()
    for place in range(30):
        world.prometheus.add("CPU", f"b{place}", {int(NOW) - 30: 1})
    await world.pull(text)
    lengths = [last - first + 1 for first, last in world.prometheus.ranges[2:]]
    assert sum(lengths) == 20_000
    assert lengths[0] == 100_000 // 31


async def test_a_window_that_is_too_much_is_asked_for_in_parts(world: World) -> None:
    def limit(form: dict[str, str]) -> httpx2.Response | None:
        too_many = int(form["end"]) - int(form["start"]) > 4 * STEP
        return (
            refusal(422, "execution", "query processing would load too many samples into memory") if too_many else None
        )

    filled(world, "a").prometheus.limit = limit
    await world.pull()
    assert list(await world.samples("a")) == BACKFILL


async def test_a_step_that_cannot_be_evaluated_costs_one_value(world: World, caplog: pytest.LogCaptureFixture) -> None:
    bad = BACKFILL[7]

    def limit(form: dict[str, str]) -> httpx2.Response | None:
        holds_bad = int(form["start"]) <= bad <= int(form["end"])
        return refusal(422, "execution", "many-to-many matching") if form["query"] == "CPU" and holds_bad else None

    filled(world, "a").prometheus.limit = limit
    await world.pull()
    assert (await world.samples("a"))[bad] == [None, wave([bad], 10)[bad]]
    assert list(await world.samples("a")) == BACKFILL
    assert "query 'cpu': http://prometheus:9090 answers 422: many-to-many matching" in caplog.text


async def test_two_series_of_one_stream_are_refused_by_name_at_first(world: World) -> None:
    for core in "01":
        world.prometheus.add("CPU", {"instance": "a", "cpu": core}, wave(BACKFILL))
    with pytest.raises(
        Permanent, match=r'two series for stream \'a\' at one time, {cpu="0", instance="a"} and {cpu="1"'
    ):
        await world.pull()
    assert (await world.service.accepted("GET", "/streams"))["streams"] == []


async def test_two_series_in_the_past_cost_the_values_of_that_time(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.prometheus.add("CPU", {"instance": "a", "pod": "old"}, wave(BACKFILL[:8]))
    world.prometheus.add("CPU", {"instance": "a", "pod": "new"}, wave(BACKFILL[6:]))
    world.prometheus.add("LATENCY", "a", wave(BACKFILL))
    await world.pull()
    found = await world.samples("a")
    assert [time for time, (cpu, _) in found.items() if cpu is None] == BACKFILL[6:8]
    assert caplog.text.count("two series for stream 'a'") == 1


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            {"metric": {"job": "x"}, "values": [[NEWEST, "1"]]},
            "{job=\"x\"}, which has no label 'instance'",
        ),
        (
            {"metric": {"instance": "a"}, "histograms": [[NEWEST, {"count": "1"}]]},
            "native histograms, in {instance",
        ),
        ({"metric": {"instance": "é" * 40}, "values": [[NEWEST, "1"]]}, "must be 1 to 128 letters"),
        ({"metric": {"instance": "..."}, "values": [[NEWEST, "1"]]}, "'...' is no stream id"),
    ],
)
async def test_series_that_fit_no_stream_end_the_first_look(world: World, result: dict, said: str) -> None:
    world.prometheus.failures.append(matrix([result]))
    with pytest.raises(Permanent) as raised:
        await world.pull()
    assert said in str(raised.value)


async def test_more_streams_than_allowed_end_the_first_look_and_later_are_left_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    filled(world, "a", "b", "c")
    with pytest.raises(Permanent, match="the queries give 3 streams; max_streams is 2"):
        await world.pull(QUERIES + "max_streams: 2\n")
    later = [NEWEST + n * STEP for n in range(1, 4)]
    for stream in "abcd":
        world.prometheus.add("CPU", stream, wave(later))
    world.ends = NOW + 3.5 * STEP
    await world.pull(QUERIES + "max_streams: 3\n", once=False)
    names = [one["stream"] for one in (await world.service.accepted("GET", "/streams"))["streams"]]
    assert names == ["a", "b", "c"]
    assert list(await world.samples("c")) == BACKFILL + later
    assert caplog.text.count("stream 'd' is left out: max_streams is 3") == 1


async def test_a_stream_with_other_features_ends_the_first_look_and_later_is_left_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.service.observe([{"cpu": 1.0}], stream="b")
    filled(world, "a", last=NEWEST + 9 * STEP)
    world.prometheus.add("CPU", "b", wave([NEWEST + n * STEP for n in range(1, 9)]))
    world.ends = NOW + 2.5 * STEP
    await world.pull(once=False)
    assert "stream 'b' has the features ['cpu'], but the queries are ['cpu', 'latency']; it is left out" in caplog.text
    assert len(await world.samples("a")) == 22
    assert len(await world.samples("b")) == 1
    with pytest.raises(Permanent, match="stream 'b' has the features"):
        await world.pull()


async def test_temporary_failures_are_waited_for_ever_longer(world: World, caplog: pytest.LogCaptureFixture) -> None:
    filled(world, "a", last=NEWEST + 9 * STEP)
    world.prometheus.failures += [
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        refusal(503, "unavailable", "starting"),
        refusal(503, "timeout", "query timed out"),
        httpx2.Response(502, text="Bad Gateway"),
        refusal(429, "", "slow down", **{"Retry-After": "40"}),
    ]
    await world.pull()
    waits = [seconds for seconds in world.waits if seconds]
    assert all(2**n / 2 <= waits[n] <= 2**n for n in range(5))
    assert waits[5] == 40
    assert len(await world.samples("a")) == 20 + round(sum(waits)) // STEP
    assert "no answer from http://prometheus:9090: refused; next try in" in caplog.text


async def test_it_gives_up_if_it_is_to_end_and_else_never(world: World) -> None:
    world.prometheus.failures += [httpx2.ConnectError("refused")] * 100
    with pytest.raises(Permanent, match=r"refused; gave up after 2\d\d s"):
        await world.pull()
    world.ends = NOW + 3600
    await world.pull(once=False, limit=None)
    assert 60 < len(world.prometheus.asked) < 140
    assert max(world.waits) <= 60


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refusal(400, "bad_data", "parse error: unexpected end"), "answers 400: parse error: unexpected end"),
        (refusal(422, "execution", "many-to-many matching"), "answers 422: many-to-many"),
        (httpx2.Response(401, text="Unauthorized"), "answers 401: Unauthorized"),
        (httpx2.Response(404, text="404 page not found"), "answers 404: 404 page not found"),
        (httpx2.Response(302, headers={"Location": "/login"}), "answers 302"),
        (httpx2.Response(200, text="<html>login"), "does not answer like a Prometheus"),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get issuer"), "CERTIFICATE_VERIFY_FAILED"),
    ],
)
async def test_permanent_failures_end_it_and_name_the_query(world: World, answer: object, said: str) -> None:
    world.prometheus.failures.append(answer)  # type: ignore[arg-type]
    with pytest.raises(Permanent) as raised:
        await world.pull(once=False)
    assert str(raised.value).startswith("query 'cpu': ")
    assert said in str(raised.value)


async def test_the_newest_step_can_be_looked_at_without_sending(world: World) -> None:
    filled(world, "a", "b")
    cpu, latency = wave([NEWEST])[NEWEST], wave([NEWEST], 10)[NEWEST]
    assert (await world.look())[0] == (NEWEST, "a", {"cpu": cpu, "latency": latency})
    assert len(await world.look()) == 2
    assert (await world.service.accepted("GET", "/streams"))["streams"] == []


async def test_warnings_of_prometheus_are_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    answer = matrix([], warnings=["PromQL info: metric might not be a counter"])
    world.prometheus.failures += [answer] * 4
    await world.pull()
    assert caplog.text.count("might not be a counter") == 1
    assert "the queries give no numbers at 2027-01-15T07:59:30Z" in caplog.text


async def test_a_failing_service_is_waited_for_and_nothing_counts_twice(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "app.api")
    store = DisturbedStore(MemoryStore())
    async with Service(store=store, clock=FakeClock()) as service:
        world = filled(World(service), "a")
        calls = 0

        async def fail_once_written() -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise OSError("lost the answer")

        store.after["append"] = fail_once_written
        await world.pull()
        assert list(await world.samples("a"))[:20] == BACKFILL
        described = await service.accepted("GET", "/streams/a")
        assert described["n_seen"] == len(await world.samples("a"))
        assert sum(world.waits) > 0


async def test_a_key_that_may_not_ends_it() -> None:
    async with Service(api_keys="right" * 5, clock=FakeClock()) as service:
        world = filled(World(service), "a")
        with pytest.raises(Permanent, match=r"the service refuses: .* \[401 "):
            await world.pull(key="wrong" * 5)


async def test_silence_is_told_once_and_its_end_too(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.prometheus.add("CPU", "a", wave([*steps(9), NEWEST + 4 * STEP]))
    world.ends = NOW + 6.5 * STEP
    await world.pull(once=False)
    told = [record.getMessage() for record in caplog.records if "the queries give" in record.getMessage()]
    assert told == [
        "the queries give no numbers at 2027-01-15T08:00:00Z",
        "the queries give numbers again at 2027-01-15T08:01:30Z",
        "the queries give no numbers at 2027-01-15T08:02:00Z",
    ]


async def test_a_service_that_takes_less_at_once_gets_less() -> None:
    async with Service(max_batch_samples=7, clock=FakeClock()) as service:
        world = filled(World(service), "a")
        await world.pull()
        assert list(await world.samples("a")) == BACKFILL
