"""OpenTelemetry: the exporter of its SDK sends to the service, and understands the answers."""

import asyncio
import json

import pytest
import requests
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricExportResult
from opentelemetry.sdk.resources import Resource

from app.storage import StoreUnavailable
from app.storage.memory import MemoryStore
from app.streams.open.clock import Clock
from tests.app.harness import NOW, DisturbedStore, Service, raising

PATHS = ["/ingest/otlp/v1/metrics", "/ingest?source=otlp"]
PROTOBUF = {"Content-Type": "application/x-protobuf"}


class Wire(requests.adapters.BaseAdapter):
    """Keeps what the exporter sends, and answers what it is told."""

    def __init__(self):
        super().__init__()
        self.bodies, self.headers, self.answer = [], {}, (200, b"", {})

    def send(self, request, **_):
        self.bodies.append(request.body)
        self.headers = request.headers
        response = requests.Response()
        response.status_code, response._content, headers = self.answer
        response.headers.update(headers)
        response.url, response.request = request.url, request
        return response

    def close(self):
        pass


def exported(measure, delta=True):
    """Give what the exporter sends of what was measured."""
    temporality = AggregationTemporality.DELTA if delta else AggregationTemporality.CUMULATIVE
    preferred = {Counter: temporality, Histogram: temporality}
    reader = InMemoryMetricReader(preferred_temporality=preferred)
    provider = MeterProvider([reader], Resource({"service.name": "shop"}), shutdown_on_exit=False)
    measure(provider.get_meter("test"))
    wire, session = Wire(), requests.Session()
    session.mount("http://", wire)
    exporter = OTLPMetricExporter("http://itan/ingest?source=otlp", session=session)
    assert exporter.export(reader.get_metrics_data()) is MetricExportResult.SUCCESS
    return wire.bodies[0], {
        name: wire.headers[name] for name in ("Content-Type", "Content-Encoding") if name in wire.headers
    }


def measure_all(meter):
    meter.create_gauge("queue.length").set(7, {"route": "/pay"})
    meter.create_counter("requests").add(40, {"route": "/pay"})
    latency = meter.create_histogram("latency")
    latency.record(2.0, {"route": "/pay"})
    latency.record(4.0, {"route": "/pay"})
    meter.create_up_down_counter("open").add(3, {"route": "/pay"})
    meter.create_gauge("load").set(0.5)


@pytest.fixture
async def today():
    """A service whose clock is right: the exporter takes the time itself."""
    async with Service(clock=Clock()) as service:
        yield service


async def post(service, body, path=PATHS[0], headers=PROTOBUF):
    answer = await service.http.post(path, content=body, headers=headers)
    return answer, ExportMetricsServiceResponse.FromString(answer.content)


@pytest.mark.parametrize("path", PATHS)
async def test_what_the_exporter_sends_is_joined_and_taken_once(today, path):
    body, headers = await asyncio.to_thread(exported, measure_all)
    for _ in range(2):
        answer, response = await post(today, body, path, headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/x-protobuf"
        assert not response.HasField("partial_success")
    assert await today.metric("itan_samples_total", outcome="learned") == 2
    stream = "shop:_2Fpay"
    config = (await today.accepted("GET", f"/streams/{stream}"))["config"]
    names = [feature["name"] for feature in config["features"]]
    assert names == ["queue.length", "requests", "latency.count", "latency.mean", "open"]
    (row,) = (await today.accepted("GET", f"/streams/{stream}/history?values=true"))["values"]
    values = dict(zip(names, row, strict=True))
    assert (values["queue.length"], values["latency.mean"], values["open"]) == (7, 3, 3)
    assert values["requests"] > values["latency.count"] > 0
    assert await today.accepted("GET", "/streams/shop")


async def test_totals_are_rejected_and_the_exporter_is_told_why(today):
    body, headers = await asyncio.to_thread(exported, measure_all, delta=False)
    answer, response = await post(today, body, PATHS[1], headers)
    assert answer.status_code == 200
    assert response.partial_success.rejected_data_points == 2
    assert "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta" in response.partial_success.error_message
    assert await today.metric("itan_refused_records_total", code="invalid_body") == 2


def request_of(*points, name="g"):
    metrics = [{"name": name, "gauge": {"dataPoints": list(points)}}]
    attributes = [{"key": "service.name", "value": {"stringValue": "shop"}}]
    return {"resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": metrics}]}]}


def point(value, seconds=NOW - 10):
    return {"timeUnixNano": str(int(seconds) * 10**9), "asDouble": value}


async def test_json_is_answered_in_json(service):
    answer = await service.accepted("POST", PATHS[0], json=request_of(point(1.5)))
    assert answer == {}
    answer = await service.accepted("POST", PATHS[0], json=request_of(point(1.5), point(2.5, NOW + 10**6)))
    assert answer["partialSuccess"]["rejectedDataPoints"] == "1"
    assert answer["partialSuccess"]["errorMessage"].startswith("invalid_timestamps: ")
    reply = MessageToDict(ExportMetricsServiceResponse(partial_success={"rejected_data_points": 1}))
    assert reply["partialSuccess"].items() <= answer["partialSuccess"].items()
    problem = await service.refused("POST", PATHS[0], 422, "nothing_taken", json=request_of(point(1, NOW + 10**6)))
    assert problem["problems"][0]["code"] == "invalid_timestamps"


async def test_a_request_without_points_is_taken(service):
    assert (await post(service, b""))[0].status_code == 200
    assert await service.accepted("POST", PATHS[0], json={}) == {}


async def test_what_is_no_message_is_refused_for_good(service):
    await service.refused("POST", PATHS[0], 400, "invalid_message", content=b"\x0a\xff", headers=PROTOBUF)
    await service.refused("POST", PATHS[0], 400, "invalid_message", json=[])
    await service.refused("POST", PATHS[0], 413, "body_too_large", content=bytes(4_194_305), headers=PROTOBUF)
    await service.refused("POST", PATHS[0], 415, "unsupported_media_type", content=b"")
    many = request_of(*(point(i) for i in range(10_001)))
    await service.refused(
        "POST",
        PATHS[0],
        413,
        "too_many",
        content=json.dumps(many).encode(),
        headers={"Content-Type": "application/json"},
    )


async def test_the_exporter_repeats_what_the_store_could_not_keep():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        await service.accepted("POST", PATHS[0], json=request_of(point(1.0)))
        store.before["append"] = raising(StoreUnavailable("down"))
        problem = await service.http.post(PATHS[0], json=request_of(point(2.0, NOW - 5), point(3.0, NOW + 10**6)))
        assert (problem.status_code, problem.json()["code"]) == (503, "store_unavailable")
        assert problem.headers["retry-after"]
