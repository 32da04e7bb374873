"""GET /incidents: the incidents of the streams that a key may read, the newest first."""

import re
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.queries import STREAM, read_as, read_query, stream_in, whole, whole_in
from app.api.routing import JSON, Answer, Operation, Parameters, Route, answer, ref
from app.api.schemas.incidents import IncidentAnswer, IncidentList
from app.api.service import service_of
from app.security import Scope
from app.streams.log.incidents import STATES, Incident
from app.streams.views.incidents import ID, Wanted, id_of, page_of, read_id

PREFIX: Final = "[A-Za-z0-9._:-]{0,128}"
SIZES = (1, 200, 50)
STATE = {str(state): state for state in STATES}


async def get_incidents(request: Request) -> Response:
    """List incidents, page by page."""
    service = service_of(request)
    query = read_query(request, "stream", "prefix", "state", "after", "limit")
    limit, after = whole_in(query, "limit", *SIZES), read_as(query, "after", read_id, "the id of an incident", None)
    state = read_as(query, "state", STATE.__getitem__, ", ".join(STATES), None)
    stream = stream_in(query) if "stream" in query else None
    service.keys.permit(request, Scope.READ, *(() if stream is None else (stream,)))
    prefix = read_as(query, "prefix", read_prefix, "the beginning of a stream id", "")
    wanted = Wanted(lambda name: bool(service.keys.visible(request, [name])), stream, prefix, state)
    found = await service.catalog.incidents(wanted, after, limit)
    shown = [said(name, incident, service.settings.public_url) for name, incident in found.incidents]
    return answer(msgspec.to_builtins(IncidentList(shown, found.next)))


def read_prefix(text: str) -> str:
    """Give the text back if stream ids can begin like that. Raises ValueError."""
    if not re.fullmatch(PREFIX, text):
        raise ValueError(text)
    return text


def said(stream: str, incident: Incident, public_url: str) -> IncidentAnswer:
    """Give an incident as answers have it."""
    return IncidentAnswer(
        id=id_of(stream, incident.seq, incident.opened),
        stream=stream,
        incident=incident.seq,
        state=incident.state,
        begin=incident.begin,
        peak_seq=incident.peak_seq,
        peak_time=incident.peak_time,
        peak_score=incident.peak_score,
        peak_severity=incident.peak_severity,
        last_seq=incident.last_seq,
        last_time=incident.last_time,
        ended_at=incident.ended_at,
        n_flagged=incident.n_flagged,
        n_anomalous=incident.n_anomalous,
        n_normal=incident.n_normal,
        features=incident.features,
        url=page_of(stream, public_url),
    )


QUERY: Parameters = {
    "stream": (STREAM, "only those of this stream"),
    "prefix": ({"type": "string", "pattern": f"^{PREFIX}$", "default": ""}, "only of streams named so"),
    "state": ({"type": "string", "enum": list(STATES)}, "only those in this state"),
    "after": ({"type": "string", "pattern": f"^{ID}$"}, "list those that opened before the one of this id"),
    "limit": (whole(*SIZES), "most incidents in the answer"),
}

ROUTES = [
    Route(
        "GET",
        "/incidents",
        get_incidents,
        Operation(
            id="list_incidents",
            tag="watching",
            summary="List incidents",
            scope=Scope.READ,
            query=QUERY,
            optional=frozenset({"stream", "state", "after"}),
            answers={200: Answer({JSON: ref("IncidentList")})},
        ),
    )
]
