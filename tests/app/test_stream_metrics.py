"""What is read of streams at a scrape: all together, and some by name."""

import re

import numpy as np
import pytest

from app.metrics import CELLS
from app.storage.memory import MemoryStore
from tests.app.harness import FakeClock, Service, blobs


async def text_of(service):
    return (await service.http.get("/metrics")).text


async def shown(service):
    return set(re.findall(r'^itan_stream_samples\{stream="([^"]+)"\}', await text_of(service), re.MULTILINE))


def flagged(rate, n=200):
    """Samples of one feature, the last share of them from a sensor that is stuck far off."""
    X = np.random.default_rng(0).normal(size=(n, 1))
    X[n - int(rate * n) :] = 50.0
    return X


async def test_those_listed_are_shown_and_of_the_others_those_flagged_most():
    async with Service(metrics_streams="calm, none", metrics_top_streams=2) as service:
        for stream, rate in {"calm": 0.0, "a": 0.01, "b": 0.04, "c": 0.02, "d": 0.0}.items():
            await service.observe(flagged(rate), stream)
        rates = {name: await service.metric("itan_stream_flag_rate", stream=name) for name in ("calm", "b", "c")}
        assert rates["calm"] < rates["c"] < rates["b"]
        assert await shown(service) == {"calm", "b", "c"}
        assert await service.metric("itan_hidden_streams") == 2
        await service.http.delete("/streams/b")
        assert await shown(service) == {"calm", "a", "c"}
        assert await service.metric("itan_hidden_streams") == 1


async def test_what_is_told_of_a_stream_is_what_the_stream_says():
    async with Service(metrics_streams="s") as service:
        answer = await service.observe(blobs(900))
        odd = [i for i, is_anomaly in enumerate(answer["is_anomaly"]) if is_anomaly][:6]
        labels = [{"seq": i + 1, "anomaly": n % 2 == 0} for n, i in enumerate(odd)]
        labels += [{"seq": 500, "anomaly": True}, {"seq": 501, "anomaly": False}]
        costs = await service.feedback(*labels)
        said = (await service.http.get("/streams/s")).json()
        model = (await service.http.get("/density?stream=s")).json()

        async def told(figure, **labels):
            return await service.metric(f"itan_stream_{figure}", stream="s", **labels)

        assert await told("threshold_nats") == said["threshold"] == await service.metric("itan_threshold_nats")
        assert await told("score_nats") == answer["score"][-1]
        assert await told("severity") == answer["severity"][-1]
        assert await told("samples") == 900
        assert await told("samples_needed") == 0
        assert await told("nodes") == len(model["nodes"]) == await service.metric("itan_nodes") > 1
        assert await told("cost") == costs["cost"] == await service.metric("itan_cost") > 0
        assert await told("best_fixed_cost") == costs["best_fixed_cost"] == await service.metric("itan_best_fixed_cost")
        assert await told("log_samples") == 900 == await service.metric("itan_log_samples")
        assert await told("unsaved_events") == 2 == await service.metric("itan_unsaved_events")
        names = ("true_alarms", "false_alarms", "true_passes", "misses")
        assert [await told("confusion", cell=cell) for cell in CELLS] == [costs[name] for name in names]
        recent = answer["score"][-100:]
        assert min(recent) < await told("log_loss_nats") == await service.metric("itan_log_loss_nats") < max(recent)
        await service.registry.save(service.registry.sessions["s"])
        stored = said | (await service.http.get("/streams/s")).json()
        # the older snapshot that the store keeps is the same one
        assert 2 * await told("snapshot_bytes") == stored["storage"]["snapshot_bytes"]
        assert await told("snapshot_bytes") == await service.metric("itan_snapshot_bytes") > 0
        assert await told("unsaved_events") == 0


async def test_a_stream_that_warms_up_has_no_scores_to_tell_of():
    async with Service() as service:
        await service.observe(blobs(5))
        assert await service.metric("itan_warming_up_streams") == 1
        assert await service.metric("itan_stream_samples_needed", stream="s") == 27
        text = await text_of(service)
        assert await service.metric("itan_drifted_streams") == 0
        for name in ("itan_threshold_nats", "itan_log_loss_nats", "itan_log_loss_rise_nats"):
            assert not re.search(rf"^{name} ", text, re.MULTILINE)
        assert "itan_stream_threshold_nats{" not in text
        await service.observe(blobs(60))
        assert await service.metric("itan_warming_up_streams") == 0


async def test_silence_is_told_from_the_start_on_and_outlasts_the_closing_of_the_stream():
    async with Service(metrics_streams="s,t", idle_seconds=100) as service:
        service.clock.advance(30)
        assert await service.metric("itan_watched_stream_silent_seconds", stream="s") == 30
        await service.observe([[1.0]])
        service.clock.advance(5)
        assert await service.metric("itan_watched_stream_silent_seconds", stream="s") == 5
        assert await service.metric("itan_watched_stream_silent_seconds", stream="t") == 35
        service.clock.advance(200)
        await service.registry.close_unused()
        assert await shown(service) == set()
        assert await service.metric("itan_streams_closed_total", reason="idle") == 1
        assert await service.metric("itan_watched_stream_silent_seconds", stream="s") == 205


async def test_a_repeat_and_a_replay_are_no_new_sample_but_a_rejected_request_is_none_either():
    async with Service(metrics_streams="s") as service:
        await service.observe([[1.0]], ids=["a"])
        service.clock.advance(7)
        await service.observe([[1.0]], ids=["a"])
        await service.http.post("/observe?stream=s", json={"samples": [["x"]]})
        assert await service.metric("itan_watched_stream_silent_seconds", stream="s") == 7


async def test_a_copy_for_reading_is_another_workers_to_tell():
    clock = FakeClock()
    store = MemoryStore(clock.monotonic)
    async with Service(store, clock, worker="a") as a, Service(store, clock, worker="b") as b:
        await a.observe(blobs(100))
        assert (await b.http.get("/streams/s")).json()["n_seen"] == 100
        assert await b.metric("itan_open_streams") == 1
        assert await shown(a) == {"s"}
        assert await shown(b) == set()
        assert await b.metric("itan_nodes") == await b.metric("itan_hidden_streams") == 0


@pytest.mark.parametrize("top", [-1, 51])
def test_there_is_a_limit_to_the_streams_shown(top):
    with pytest.raises(ValueError, match="metrics_top_streams"):
        Service(metrics_top_streams=top)
