"""Prometheus remote write: what is answered decides what Prometheus sends again."""

import math

import cramjam
import pytest

from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from tests.app.api.test_sources import features
from tests.app.harness import NOW, DisturbedStore, Service, raising
from tests.app.sources.bodies import write_request

PATH = "/ingest?source=prometheus"
HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
TIME = (int(NOW) - 10) * 1000
STREAM = "node:a_3A9100"


def series(name, *values, instance="a:9100"):
    return {"__name__": name, "instance": instance, "job": "node"}, list(values)


def packed(*given):
    return bytes(cramjam.snappy.compress_raw(write_request(*given)))


async def write(service, *given, status=204, headers=HEADERS):
    answer = await service.http.post(PATH, content=packed(*given), headers=headers)
    assert answer.status_code == status, answer.text
    return answer


async def test_series_of_one_time_are_one_sample_and_a_repeat_counts_once(service):
    given = [
        series("load", (0.5, TIME), (0.7, TIME + 5_000)),
        series("requests_total", (5.0, TIME)),
        series("mem", (7.0, TIME), (math.nan, TIME + 5_000)),
        series("load", (0.1, TIME), instance="b:9100"),
    ]
    for _ in range(2):
        answer = await write(service, *given)
        assert answer.content == b""
    assert await features(service, STREAM) == ["load", "mem"]
    history = await service.accepted("GET", f"/streams/{STREAM}/history?values=true")
    assert history["values"] == [[0.5, 7], [0.7, None]]
    assert history["time"] == [TIME / 1000, TIME / 1000 + 5]
    assert await features(service, "node:b_3A9100") == ["load"]
    assert await service.metric("itan_samples_total", outcome="learned") == 3
    assert await service.metric("itan_ignored_values_total") == 4
    await write(service)


async def test_values_that_are_refused_are_a_failure_for_good(service):
    answer = await write(service, series("load", (math.inf, TIME)), series("mem", (1.0, TIME)), status=400)
    problem = answer.json()
    assert (problem["code"], problem["field"]) == ("partly_taken", "records[0].metrics.load")
    assert await features(service, STREAM) == ["mem"]
    await write(service, series("load", (math.inf, TIME)), status=422)


async def test_what_the_store_could_not_keep_is_sent_again():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await write(service, series("load", (1.0, TIME)))
        store.before["append"] = raising(StoreUnavailable("down"))
        answer = await write(service, series("load", (1.0, TIME + 1), (math.inf, TIME + 2)), status=503)
        assert answer.headers["retry-after"]


@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("application/x-protobuf;proto=prometheus.WriteRequest", 204),
        ("application/x-protobuf;proto=io.prometheus.write.v2.Request", 415),
        ("application/json", 415),
    ],
)
async def test_messages_of_another_version_are_refused(service, media, status):
    await write(service, series("load", (1.0, TIME)), status=status, headers=HEADERS | {"Content-Type": media})


async def test_bodies_that_are_no_messages_are_refused(service):
    async def refused(status, code, content):
        await service.refused("POST", PATH, status, code, content=content, headers=HEADERS)

    await refused(422, "invalid_body", b"\x05hello")
    await refused(422, "invalid_body", b"")
    await refused(400, "invalid_message", bytes(cramjam.snappy.compress_raw(b"\x0a\xff")))
    # a few bytes that say they are 4 GB
    await refused(413, "body_too_large", b"\xff\xff\xff\xff\x0f")
    await refused(413, "body_too_large", bytes(cramjam.snappy.compress_raw(bytes(4_194_305))))
    await refused(413, "too_many", packed(series("load", *((1.0, TIME + i) for i in range(10_001)))))
