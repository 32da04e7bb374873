"""What is sent again, and what is told, whatever the service answers."""

import json
from typing import Any

import httpx2
import pytest

from app.ingestion.cutting import Record
from app.ingestion.sending import Sender
from itan_client import ApiError, Client

BUNDLE = [Record(place + 1, b'{"stream": "s", "sample": [%d]}' % place) for place in range(5)]
PRESET = {
    "source": "mine",
    "is_preset": False,
    "stream": "{host}",
    "features": ["*"],
    "ignore": [],
    "arrays": None,
    "records": "",
    "timestamp": "",
    "timestamp_unit": "s",
    "missing": "null",
    "new": "ignore",
    "config": {},
}


def counts(taken: int, *problems: dict[str, Any]) -> dict[str, Any]:
    told = {"records": taken + len(problems), "taken": taken, "refused": len(problems), "flagged": 1}
    return told | {"refused_by_code": {}, "problems": list(problems)}


def problem(status: int, code: str, **more: Any) -> httpx2.Response:
    return httpx2.Response(status, json={"status": status, "code": code, "detail": "no", **more})


class Talk:
    """A service that answers from a script."""

    def __init__(self, *answers: httpx2.Response) -> None:
        self.answers, self.bodies, self.refused = list(answers), list[list[bytes]](), list[tuple[int, str]]()
        self.queries = list[dict[str, str]]()

    def sender(self, source: str | None = None) -> Sender:
        client = Client("http://s", transport=httpx2.MockTransport(self.answer), sleep=lambda _: None)
        return Sender(client, source, lambda line, problem: self.refused.append((line, problem.code)))

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(request.content.split(b"\n"))
        self.queries.append(dict(request.url.params))
        return self.answers.pop(0)


def test_records_get_ids_which_a_repeat_keeps() -> None:
    talk = Talk(problem(503, "store_unavailable"), httpx2.Response(200, json=counts(5)))
    talk.sender().send(BUNDLE)
    first, again = talk.bodies
    assert first == again
    assert len({json.loads(record)["id"] for record in first}) == 5
    assert talk.queries[0] == {"answer": "flagged", "retry": "true"}


@pytest.mark.parametrize("null", [b"null", b'""'])
def test_a_record_whose_id_is_nothing_is_not_sent_twice(null: bytes) -> None:
    talk = Talk(problem(503, "store_unavailable"))
    with pytest.raises(ApiError):
        talk.sender().send([*BUNDLE, Record(6, b'{"stream": "s", "sample": [1], "id": %s}' % null)])
    assert len(talk.bodies) == 1


def test_too_much_at_once_is_sent_in_parts() -> None:
    parts = [httpx2.Response(200, json=counts(n)) for n in (2, 1, 2)]
    talk = Talk(problem(413, "too_many"), parts[0], problem(413, "body_too_large"), parts[1], parts[2])
    sender = talk.sender()
    sender.send(BUNDLE)
    assert [len(body) for body in talk.bodies] == [5, 2, 3, 1, 2]
    assert (sender.tally.taken, sender.tally.flagged, sender.tally.last_line) == (5, 3, 5)


def test_one_record_that_is_too_much_fails() -> None:
    with pytest.raises(ApiError, match="too_many"):
        Talk(problem(413, "too_many")).sender().send(BUNDLE[:1])


def test_refusals_are_told_by_line_also_if_nothing_was_taken() -> None:
    one = {"record": 1, "code": "invalid_samples", "detail": "no", "status": 422}
    talk = Talk(httpx2.Response(200, json=counts(4, one)), problem(422, "nothing_taken", problems=[one]))
    sender = talk.sender()
    sender.send(BUNDLE)
    sender.send([Record(line, b"{}") for line in (17, 19)])
    assert talk.refused == [(2, "invalid_samples"), (19, "invalid_samples")]
    assert (sender.tally.records, sender.tally.refused) == (6, {"invalid_samples": 2})


@pytest.mark.parametrize(("template", "tries"), [("{n}", 2), ("", 1)])
def test_what_a_source_reads_is_sent_as_it_is_and_again_if_that_makes_ids(template: str, tries: int) -> None:
    talk = Talk(httpx2.Response(200, json=PRESET | {"id": template}), *[problem(503, "down"), problem(500, "broken")])
    sender = talk.sender("mine")
    with pytest.raises(ApiError, match="broken" if tries == 2 else "down"):
        sender.send(BUNDLE)
    assert talk.bodies[1:] == [[record.text for record in BUNDLE]] * tries


@pytest.mark.parametrize("more", [{"format": "influx"}, {"join_seconds": 10.0}])
def test_a_source_that_reads_whole_requests_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="source mine reads whole requests"):
        Talk(httpx2.Response(200, json=PRESET | {"id": ""} | more)).sender("mine")


def test_a_key_that_may_not_read_sources_still_sends() -> None:
    talk = Talk(problem(403, "forbidden"), httpx2.Response(200, json=counts(5)))
    talk.sender("mine").send(BUNDLE)
    assert talk.queries[1] == {"answer": "flagged", "retry": "false", "source": "mine"}
