"""Incidents: runs of flagged samples."""

from urllib.parse import quote

import msgspec

from itan_client.answers.incidents import Incident, IncidentPage
from itan_client.inputs import Timestamp, moment_of
from itan_client.request import Page, Request, without_none


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
    return Request("GET", f"/incidents/{quote(incident, safe='')}", _INCIDENT)


_PAGE = msgspec.json.Decoder(IncidentPage).decode
_INCIDENT = msgspec.json.Decoder(Incident).decode
