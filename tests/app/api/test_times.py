"""Timestamps over HTTP: a sender's wrong clock must not lock others out, nor age what is learned."""

from contextlib import aclosing

import numpy as np
import pytest

from app.storage import Position
from app.streams.log.events import read_batch, read_records
from app.streams.state.state import StreamState
from app.streams.views.tail import NewSamples
from tests.app.harness import NOW, FakeClock, Service, blobs
from tests.app.streams.views.test_tail import told, watch

HALF_LIFE = {"n_features": 2, "half_life_seconds": 3600}
AHEAD = (7_200, 82_800)


async def learned_weight(service, stream="s"):
    return sum(node["count"] for node in (await service.accepted("GET", f"/density?stream={stream}"))["nodes"])


async def history_up_to_now(service, n=500, config=HALF_LIFE):
    await service.accepted("PUT", "/streams/s", json=config)
    await service.observe(blobs(n), timestamps=[NOW - 10 * (n - 1 - i) for i in range(n)])


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("config", [HALF_LIFE, {"n_features": 2}])
async def test_a_stamp_far_ahead_is_refused_and_right_ones_go_on(service, ahead, config):
    await history_up_to_now(service, config=config)
    before = await service.export()
    body = {"samples": [[0.0, 0.0]], "timestamps": [NOW + ahead]}
    problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_timestamps", json=body)
    assert problem["field"] == "timestamps[0]"
    assert "ITAN_TIMESTAMP_ALLOWANCE_SECONDS" in problem["limit"]
    assert await service.export() == before
    await service.observe([[0.0, 0.0]], timestamps=[NOW])


@pytest.mark.parametrize("label", [True, None])
@pytest.mark.parametrize("ahead", AHEAD)
async def test_an_accepted_stamp_ahead_ages_nothing_and_refuses_nobody(ahead, label):
    async with Service(timestamp_allowance_seconds=90_000) as service:
        await history_up_to_now(service)
        weight = await learned_weight(service)
        odd = await service.observe([[0.0, 0.0]], ids=["odd"], timestamps=[NOW + ahead])
        assert (await service.observe([[0.0, 0.0]], ids=["odd"], timestamps=[NOW + ahead])) == odd
        if label is not None:
            await service.feedback({"id": "odd", "anomaly": label})
        assert (await service.accepted("GET", "/streams/s"))["newest_timestamp"] == NOW
        service.clock.advance(10)
        await service.observe(blobs(100, seed=1), timestamps=[NOW + 10] * 100)
        assert await learned_weight(service) > 0.95 * (weight + 100)


async def test_an_old_log_with_stamps_ahead_still_opens_and_refuses_nobody():
    """Earlier versions took stamps of up to a day ahead as they were."""
    clock = FakeClock()
    clock.wall = NOW + 82_800
    service = Service(clock=clock)
    async with service:
        await history_up_to_now(service)
        await service.observe([[0.0, 0.0]], timestamps=[NOW + 82_800])
        await service.crash()
    clock.wall = NOW
    async with Service(service.store, clock) as again:
        described = await again.accepted("GET", "/streams/s")
        assert described["newest_timestamp"] == NOW + 82_800
        assert described["replay_mismatches"]["version"] == described["replay_mismatches"]["other"] == 0
        await again.observe([[0.0, 0.0]] * 2, timestamps=[NOW - 3_600, NOW])


async def test_the_log_keeps_the_time_that_the_model_was_given(service):
    await service.accepted("PUT", "/streams/s", json=HALF_LIFE)
    await service.observe([[0.0, 0.0]] * 2, timestamps=[NOW - 5, NOW + 3_600])
    (entry,) = await service.store.entries("s", Position(0, 0), 10)
    event = read_batch(entry.body)
    assert read_records(event.records).time.tolist() == [NOW - 5, NOW]


async def test_a_replay_of_stamps_ahead_gives_the_same_state():
    clock = FakeClock()
    service = Service(clock=clock)
    async with service:
        await service.accepted("PUT", "/streams/s", json=HALF_LIFE)
        rng = np.random.default_rng(3)
        for i in range(12):
            stamps = (clock.wall + rng.uniform(-3_000, 3_600, size=20)).tolist()
            await service.observe(blobs(20, seed=i), timestamps=stamps)
            clock.advance(600)
        state = await service.export()
        await service.crash()
    clock.advance(4_000)
    async with Service(service.store, clock=clock) as again:
        replayed = await again.export()
        assert StreamState.from_bytes(replayed, Position(0, 0)).detector.to_bytes() == (
            StreamState.from_bytes(state, Position(0, 0)).detector.to_bytes()
        )


async def test_streams_that_use_no_time_take_history_in_any_order(service):
    """Newest first, as a queue is emptied after an outage; whoever looks at it sees it in the order of arrival."""
    batches = [[NOW - 80_000 * k - 60 * i for i in range(20)] for k in range(5)]
    for k, stamps in enumerate(batches):
        await service.observe(blobs(20, seed=k), timestamps=stamps, ids=[f"{k}-{i}" for i in range(20)])
    sent = [stamp for stamps in batches for stamp in stamps]
    history = await service.accepted("GET", "/streams/s/history?points=100")
    assert (history["seq"], history["time"]) == (list(range(1, 101)), sent)
    review = await service.accepted("GET", "/streams/s/review?limit=500")
    assert {sample["seq"]: sample["time"] for sample in review["samples"]}.items() <= dict(enumerate(sent, 1)).items()
    assert (await service.accepted("GET", "/streams/s/samples/100"))["time"] == sent[-1]
    listed = await service.accepted("GET", "/streams?details=true")
    assert listed["streams"][0]["newest_time"] == sent[-1]
    watched: list[float] = []
    async with aclosing(watch(service, Position(0, 0))) as news:
        while len(watched) < len(sent):
            watched += (await told(news, NewSamples)).rows.time.tolist()
    assert watched == sent


async def test_batches_newest_first_are_refused_whole_and_taken_in_order():
    """Four batches of 100 rows, 20 s apart, arrive after an outage: taken with the setting that the answer names."""
    batches = [[NOW - 20 * (399 - 100 * k - i) for i in range(100)] for k in range(4)]
    late = [batches[3], batches[0], batches[1], batches[2]]
    for allowance, taken in ((3_600, [True, False, False, False]), (8_000, [True] * 4)):
        async with Service(timestamp_allowance_seconds=allowance) as service:
            await service.accepted("PUT", "/streams/s", json=HALF_LIFE)
            for stamps, is_taken in zip(late, taken, strict=True):
                k = batches.index(stamps)
                body = {"samples": blobs(100, seed=k).tolist(), "timestamps": stamps}
                body["ids"] = [f"{k}-{i}" for i in range(100)]
                answer = await service.http.post("/observe?stream=s", json=body)
                assert (answer.status_code == 200) == is_taken, answer.text
                if not is_taken:
                    assert "ITAN_TIMESTAMP_ALLOWANCE_SECONDS" in answer.json()["limit"]
    async with Service() as service:
        await service.accepted("PUT", "/streams/s", json=HALF_LIFE)
        for k, stamps in enumerate(batches):
            await service.observe(blobs(100, seed=k), timestamps=stamps, ids=[f"{k}-{i}" for i in range(100)])
        assert (await service.accepted("GET", "/streams/s"))["n_seen"] == 400
