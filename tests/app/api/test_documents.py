"""The OpenAPI document says what the service does."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.api.openapi import PROBLEMS, TAGS, WITHOUT_ROUTE, document
from app.api.schemas.density import Model
from app.api.schemas.samples import FeedbackAnswer, ObserveAnswer
from app.api.schemas.streams import StreamDescription
from app.main import ROUTES
from tests.app.harness import NOW, Service, blobs

DOCUMENT: dict[str, Any] = document(ROUTES, "1.0", keys_required=True)
OPERATIONS = {
    described["operationId"]: described for methods in DOCUMENT["paths"].values() for described in methods.values()
}
JSON = "application/json"
PROBLEM = "application/problem+json"


def validator(schema: dict[str, Any]) -> Draft202012Validator:
    """Give a validator that knows the document's schemas."""
    return Draft202012Validator(schema | {"components": DOCUMENT["components"]})


@pytest.mark.parametrize("keys", ["", "secret"])
async def test_it_is_valid_openapi(keys: str) -> None:
    async with Service(api_keys=keys) as service:
        given = (await service.http.get("/openapi.json")).json()
    assert given["openapi"] == "3.1.0"
    assert [f"{error.json_path}: {error.message}" for error in OpenAPIV31SpecValidator(given).iter_errors()] == []


async def test_every_route_is_in_it_and_every_path_of_it_is_a_route(service: Service) -> None:
    paths = (await service.http.get("/openapi.json")).json()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    served = {
        (method, route.path) for route in service.app.router.routes for method in route.methods if method != "HEAD"
    }
    assert described == served


def test_every_operation_is_complete() -> None:
    assert len(OPERATIONS) == len(ROUTES)
    for name, described in OPERATIONS.items():
        assert re.fullmatch("[a-z]+(_[a-z]+)*", name)
        assert described["summary"]
        assert set(described["tags"]) <= TAGS.keys()
        assert all(parameter["description"] for parameter in described["parameters"])
        for body in bodies(described):
            assert_has_example(name, body)


def bodies(described: dict[str, Any]) -> list[dict[str, Any]]:
    """Give all bodies of an operation, of requests and of answers."""
    holders = [described.get("requestBody", {}), *described["responses"].values()]
    return [body | {"media": media} for holder in holders for media, body in holder.get("content", {}).items()]


def assert_has_example(name: str, body: dict[str, Any]) -> None:
    """Files have none; those there are are valid."""
    given = [body["example"]] if "example" in body else [*body.get("examples", {})]
    if body["media"] == JSON and name != "get_openapi":
        assert given, name
        validator(body["schema"]).validate(given[0])


def test_every_code_is_listed_with_its_status() -> None:
    listed = set()
    for described in OPERATIONS.values():
        for status, response in described["responses"].items():
            for code in response.get("content", {}).get(PROBLEM, {}).get("examples", {}):
                assert PROBLEMS[code][0] == int(status)
                listed.add(code)
    # a client that has gone reads no answer
    assert PROBLEMS.keys() - listed == {"client_disconnected", "not_a_worker", *WITHOUT_ROUTE}


def test_nothing_in_it_is_of_an_older_openapi() -> None:
    assert '"nullable"' not in json.dumps(DOCUMENT)


async def test_a_key_is_needed_only_where_keys_are_set(service: Service) -> None:
    open_to_all = (await service.http.get("/openapi.json")).json()["paths"]["/observe"]["post"]["security"]
    assert open_to_all[-1] == {}
    assert [list(way) for way in OPERATIONS["observe"]["security"]] == [["bearer"], ["key"], ["cookie"]]
    assert OPERATIONS["get_liveness"]["security"] == []


async def test_answers_have_the_documented_fields(service: Service) -> None:
    answer = await service.accepted("POST", "/observe?stream=s&explain=true", json={"samples": blobs(40).tolist()})
    assert set(answer) == set(ObserveAnswer.__struct_fields__) - {"as_of_seq"}
    labelled = await service.feedback({"seq": 1, "anomaly": True})
    assert set(labelled) == set(FeedbackAnswer.__struct_fields__) - {"found"}
    assert set(await service.accepted("GET", "/streams/s")) == set(StreamDescription.__struct_fields__)
    assert set(await service.accepted("GET", "/density?stream=s")) == set(Model.__struct_fields__)


BODY = OPERATIONS["observe"]["requestBody"]["content"]
RECORDS = OPERATIONS["ingest_records"]["requestBody"]["content"]
NDJSON, BYTES = "application/x-ndjson", "application/octet-stream"
TYPED = {"headers": {"Content-Type": NDJSON}}
# nobody listens there
OPENED = f"opened~102~{round(NOW) * 1000}"
WINDOW = {"streams": "web-*", "from": "2026-12-01T22:00:00Z", "to": 1796167800}
RULE = {"target": "chat", "url": "http://127.0.0.1:9/"}
FILE = {"headers": {"Content-Type": BYTES}}
# every operation with one call for each status and media type of an answer that is no problem; {s} has 100 samples
CALLS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("observe", "POST", "/observe?stream=new", {"json": BODY[JSON]["example"]}),
    ("observe", "POST", "/observe?stream=new", {"content": BODY[NDJSON]["example"], **TYPED}),
    ("observe", "POST", "/observe?stream=s&explain=true", {"content": b"\0" * 8 + b"\0\0\0\0\0\0Y@", **FILE}),
    ("observe", "POST", "/observe?stream=s&learn=false", {"json": {"samples": [[1, None]]}}),
    ("ingest_records", "POST", "/ingest", {"json": RECORDS[JSON]["example"]}),
    ("ingest_records", "POST", "/ingest?answer=flagged", {"content": RECORDS[NDJSON]["example"], **TYPED}),
    ("ingest_records", "POST", "/ingest?answer=counts", {"json": [*RECORDS[JSON]["example"], {"stream": "x"}]}),
    ("ingest_records", "POST", "/ingest?source=prometheus", {"headers": {"Content-Type": "application/x-protobuf"}}),
    ("ingest_otlp", "POST", "/ingest/otlp/v1/metrics", {"json": {"resourceMetrics": []}}),
    ("ingest_otlp", "POST", "/ingest/otlp/v1/metrics", {"headers": {"Content-Type": "application/x-protobuf"}}),
    ("put_source", "PUT", "/sources/agents", {"json": {"preset": "telegraf"}}),
    ("put_source", "PUT", "/sources/agents", {"json": {"preset": "collectd", "config": {"labels_trusted": True}}}),
    ("get_source", "GET", "/sources/agents", {}),
    ("list_sources", "GET", "/sources", {}),
    ("delete_source", "DELETE", "/sources/agents", {}),
    ("put_template", "PUT", "/templates/t", {"json": {"streams": "plant-*", "config": {"labels_trusted": True}}}),
    ("put_template", "PUT", "/templates/t", {"json": {"streams": "plant-*"}}),
    ("get_template", "GET", "/templates/t", {}),
    ("list_templates", "GET", "/templates", {}),
    ("delete_template", "DELETE", "/templates/t", {}),
    ("put_window", "PUT", "/windows/deploy", {"json": WINDOW}),
    ("put_window", "PUT", "/windows/deploy", {"json": WINDOW | {"reason": "new release"}}),
    ("get_window", "GET", "/windows/deploy", {}),
    ("list_windows", "GET", "/windows", {}),
    ("delete_window", "DELETE", "/windows/deploy", {}),
    ("put_rule", "PUT", "/rules/on-call", {"json": RULE}),
    ("put_rule", "PUT", "/rules/on-call", {"json": RULE}),
    ("get_rule", "GET", "/rules/on-call", {}),
    ("list_rules", "GET", "/rules", {}),
    ("test_rule", "POST", "/rules/on-call/test", {}),
    ("delete_rule", "DELETE", "/rules/on-call", {}),
    ("list_incidents", "GET", "/incidents", {}),
    ("get_incident", "GET", f"/incidents/{OPENED}", {}),
    ("label_incident", "POST", f"/incidents/{OPENED}/label", {"json": {"anomaly": True}}),
    ("label", "POST", "/feedback?stream=s", {"json": {"labels": [{"seq": 50, "anomaly": True}]}}),
    ("get_log_density", "POST", "/density?stream=s", {"json": {"points": [[1, None]]}}),
    ("get_model", "GET", "/density?stream=s", {}),
    ("get_model", "GET", "/density?stream=s&covariances=false", {}),
    ("get_model", "GET", "/density?stream=kinds", {}),
    ("get_density_grid", "GET", "/density/grid?stream=s&x=0&y=1&size=4", {}),
    ("get_band", "GET", "/streams/s/band?feature=0&from=1800000000&to=1800086400", {}),
    ("list_streams", "GET", "/streams", {}),
    ("list_streams", "GET", "/streams?details=true&limit=100&after=kinds", {}),
    ("list_streams", "GET", "/streams?details=true&order=review&prefix=ki&search=S&after=0~kinds", {}),
    ("get_overview", "GET", "/overview?prefix=k&silent_seconds=60", {}),
    ("create_stream", "PUT", "/streams/web", {"json": {"n_features": 2}}),
    ("create_stream", "PUT", "/streams/web", {"json": {"n_features": 2}}),
    ("change_stream", "PATCH", "/streams/web", {"json": {"expected_anomaly_rate": 0.001}}),
    ("clone_stream", "POST", "/streams/s/clone?to=clone", {}),
    ("estimate_stream", "POST", "/streams/estimate", {"json": {"n_features": 2}}),
    ("get_stream", "GET", "/streams/kinds", {}),
    ("check_stream", "GET", "/streams/web/check", {}),
    ("repair_stream", "POST", "/streams/web/repair?lossy=true", {}),
    ("accept_stream", "POST", "/streams/web/accept", {}),
    ("reset_stream", "POST", "/streams/web/reset", {}),
    ("export_stream", "GET", "/streams/s/export", {}),
    ("import_stream", "PUT", "/streams/copy/import", FILE),
    ("delete_stream", "DELETE", "/streams/copy", {}),
    ("get_history", "GET", "/streams/s/history?values=true", {}),
    ("get_history", "GET", "/streams/s/history?from=1&to=9", {}),
    ("get_sample", "GET", "/streams/s/samples/90", {}),
    ("get_review_queue", "GET", "/streams/s/review", {}),
    ("watch_stream", "HEAD", "/streams/s/events", {}),
    ("sign_in", "POST", "/session", {"json": {"key": "all"}}),
    ("get_session", "GET", "/session", {}),
    ("sign_out", "DELETE", "/session", {}),
    ("get_liveness", "GET", "/livez", {}),
    ("get_readiness", "GET", "/readyz", {}),
    ("get_readiness", "GET", "/readyz", {}),
    ("get_metrics", "GET", "/metrics", {}),
    ("get_openapi", "GET", "/openapi.json", {}),
    *((f"get_{name}", "GET", path, {}) for name, path in (("page", "/"), ("docs", "/docs"))),
    *(("get_page_file", "GET", f"/ui/{name}", {}) for name in ("app.js", "app.css", "icon.svg", "docs.html")),
    *(
        (f"get_{name}", "GET", path, {"headers": {"If-None-Match": "tag"}})
        for name, path in (("page", "/"), ("docs", "/docs"), ("page_file", "/ui/app.js"), ("openapi", "/openapi.json"))
    ),
]


async def test_every_documented_answer_is_what_a_call_gives() -> None:
    seen = set()
    async with Service(api_keys="all", notices_allow_private=True) as service:
        await prepare(service)
        exported = (await service.http.get("/streams/s/export")).content
        for name, method, path, given in CALLS:
            if name == "import_stream":
                given = {**given, "content": exported}
            if given.get("headers", {}).get("If-None-Match") == "tag":
                given = {"headers": {"If-None-Match": (await service.http.get(path)).headers["etag"]}}
            if (name, "200", JSON) in seen and name == "get_readiness":
                service.app.state.service.is_stopping = True
            answer = await service.http.request(method, path, **given)
            seen.add((name, str(answer.status_code), assert_documented(name, method, answer)))
    assert documented() - seen == set()


async def prepare(service: Service) -> None:
    """Make a stream of 100 samples, and one of every kind; sign in with the key for what follows."""
    service.http.headers["Authorization"] = "Bearer all"
    kinds = ["gaussian", "lognormal", "gamma", "exponential", "poisson", "bernoulli", "categorical"]
    features = [{"name": kind, "kind": kind} for kind in kinds]
    await service.accepted("PUT", "/streams/kinds", json={"features": features})
    await service.observe([[1.0] * len(kinds)] * 100, "kinds")
    await service.observe(blobs(100))
    await service.observe([[60.0, -60.0]], "opened")
    await service.observe(blobs(100), "opened")
    await service.observe([[60.0, -60.0]], "opened")


def assert_documented(name: str, method: str, answer: Any) -> str:
    """Hold an answer to the document; gives its media type."""
    media = answer.headers.get("content-type", "").partition(";")[0]
    assert media != PROBLEM, (name, answer.text)
    response = OPERATIONS[name]["responses"][str(answer.status_code)]
    contents = response.get("content", {})
    assert media in contents if media else not contents, (name, answer.status_code, media)
    assert {header.lower() for header in response["headers"]} - {"retry-after"} <= set(answer.headers), name
    if media == JSON and method != "HEAD":
        validator(contents[media]["schema"]).validate(answer.json())
    return media


def documented() -> set[tuple[str, str, str]]:
    """Give every operation with its statuses and media types, without problems."""
    return {
        (name, status, media)
        for name, described in OPERATIONS.items()
        for status, response in described["responses"].items()
        for media in (response.get("content", {}) or {"": {}})
        if media != PROBLEM
    }
