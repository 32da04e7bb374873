"""Incidents: runs of flagged samples."""

import msgspec

from itan_client.answers.incidents import Incident, IncidentPage
from itan_client.request import Page, Request, without_none


def incidents(
    page_size: int = 50,
    *,
    stream: str | None = None,
    prefix: str | None = None,
    state: str | None = None,
    after: str | None = None,
) -> Request[Page[Incident]]:
    """Iterate over incidents, those that opened last first, page by page."""
    params = without_none(stream=stream, prefix=prefix, state=state)

    def page(after: str | None) -> Request[Page[Incident]]:
        begun = {name: str(value) for name, value in (params | without_none(after=after)).items()}
        return Request("GET", "/incidents", read, {"limit": str(page_size), **begun})

    def read(content: bytes) -> Page[Incident]:
        found = _PAGE(content)
        return Page(found.incidents, None if found.next is None else page(found.next))

    return page(after)


_PAGE = msgspec.json.Decoder(IncidentPage).decode
