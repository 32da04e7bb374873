"""Requests that the OpenAPI document allows, and some that it does not, get answers that it allows.

ITAN_TEST_SCHEMATHESIS says how many random requests each operation gets beside the systematic ones, others each time.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import schemathesis
from fastapi import FastAPI
from schemathesis.engine import events, from_schema
from schemathesis.python.asgi import shutdown_lifespans
from starlette.types import Receive, Scope, Send

from app.main import ROUTES, create_app
from app.settings import Settings
from app.storage.memory import MemoryStore
from tests.effort import tries

PROBLEM = "application/problem+json"
MANY = os.environ.get("ITAN_TEST_SCHEMATHESIS")
RANDOM, SEED = (tries(10), 1) if MANY is None else (int(MANY), secrets.randbelow(2**32))
STREAM, KEY = "/streams/web-1", "all-may"
SAMPLES = {"samples": [{"cpu": k % 7 / 7, "latency_ms": 20 + k % 5} for k in range(60)], "ids": ["req-1"] + [None] * 59}
# what is valid here is up to the stream, or more than a schema can say (17.0 is an integer to it): tested elsewhere
BY_STREAM = {
    "observe",
    "ingest_records",
    "ingest_otlp",
    "put_source",
    "put_rule",
    "put_template",
    "put_window",
    "label",
    "label_incident",
    "get_log_density",
    "get_density_grid",
    "get_band",
    "list_streams",
    "list_incidents",
} | {
    "create_stream",
    "change_stream",
    "estimate_stream",
    "import_stream",
}
REJECTED = [400, 401, 403, 404, 405, 409, 413, 415, 422]
# the path is also that of the stream of this name, which OPTIONS rightly says
TWO_PATHS = {"estimate_stream"}
# takes the valid records of a body, and answers 200
RECORD_BY_RECORD = {"ingest_records", "ingest_otlp"}


class Seeded:
    """An app that has the stream of the examples, ready to score: before its first request, or before each.

    Single requests delete and reset the stream, each as if it came first.
    """

    def __init__(self, app: FastAPI, headers: dict[str, str]) -> None:
        self._app, self._headers = app, headers
        self.seeds = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.seeds and not self._is_ready():
            await self._seed()
        await self._app(scope, receive, send)

    def _is_ready(self) -> bool:
        state = self._app.state.service.registry.peek("web-1")
        return state is not None and state.detector.ready and state.detector.config.features is not None

    async def _seed(self) -> None:
        transport = httpx2.ASGITransport(self._app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=self._headers) as http:
            await http.delete(STREAM)
            assert (await http.post("/observe?stream=web-1", json=SAMPLES)).status_code == 200


# a request that failed is shown, however long it is
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@dataclass
class Found:
    """What a run has found."""

    cases: int = 0
    failures: list[str] = field(default_factory=list)


class Fuzzed:
    """A service in this process and its document."""

    def __init__(self, api_keys: str) -> None:
        self.with_keys = bool(api_keys)
        settings = Settings(worker="fuzzed", api_keys=api_keys, allowed_hosts="*")
        self._headers = {"Authorization": f"Bearer {KEY}"} if api_keys else {}
        self.app = Seeded(create_app(settings, store=MemoryStore()), self._headers)

    def run(self, *phases: str) -> Found:
        """Run phases of schemathesis on all operations."""
        config = schemathesis.Config.from_dict(self._config(set(phases), n=RANDOM))
        schema = schemathesis.openapi.from_asgi("/openapi.json", self.app, config=config)
        self.app.seeds = "stateful" not in phases
        return collected(from_schema(schema).execute())

    def _config(self, phases: set[str], n: int) -> dict[str, Any]:
        without = {
            "positive_data_acceptance": BY_STREAM,
            "allow_header_conformance": TWO_PATHS,
            "negative_data_rejection": RECORD_BY_RECORD,
        }
        return {
            "seed": SEED,
            "suppress-health-check": ["all"],
            "headers": self._headers,
            "checks": {"negative_data_rejection": {"expected-statuses": REJECTED}},
            "generation": {"max-examples": n, "database": "none"},
            "phases": {name: {"enabled": name in phases} for name in ("examples", "coverage", "fuzzing", "stateful")},
            "operations": [
                {"include-operation-id": name, "checks": {check: {"enabled": False}}}
                for check, names in without.items()
                for name in sorted(names)
            ]
            # an event stream has no end: what comes in so long is enough
            + [{"include-operation-id": "watch_stream", "request-timeout": 0.2}],
        }


def collected(run: Iterator[Any]) -> Found:
    """Count the cases of a run, and describe each failure of one."""
    found = Found()
    for event in run:
        if isinstance(event, events.ScenarioFinished):
            found.cases += len(event.recorder.cases)
            for case_id, checks in event.recorder.checks.items():
                found.failures += [described(event.recorder, case_id, check) for check in checks if check.failure_info]
        elif isinstance(event, events.NonFatalError | events.FatalError):
            found.failures.append(f"{getattr(event, 'label', '')}: {getattr(event, 'value', event)!r}")
    return found


def described(recorder: Any, case_id: str, check: Any) -> str:
    """Say what was wrong with the answer to which request."""
    response = recorder.interactions[case_id].response
    failure, answer = check.failure_info.failure, response and (response.status_code, response.content[:300])
    return f"{check.name}: {failure.title}\n{failure.message}\n{check.failure_info.code_sample}\n{answer}"


# one app a run: the end of a run is the end of the app
@pytest.fixture(autouse=True)
def _no_names_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no rule lead out of this machine."""

    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", fail)


@pytest.fixture(params=["", KEY], ids=["open", "keys"])
def fuzzed(request: pytest.FixtureRequest) -> Iterator[Fuzzed]:
    yield Fuzzed(request.param)
    shutdown_lifespans()


@schemathesis.check
def codes_are_documented(_: object, response: schemathesis.Response, case: schemathesis.Case) -> None:
    """Hold the code of a problem to those that the operation lists for its status; 405 is of no operation."""
    if response.headers.get("content-type") == [PROBLEM] and response.status_code != 405:
        listed = case.operation.definition.raw["responses"][str(response.status_code)]["content"][PROBLEM]["examples"]
        assert response.json()["code"] in listed


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: object, lines: object) -> bytes:
    """Send lines as they are; what is no text, and by the document not valid, as what is no sample."""
    return lines.encode(errors="surrogatepass") if isinstance(lines, str) else b"no sample"


def test_answers_are_as_documented(fuzzed: Fuzzed) -> None:
    # the systematic requests once: without keys they lead to the same handlers
    phases = ("examples", "coverage", "fuzzing") if fuzzed.with_keys else ("examples", "fuzzing")
    found = fuzzed.run(*phases)
    print(f"{found.cases} cases, seed {SEED}")
    assert found.cases > (1000 if fuzzed.with_keys else len(ROUTES) * RANDOM // 2)
    assert not found.failures, "\n\n".join(found.failures)


def test_whole_lives_of_streams_are_as_documented(fuzzed: Fuzzed) -> None:
    found = fuzzed.run("stateful")
    print(f"{found.cases} cases, seed {SEED}")
    assert not found.failures, "\n\n".join(found.failures)
