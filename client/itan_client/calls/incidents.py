"""Incidents: runs of flagged samples."""

from typing import Literal
from urllib.parse import quote

import msgspec

from itan_client.answers.incidents import Incident, IncidentPage
from itan_client.answers.samples import Feedback
from itan_client.inputs import Timestamp, moment_of
from itan_client.request import JSON, Page, Request, encode, flag, without_none


def incidents(
    page_size: int = 50,
    *,
    stream: str | None = None,
    prefix: str | None = None,
    state: str | None = None,
    begin: Timestamp = None,
    end: Timestamp = None,
    after: str | None = None,
) -> Request[Page[Incident]]:
    """Iterate over incidents, those that opened last first, page by page; only those that went on from begin to end."""
    times = {"from": moment_of(begin), "to": moment_of(end)}
    params = without_none(stream=stream, prefix=prefix, state=state, **times)

    def page(after: str | None) -> Request[Page[Incident]]:
        begun = {name: str(value) for name, value in (params | without_none(after=after)).items()}
        return Request("GET", "/incidents", read, {"limit": str(page_size), **begun})

    def read(content: bytes) -> Page[Incident]:
        found = _PAGE(content)
        return Page(found.incidents, None if found.next is None else page(found.next))

    return page(after)


def incident(incident: str) -> Request[Incident]:
    """Get one incident, by its id."""
    return Request("GET", _path(incident), _INCIDENT)


def label_incident(
    incident: str, anomaly: bool | None, *, only: Literal["flagged", "all"] = "flagged", dry_run: bool = False
) -> Request[Feedback]:
    """Label the flagged samples of an incident, or all; None withdraws their labels."""
    body = encode({"anomaly": anomaly, "only": only})
    return Request("POST", f"{_path(incident)}/label", _FEEDBACK, {"dry_run": flag(dry_run)}, body, JSON)


def _path(incident: str) -> str:
    return f"/incidents/{quote(incident, safe='')}"


_PAGE = msgspec.json.Decoder(IncidentPage).decode
_INCIDENT = msgspec.json.Decoder(Incident).decode
_FEEDBACK = msgspec.json.Decoder(Feedback).decode
