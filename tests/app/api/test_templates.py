"""Templates: what new streams begin with, whoever creates them."""

import pytest

from app.documents import FRESH_SECONDS
from app.storage import StoreCorrupt
from app.storage.memory import MemoryStore
from app.streams.open.session import Session
from core import InvalidState
from tests.app.harness import FakeClock, Service, blobs

PLANTS = {"streams": "plant-*", "config": {"expected_anomaly_rate": 0.002, "labels_trusted": True}}
WARM = {"streams": "plant-*", "config": {}, "warm_start": {"from": "plant-model", "samples": 100}}
RATES = {"plant-*": 0.002, "plant-a*": 0.003, "plant-a1": 0.004, "*": 0.001}


async def config_of(service, stream):
    return (await service.accepted("GET", f"/streams/{stream}"))["config"]


async def test_a_template_is_kept_listed_and_deleted(service):
    put = await service.http.put("/templates/plants", json=PLANTS)
    assert (put.status_code, put.json()) == (201, PLANTS | {"warm_start": None, "template": "plants"})
    assert (await service.http.put("/templates/plants", json=PLANTS)).status_code == 200
    assert await service.accepted("GET", "/templates/plants") == put.json()
    assert await service.accepted("GET", "/templates") == {"templates": ["plants"]}
    assert (await service.http.delete("/templates/plants")).status_code == 204
    for method in ("GET", "DELETE"):
        await service.refused(method, "/templates/plants", 404, "unknown_template")


async def test_whoever_creates_a_stream_gets_the_template_below_what_is_given(service):
    await service.accepted("PUT", "/templates/plants", json=PLANTS)
    await service.observe(blobs(3), "plant-1")
    records = [{"stream": "plant-2", "sample": {"cpu": 1.0}}, {"stream": "other", "sample": {"cpu": 1.0}}]
    await service.accepted("POST", "/ingest", json=records)
    await service.accepted("PUT", "/streams/plant-3", json={"n_features": 1, "expected_anomaly_rate": 0.1})
    for stream, rate in (("plant-1", 0.002), ("plant-2", 0.002), ("plant-3", 0.1)):
        config = await config_of(service, stream)
        assert (config["expected_anomaly_rate"], config["labels_trusted"]) == (rate, True)
    assert (await config_of(service, "other"))["expected_anomaly_rate"] == 0.01


async def test_a_source_wins_over_a_template_field_by_field(service):
    await service.accepted("PUT", "/templates/plants", json=PLANTS)
    source = {"stream": "plant-{host}", "features": ["*"], "ignore": ["host"], "config": {"expected_anomaly_rate": 0.2}}
    await service.accepted("PUT", "/sources/mine", json=source)
    await service.accepted("POST", "/ingest?source=mine", json=[{"host": "a", "cpu": 1.0}])
    config = await config_of(service, "plant-a")
    assert (config["expected_anomaly_rate"], config["labels_trusted"]) == (0.2, True)


async def test_the_most_specific_template_counts(service):
    for number, (streams, rate) in enumerate(RATES.items()):
        given = {"streams": streams, "config": {"expected_anomaly_rate": rate}}
        await service.accepted("PUT", f"/templates/t{number}", json=given)
    expected = {"plant-1": 0.002, "plant-a2": 0.003, "plant-a1": 0.004, "plant-a11": 0.003, "x": 0.001}
    for stream, rate in expected.items():
        await service.observe([[1.0]], stream)
        assert (await config_of(service, stream))["expected_anomaly_rate"] == rate


async def test_a_stream_that_exists_stays_as_it_is(service):
    await service.observe(blobs(3), "plant-1")
    before = await config_of(service, "plant-1")
    await service.accepted("PUT", "/templates/plants", json=PLANTS)
    await service.observe(blobs(3), "plant-1")
    assert await config_of(service, "plant-1") == before
    problem = await service.refused("PUT", "/streams/plant-1", 409, "stream_exists", json={"n_features": 2})
    assert "expected_anomaly_rate" in problem["detail"]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ([], "invalid_body", "body"),
        ({}, "invalid_body", "streams"),
        ({"streams": 7}, "invalid_body", "streams"),
        ({"streams": "a", "more": 1}, "invalid_body", "more"),
        ({"streams": ""}, "invalid_template", "streams"),
        ({"streams": "a*b"}, "invalid_template", "streams"),
        ({"streams": "a b"}, "invalid_template", "streams"),
        ({"streams": "*", "config": {"n_features": 2}}, "invalid_template", "config.n_features"),
        ({"streams": "*", "config": {"features": []}}, "invalid_template", "config.features"),
        ({"streams": "*", "config": {"cost": 1}}, "invalid_config", "cost"),
        ({"streams": "*", "warm_start": 7}, "invalid_body", "warm_start"),
        ({"streams": "*", "warm_start": {"from": "s", "samples": 0}}, "invalid_body", "warm_start.samples"),
        ({"streams": "*", "config": {"expected_anomaly_rate": 2}}, "invalid_config", "expected_anomaly_rate"),
    ],
)
async def test_what_cannot_be_used_is_refused(service, body, code, field):
    problem = await service.refused("PUT", "/templates/mine", 422, code, json=body)
    assert problem["field"] == field
    await service.refused("GET", "/templates/mine", 404, "unknown_template")


async def test_samples_that_do_not_fit_the_template_begin_no_stream(service):
    """A calendar needs timestamps; a half-life in samples goes with none in seconds."""
    given = {"streams": "*", "config": {"half_life_samples": 100}}
    await service.accepted("PUT", "/templates/all", json=given)
    body = {"n_features": 1, "half_life_seconds": 60}
    await service.refused("PUT", "/streams/s", 422, "invalid_config", json=body)
    await service.accepted("PUT", "/streams/s", json=body | {"half_life_samples": None})


async def test_names_numbers_and_keys_are_bounded():
    async with Service(max_templates=1, api_keys="boss,mine:admin:plant*,reader:read", key="boss") as service:
        await service.refused("PUT", "/templates/a%20b", 422, "invalid_template", json=PLANTS)
        await service.accepted("PUT", "/templates/a", json=PLANTS)
        problem = await service.refused("PUT", "/templates/b", 413, "too_many", json=PLANTS)
        assert "ITAN_MAX_TEMPLATES" in problem["limit"]
        for key in ("mine", "reader"):
            service.http.headers["Authorization"] = f"Bearer {key}"
            await service.refused("PUT", "/templates/a", 403, "forbidden", json=PLANTS)
            await service.refused("DELETE", "/templates/a", 403, "forbidden")
            await service.accepted("GET", "/templates/a")


async def test_templates_outlive_the_service_and_reach_other_workers():
    store, clock = MemoryStore(), FakeClock()
    async with Service(store, clock, worker="one") as one, Service(store, clock, worker="two") as two:
        await two.observe([[1.0]], "plant-1")
        await one.accepted("PUT", "/templates/plants", json=PLANTS)
        clock.advance(FRESH_SECONDS)
        await two.observe([[1.0]], "plant-2")
        assert (await config_of(two, "plant-2"))["labels_trusted"]


async def test_streams_begin_with_the_model_that_their_template_names():
    """They score as one that was told so itself, whoever creates them, and go on after a crash."""
    store, clock, X = MemoryStore(), FakeClock(), blobs(400)
    records = [{"stream": "plant-2", "sample": row} for row in X[300:350].tolist()]
    async with Service(store, clock) as service:
        await service.observe(X[:300], "plant-model")
        await service.accepted("PUT", "/streams/told", json={"n_features": 2, "warm_start": WARM["warm_start"]})
        assert (await service.accepted("PUT", "/templates/plants", json=WARM))["warm_start"] == WARM["warm_start"]
        expected = await service.observe(X[300:350], "told")
        assert (await service.observe(X[300:350], "plant-1"))["score"] == expected["score"]
        assert (await service.accepted("POST", "/ingest", json=records))["score"] == expected["score"]
        for _ in range(2):
            assert (await service.accepted("PUT", "/streams/plant-3", json={"n_features": 2}))["ready"]
        assert await service.metric("itan_cold_starts_total") == 0
        await service.crash()
    clock.advance(60)
    async with Service(store, clock) as service:
        expected = await service.observe(X[350:], "told")
        for stream in ("plant-1", "plant-2"):
            assert (await service.observe(X[350:], stream))["score"] == expected["score"]


async def test_a_warm_start_of_its_own_wins_over_the_template(service):
    X = blobs(200)
    await service.observe(X[:100], "plant-model")
    await service.observe(50 + X[:100], "far")
    await service.accepted("PUT", "/templates/plants", json=WARM)
    own = {"n_features": 2, "warm_start": {"from": "far", "samples": 100}}
    for stream in ("told", "plant-1"):
        await service.accepted("PUT", f"/streams/{stream}", json=own)
    expected = await service.observe(X[100:], "told")
    assert (await service.observe(X[100:], "plant-1"))["score"] == expected["score"]


async def test_a_stream_starts_cold_while_it_cannot_have_the_model():
    store, clock, X = MemoryStore(), FakeClock(), blobs(100)
    async with Service(store, clock, worker="one") as one, Service(store, clock, worker="two") as two:
        await one.accepted("PUT", "/templates/plants", json=WARM)
        assert (await two.observe(X[:1], "plant-0"))["samples_needed"] > 0
        assert (await one.observe(X[:3], "plant-model"))["samples_needed"] > 0
        assert await one.metric("itan_cold_starts_total") == 0
        assert (await one.observe(X[:1], "plant-1"))["samples_needed"] > 0
        await one.observe(X[3:], "plant-model")
        clock.advance(FRESH_SECONDS)
        assert (await one.observe(blobs(1, 3), "plant-wide"))["samples_needed"] > 0
        for worker, stream in ((one, "plant-2"), (two, "plant-3")):
            assert (await worker.observe(X[:1], stream))["samples_needed"] == 0
        assert [await worker.metric("itan_cold_starts_total") for worker in (one, two)] == [2, 1]


@pytest.mark.parametrize(
    "error", [StoreCorrupt("plant-model", "its snapshot cannot be read"), InvalidState("no number")]
)
async def test_a_damaged_model_keeps_no_stream_from_its_start(service, monkeypatch, error):
    async def fail(*_):
        raise error

    monkeypatch.setattr(Session, "model_of", fail)
    await service.accepted("PUT", "/templates/plants", json=WARM)
    assert (await service.observe(blobs(3), "plant-1"))["samples_needed"] > 0
    assert await service.metric("itan_cold_starts_total") == 1
