"""Both clients against the service, in this process: the same calls get the same answers, and every field of them."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest

from app.api.schemas import rules as rule_forms
from app.api.schemas.density import DensityAnswer, DensityGrid, ExpectedBand, Model, Node
from app.api.schemas.history import History, ReviewQueue, Sample
from app.api.schemas.incidents import IncidentAnswer
from app.api.schemas.ingest import IngestAnswer
from app.api.schemas.samples import Costs, Explanation, FeedbackAnswer, ObserveAnswer
from app.api.schemas.sources import SourceAnswer
from app.api.schemas.streams import FleetAnswer, StreamDescription, StreamEstimate
from app.api.schemas.templates import TemplateAnswer
from app.api.schemas.windows import WindowAnswer
from app.streams.log.incidents import MainFeature
from app.streams.maintenance.repair import Checked, Repaired
from app.streams.views.overview import Overview
from app.streams.views.totals import Group
from itan_client import ApiError, AsyncClient, Client, calls
from itan_client.answers import (
    density,
    history,
    incidents,
    ingest,
    rules,
    samples,
    sources,
    streams,
    templates,
    windows,
)
from tests.app.harness import NOW, Service, blobs
from tests.client.threaded import Threaded

FIRST = {"features": [{"name": "a"}, {"name": "b"}]}
X = [dict(zip("ab", row, strict=True)) for row in blobs(150).tolist()]
IDS = [f"i{place}" for place in range(150)]
RECORDS = [{"stream": f"r{place % 3}", "sample": [place / 7, 1.0], "id": f"r{place}"} for place in range(12)]
SOURCE = {"stream": "{host}", "features": ["*"], "ignore": ["host"]}
TEMPLATE = {"streams": "plant-*", "config": {"expected_anomaly_rate": 0.001}}
RULE = {"target": "chat", "url": "http://127.0.0.1:1/", "quiet_hours": {"begin": "22:00", "end": "07:00"}}
RANGE = {"from": datetime.fromtimestamp(1.7e9 + 60, UTC), "to": 1.7e9 + 300, "anomaly": True, "only": "all"}
SCENARIO: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("estimate", (FIRST,), {}),
    ("create", ("s", FIRST), {}),
    ("observe", ("s", X, IDS), {"timestamps": [1.7e9 + 60 * place for place in range(150)]}),
    ("observe_in_parts", ("parts", X, IDS), {"size": 70, "timestamps": [1.7e9 + 60 * place for place in range(150)]}),
    ("observe", ("s", [{"a": 90.0, "b": -40.0}], ["odd"]), {"explain": True}),
    ("score", ("s", X[:5]), {"explain": True}),
    ("feedback", ("s", [{"id": "odd", "anomaly": True}, {"seq": 3, "anomaly": False}]), {}),
    ("feedback", ("s",), {"ranges": [RANGE], "dry_run": True}),
    ("ingest", (RECORDS,), {}),
    ("ingest", (RECORDS,), {"answer": "counts"}),
    ("density", ("s", X[:5]), {}),
    ("model", ("s",), {}),
    ("model", ("s",), {"covariances": False}),
    ("grid", ("s", "a", "b", 16), {}),
    ("band", ("s", "a", 1.7e9, 1.8e9), {}),
    ("history", ("s",), {"values": True}),
    ("history", ("s", 3, 9), {}),
    ("sample", ("s", 151), {}),
    ("review", ("s",), {}),
    ("streams", (2,), {}),
    ("summaries", (2,), {}),
    ("overview", ("r",), {}),
    ("incidents", (1,), {}),
    ("incidents", (), {"prefix": "s", "state": "open"}),
    ("incidents", (), {"begin": NOW - 1, "end": datetime(2028, 1, 1, tzinfo=UTC)}),
    ("incidents", (), {"end": "1999-01-01T00:00:00Z"}),
    ("incident", (f"s~151~{round(NOW) * 1000}",), {}),
    ("label_incident", (f"s~151~{round(NOW) * 1000}", False), {"only": "all", "dry_run": True}),
    ("check", ("s",), {}),
    ("repair", ("s",), {}),
    ("accept", ("s",), {}),
    ("export", ("s",), {}),
    ("get", ("s",), {}),
    ("get", ("nowhere",), {}),
    ("import_", ("s", b"spoilt"), {}),
    ("reset", ("s",), {}),
    ("delete", ("s",), {}),
    ("sources", (), {}),
    ("put_source", ("mine", SOURCE), {}),
    ("get_source", ("mine",), {}),
    ("ingest_lines", (b'{"host": "h", "x": 1}\n{"host": 2}\n{"x": 3}', "mine"), {}),
    ("delete_source", ("mine",), {}),
    ("put_template", ("plants", TEMPLATE), {}),
    ("get_template", ("plants",), {}),
    ("templates", (), {}),
    ("observe", ("plant-1", X[:3], IDS[:3]), {}),
    ("patch", ("plant-1", {"expected_anomaly_rate": 0.002}), {}),
    ("clone", ("plant-1", "plant-2"), {}),
    ("clone", ("plant-1", "plant-2"), {}),
    ("delete_template", ("plants",), {}),
    ("put_rule", ("mine", RULE), {}),
    ("get_rule", ("mine",), {}),
    ("rules", (), {}),
    ("test_rule", ("mine",), {}),
    ("delete_rule", ("mine",), {}),
    ("put_window", ("deploy", "plant-*", NOW - 60, datetime.fromtimestamp(NOW + 60, UTC), "new release"), {}),
    ("get_window", ("deploy",), {}),
    ("windows", (), {}),
    ("observe", ("plant-1", X[3:6], IDS[3:6]), {}),
    ("feedback", ("plant-1", [{"id": "i3", "anomaly": True}]), {}),
    ("delete_window", ("deploy",), {}),
]


async def by_async(service: Service, name: str, given: tuple[Any, ...], more: dict[str, Any]) -> Any:
    client = AsyncClient("http://localhost", transport=httpx2.ASGITransport(service.app))
    answer = getattr(client, name)(*given, **more)
    return [entry async for entry in answer] if isinstance(answer, AsyncIterator) else await answer


async def by_sync(service: Service, name: str, given: tuple[Any, ...], more: dict[str, Any]) -> Any:
    client = Client("http://localhost", transport=Threaded(service, asyncio.get_running_loop()))

    def call() -> Any:
        answer = getattr(client, name)(*given, **more)
        return list(answer) if inspect.isgenerator(answer) else answer

    return await asyncio.to_thread(call)


async def answers_of(by: Callable[..., Any]) -> list[Any]:
    found = []
    async with Service(notices_allow_private=True) as service:
        for name, given, more in SCENARIO:
            try:
                found.append(await by(service, name, given, more))
            except ApiError as error:
                found.append((error.status, error.code, error.refused_records))
    return found


def timeless(found: list[Any]) -> str:
    """Leave out what hangs on the machine's speed and clock, and the id of a notice."""
    return re.sub(r"memory_bytes=\d+|silent_seconds=[\d.e-]+|RuleTest\(id='[^']*'", "", repr(found))


async def test_both_clients_get_the_same_answers() -> None:
    found = await answers_of(by_sync)
    assert timeless(found) == timeless(await answers_of(by_async))
    told = {name: answer for (name, *_), answer in zip(SCENARIO, found, strict=True)}
    assert told["streams"] == ["parts", "r0", "r1", "r2", "s"]
    assert [summary.stream for summary in told["summaries"]] == told["streams"]
    assert (told["overview"].streams, told["overview"].samples) == (3, 12)
    whole, parts = found[2], told["observe_in_parts"]
    assert [len(part.score) for part in parts] == [70, 70, 10]
    for column in ("seq", "ids", "score", "threshold", "is_anomaly", "incident"):
        assert [value for part in parts for value in getattr(part, column)] == getattr(whole, column)
    assert told["model"].nodes[0].covariance is None
    assert told["ingest"].taken == 12
    assert told["get"] == (404, "unknown_stream", [])
    assert told["import_"][:2] == (422, "invalid_snapshot")
    one_by_one, of_time, held_out = [
        answer for (name, *_), answer in zip(SCENARIO, found, strict=True) if name == "feedback"
    ]
    assert one_by_one.outcome == ["applied", "applied"]
    assert (of_time.seq, of_time.found) == ([2, 3, 4, 5, 6], [5])
    assert of_time.outcome == ["applied", "revised", "applied", "applied", "applied"]
    assert (told["label_incident"].outcome, told["label_incident"].found) == (["revised"], [1])
    assert held_out.outcome == ["not_learned"]
    assert (told["windows"], told["observe"].in_maintenance) == ([told["put_window"]], [True] * 3)
    assert told["put_window"].end == NOW + 60
    incidents = [answer for (name, *_), answer in zip(SCENARIO, found, strict=True) if name == "incidents"]
    assert told["incident"] == incidents[0][0]
    assert [[one.incident for one in some] for some in incidents[2:]] == [[151], []]
    assert (told["rules"], told["test_rule"].delivered) == (["mine"], False)
    assert (told["templates"], told["patch"].config["expected_anomaly_rate"]) == (["plants"], 0.002)
    clones = [answer for (name, *_), answer in zip(SCENARIO, found, strict=True) if name == "clone"]
    assert (clones[0].stream, clones[0].n_seen, clones[0].config) == ("plant-2", 3, told["patch"].config)
    assert clones[1] == (409, "stream_exists", [])
    lines = told["ingest_lines"]
    assert (lines.taken, lines.record) == (1, [0])
    assert [problem.record for problem in lines.problems] == [1, 2]


def test_the_scenario_calls_every_method_that_both_clients_have() -> None:
    names = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Client, AsyncClient)]
    assert names[0] == names[1]
    assert {name for name, *_ in SCENARIO} | {"watch", "send", "close"} == names[0]
    assert names[0] >= set(calls.__all__) - {"events"}


@pytest.mark.parametrize(
    ("read", "answered"),
    [
        (samples.Observed, ObserveAnswer),
        (samples.Explanation, Explanation),
        (samples.Feedback, FeedbackAnswer),
        (samples.Costs, Costs),
        (incidents.Incident, IncidentAnswer),
        (incidents.IncidentFeature, MainFeature),
        (ingest.Ingested, IngestAnswer),
        (density.LogDensity, DensityAnswer),
        (density.Model, Model),
        (density.Node, Node),
        (density.DensityGrid, DensityGrid),
        (density.Band, ExpectedBand),
        (history.History, History),
        (history.Review, ReviewQueue),
        (history.InspectedSample, Sample),
        (streams.Stream, StreamDescription),
        (streams.StreamSummary, Overview),
        (streams.StreamTotals, FleetAnswer),
        (streams.StreamGroup, Group),
        (streams.Estimate, StreamEstimate),
        (streams.Checked, Checked),
        (streams.Repaired, Repaired),
        (sources.Source, SourceAnswer),
        (templates.Template, TemplateAnswer),
        (rules.Rule, rule_forms.RuleAnswer),
        (rules.RuleTest, rule_forms.TestAnswer),
        (windows.Window, WindowAnswer),
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_client_reads_every_field_of_an_answer(read: type[msgspec.Struct], answered: type[msgspec.Struct]) -> None:
    assert set(read.__struct_fields__) == set(answered.__struct_fields__)
