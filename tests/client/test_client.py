"""The client against a transport that answers from a script."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
import numpy as np
import pytest

from itan_client import ApiError, Client, ServiceUnreachable

OBSERVED = {
    "stream": "s",
    "seq": [1, 2],
    "ids": ["a", "b"],
    "score": [None, 2.5],
    "threshold": [None, 3.0],
    "severity": [None, 1.5],
    "is_anomaly": [False, False],
    "ready": [False, True],
    "samples_needed": 0,
    "some_later_field": 1,
}
LABELLED = {
    "stream": "s",
    "dry_run": False,
    "seq": [1],
    "id": [None],
    "outcome": ["applied"],
    "retracted": [False],
    "outcomes": {"applied": 1},
    "accepted": [],
    "threshold_before": None,
    "threshold_after": 3.5,
    "oldest_seq": 1,
    "labels": 1,
    "true_alarms": 0,
    "false_alarms": 0,
    "misses": 1,
    "true_passes": 0,
    "cost": 1.0,
    "best_fixed_cost": 0.0,
    "best_fixed_threshold": None,
    "regret": 1.0,
    "precision": None,
    "precision_low": None,
    "precision_high": None,
    "recall": 0.5,
    "recall_low": 0.25,
    "recall_high": 0.75,
}
BUSY = {"code": "store_unavailable", "detail": "the store is down", "status": 503}


class Script:
    """A transport that gives one answer after the other and keeps the requests."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx2.Request] = []
        self.slept: list[float] = []

    def client(self, **options: Any) -> Client:
        transport = httpx2.MockTransport(self.answer)
        return Client("http://service", transport=transport, sleep=self.slept.append, clock=self.now, **options)

    def now(self) -> float:
        return sum(self.slept)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sent(self) -> Any:
        return json.loads(self.requests[-1].content)


def ok(document: Any) -> httpx2.Response:
    return httpx2.Response(200, json=document)


def busy(retry_after: str | None = "2") -> httpx2.Response:
    return httpx2.Response(503, json=BUSY, headers={"Retry-After": retry_after} if retry_after else {})


def test_observe_sends_what_it_was_given_and_reads_the_columns() -> None:
    script = Script(ok(OBSERVED))
    with script.client(key="k1") as client:
        observed = client.observe("a:b", [[1, None], [float("nan"), 2.5]], ids=["a", "b"], timestamps=[1.5, 2.5])
    request = script.requests[0]
    assert (request.method, request.url.path) == ("POST", "/observe")
    assert request.url.params["stream"] == "a:b"
    assert request.headers["Authorization"] == "Bearer k1"
    assert script.sent() == {"samples": [[1, None], [None, 2.5]], "ids": ["a", "b"], "timestamps": [1.5, 2.5]}
    assert observed.seq == [1, 2]
    assert observed.score == [None, 2.5]
    assert observed.ready == [False, True]


def test_observe_takes_arrays_and_leaves_out_what_was_not_given() -> None:
    script = Script(ok(OBSERVED))
    script.client().observe("s", np.array([[1.0, np.nan], [0.1, 2.0]]), ids=None)
    assert script.sent() == {"samples": [[1.0, None], [0.1, 2.0]]}
    assert "Authorization" not in script.requests[0].headers


def test_observe_asks_for_scores_only() -> None:
    script = Script(ok(OBSERVED))
    script.client().score("s", [{"cpu": 1.0}], explain=True)
    params = script.requests[0].url.params
    assert (params["learn"], params["explain"]) == ("false", "true")


def test_a_calendar_goes_with_the_samples_and_times_may_be_unknown() -> None:
    script = Script(ok(OBSERVED))
    zone = {"calendar": ["day", 3600], "timezone": "Europe/Berlin"}
    script.client().observe("s", [[1.0], [2.0]], timestamps=[1.5, None], **zone)
    params = script.requests[0].url.params
    assert (params["calendar"], params["timezone"]) == ("day,3600", "Europe/Berlin")
    assert script.sent()["timestamps"] == [1.5, None]


def test_a_band_is_asked_for_exactly_and_read() -> None:
    said = {"stream": "s", "as_of_seq": 7, "feature": "cpu", "level": [0.1], "time": [1.1, 2.2], "values": [[3.0, 4.0]]}
    script = Script(ok(said))
    band = script.client().band("s", "cpu", 1.1, 2.2, [0.1], points=2)
    url = script.requests[0].url
    assert url.path == "/streams/s/band"
    assert dict(url.params) == {"feature": "cpu", "levels": "0.1", "from": "1.1", "to": "2.2", "points": "2"}
    assert (band.values, band.seq) == ([[3.0, 4.0]], None)


@pytest.mark.parametrize("sample", [[1.0, float("inf")], {"cpu": float("-inf")}])
def test_an_infinity_is_refused_because_json_would_call_it_missing(sample: Any) -> None:
    script = Script()
    with pytest.raises(ValueError, match="row 1 holds an infinity"):
        script.client().observe("s", [[1.0, 2.0], sample])
    assert not script.requests


def test_a_problem_is_raised_with_its_document() -> None:
    problem = {"code": "invalid_observation", "detail": "samples[0] has 1 value", "field": "samples[0]", "limit": "2"}
    script = Script(httpx2.Response(422, json=problem))
    with pytest.raises(ApiError) as raised:
        script.client().observe("s", [[1.0]])
    assert raised.value.status == 422
    assert raised.value.code == "invalid_observation"
    assert raised.value.problem == problem
    assert str(raised.value) == "samples[0] has 1 value [422 invalid_observation]"


@pytest.mark.parametrize("body", [b"<h1>Bad gateway</h1>", b"", b"[1]"])
def test_an_answer_that_is_no_problem_document_is_still_an_api_error(body: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        Script(httpx2.Response(502, content=body)).client(retry_seconds=0).get("s")
    assert raised.value.status == 502
    assert raised.value.detail


def test_no_answer_is_told_apart_from_a_refusal() -> None:
    with pytest.raises(ServiceUnreachable, match=r"http://service.*refused"):
        Script(httpx2.ConnectError("connection refused")).client(retry_seconds=0).get("s")


def test_nothing_is_retried_in_no_time() -> None:
    script = Script(busy())
    with pytest.raises(ApiError):
        script.client(retry_seconds=0).observe("s", [[1.0]])
    assert not script.slept


def test_samples_have_ids_of_their_call_which_a_repeat_keeps() -> None:
    script = Script(busy("1"), ok(OBSERVED), ok(OBSERVED))
    client = script.client()
    for _ in range(2):
        client.observe("s", [[1.0], [2.0]])
    first, again, other = ([*json.loads(request.content)["ids"]] for request in script.requests)
    assert first == again
    assert len({*first, *other}) == 4


def test_feedback_reads_what_became_of_labels() -> None:
    script = Script(ok(LABELLED))
    answer = script.client().feedback("s", [{"seq": 1, "anomaly": True}], dry_run=True)
    assert script.sent() == {"labels": [{"seq": 1, "anomaly": True}]}
    assert script.requests[0].url.params["dry_run"] == "true"
    assert (answer.outcome, answer.threshold_after) == (["applied"], 3.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.observe("s", [[1.0]], ids=["a"]),
        lambda client: client.score("s", [[1.0]]),
        lambda client: client.feedback("s", [{"seq": 1, "anomaly": True}]),
    ],
)
def test_a_repeatable_request_waits_as_long_as_it_is_told(call: Callable[[Client], object]) -> None:
    script = Script(busy("2"), busy("3"), ok(OBSERVED | LABELLED))
    call(script.client(retry_seconds=5))
    assert script.slept == [2, 3]
    assert len({request.content for request in script.requests}) == 1


@pytest.mark.parametrize("ids", [None, ["a", None]])
def test_samples_without_ids_are_never_sent_twice(ids: list[str | None] | None) -> None:
    script = Script(busy())
    with pytest.raises(ApiError):
        script.client(retry_seconds=60).observe("s", [[1.0], [2.0]], ids)
    assert len(script.requests) == 1


def test_samples_that_a_rate_refused_are_sent_again_also_without_ids() -> None:
    refused = httpx2.Response(429, json=BUSY | {"status": 429, "code": "rate_limited"}, headers={"Retry-After": "3"})
    script = Script(refused, ok(OBSERVED))
    script.client(retry_seconds=5).observe("s", [[1.0]], ids=None)
    assert script.slept == [3]


@pytest.mark.parametrize("answer", [busy("9"), httpx2.Response(500, json=BUSY), httpx2.Response(422, json=BUSY)])
def test_retries_end_with_the_time_allowed_and_need_a_passing_reason(answer: httpx2.Response) -> None:
    script = Script(answer)
    with pytest.raises(ApiError):
        script.client(retry_seconds=5).observe("s", [[1.0]], ids=["a"])
    assert not script.slept


@pytest.mark.parametrize("failure", [busy(None), httpx2.Response(502), httpx2.ReadTimeout("late")])
def test_the_wait_doubles_until_the_time_is_over(failure: httpx2.Response | Exception) -> None:
    script = Script(*[failure] * 9)
    with pytest.raises((ApiError, ServiceUnreachable)):
        script.client(retry_seconds=20).observe("s", [[1.0]])
    assert 5 <= len(script.slept) <= 6
    assert all(2**place / 4 <= pause <= 2**place / 2 for place, pause in enumerate(script.slept))
    assert sum(script.slept) <= 20


def test_without_ids_a_request_that_may_have_arrived_is_not_sent_again() -> None:
    script = Script(httpx2.ConnectError("refused"), httpx2.ReadError("reset"))
    with pytest.raises(ServiceUnreachable, match="reset"):
        script.client().observe("s", [[1.0]], ids=None)
    assert len(script.slept) == 1


def test_streams_follow_the_pages() -> None:
    script = Script(ok({"streams": [{"stream": "a"}, {"stream": "b"}], "next": "b"}), ok({"streams": [], "next": None}))
    assert list(script.client().streams(page_size=2)) == ["a", "b"]
    assert script.requests[1].url.params["after"] == "b"


def test_an_order_holds_for_every_page() -> None:
    page = {"streams": [{"stream": "a"}], "next": "-3~a"}
    script = Script(ok(page), ok({"streams": [], "next": None}))
    assert list(script.client().streams(prefix="a", search="x", order="flagged")) == ["a"]
    asked = [dict(request.url.params) for request in script.requests]
    given = {"limit": "100", "prefix": "a", "search": "x", "order": "flagged"}
    assert asked == [given | {"after": ""}, given | {"after": "-3~a"}]


def test_export_and_import_carry_bytes() -> None:
    script = Script(httpx2.Response(200, content=b"\x00state"), ok({}))
    client = script.client()
    assert client.export("a.b") == b"\x00state"
    with pytest.raises(msgspec.ValidationError, match="stream"):
        client.import_("a.b", b"\x00state")
    assert script.requests[1].content == b"\x00state"
    assert script.requests[1].url.path == "/streams/a.b/import"
    assert script.requests[1].headers["Content-Type"] == "application/octet-stream"


def test_a_strange_stream_id_stays_one_part_of_the_path() -> None:
    script = Script(httpx2.Response(404, json={"code": "unknown_stream", "detail": "no such stream"}))
    with pytest.raises(ApiError):
        script.client().get("../density?x=1")
    assert script.requests[0].url.raw_path == b"/streams/..%2Fdensity%3Fx%3D1"


def test_an_explanation_is_read_by_feature() -> None:
    one = {"contributions": {"cpu": 9.5, "mem": None}, "expected": {"cpu": 0.3, "mem": 2.0}, "node": 4, "path": [0, 4]}
    one |= {"labels_contribution": 1.5, "nearest_anomaly": 17}
    script = Script(ok({**OBSERVED, "explanation": [None, one], "explanation_note": "how to read it"}))
    observed = script.client().observe("s", [[1.0, 2.0], [9.0, None]], explain=True)
    assert observed.explanation is not None
    assert observed.explanation[0] is None
    assert observed.explanation[1] is not None
    assert observed.explanation[1].contributions == {"cpu": 9.5, "mem": None}
    assert observed.explanation[1].path == [0, 4]
    assert observed.explanation[1].nearest_anomaly == 17
