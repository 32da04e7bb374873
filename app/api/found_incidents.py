"""GET /incidents: the incidents of the streams that a key may read, the newest first, or one of them."""

import re
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.moments import MOMENT, span_in
from app.api.queries import STREAM, read_as, read_query, stream_in, whole, whole_in
from app.api.routing import JSON, OF_STORE, Answer, Operation, Parameters, Route, answer, ref
from app.api.schemas.incidents import IncidentAnswer, IncidentList
from app.api.service import service_of
from app.security import Grant, Scope
from app.streams.errors import UnknownIncident
from app.streams.log.incident_ids import ID, IncidentKey, id_of, read_id
from app.streams.log.incidents import STATES, Incident
from app.streams.views.incidents import Wanted, page_of

PREFIX: Final = "[A-Za-z0-9._:-]{0,128}"
SIZES = (1, 200, 50)
STATE = {str(state): state for state in STATES}


async def get_incidents(request: Request) -> Response:
    """List incidents, page by page."""
    service = service_of(request)
    query = read_query(request, "stream", "prefix", "state", "from", "to", "after", "limit")
    limit, after = whole_in(query, "limit", *SIZES), read_as(query, "after", read_id, "the id of an incident", None)
    state = read_as(query, "state", STATE.__getitem__, ", ".join(STATES), None)
    stream = stream_in(query) if "stream" in query else None
    service.keys.permit(request, Scope.READ, *(() if stream is None else (stream,)))
    prefix = read_as(query, "prefix", read_prefix, "the beginning of a stream id", "")
    wanted = Wanted(lambda name: bool(service.keys.visible(request, [name])), stream, prefix, state, span_in(query))
    found = await service.catalog.incidents(wanted, after, limit)
    shown = [said(name, incident, service.settings.public_url) for name, incident in found.incidents]
    return answer(msgspec.to_builtins(IncidentList(shown, found.next)))


async def get_incident(request: Request) -> Response:
    """Give one incident."""
    service, (key, _) = service_of(request), permitted_incident(request, Scope.READ)
    read_query(request)
    incident = await service.catalog.incident(key)
    return answer(msgspec.to_builtins(said(key.stream, incident, service.settings.public_url)))


def permitted_incident(request: Request, scope: Scope) -> tuple[IncidentKey, Grant | None]:
    """Give the incident that the path names, and the entry of the request's key that allows this to its stream.

    Raises UnknownIncident for a text that is no id, to whom the key allows this on any stream.
    """
    keys, text = service_of(request).keys, request.path_params["incident"]
    try:
        key = read_id(text)
    except ValueError:
        keys.permit(request, scope)
        raise UnknownIncident(text) from None
    return key, keys.permit(request, scope, key.stream)


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
        url=page_of(stream, incident.seq, public_url),
    )


INCIDENT = {"type": "string", "pattern": f"^{ID}$", "examples": ["web-1~17~1800000000000"]}
QUERY: Parameters = {
    "stream": (STREAM, "only those of this stream"),
    "prefix": ({"type": "string", "pattern": f"^{PREFIX}$", "default": ""}, "only of streams named so"),
    "state": ({"type": "string", "enum": list(STATES)}, "only those in this state"),
    "from": (MOMENT, "only those that went on at this time or later"),
    "to": (MOMENT, "only those that began at this time or before"),
    "after": (INCIDENT, "list those that opened before the one of this id"),
    "limit": (whole(*SIZES), "most incidents in the answer"),
}
PATH: Parameters = {"incident": (INCIDENT, "the incident, by its id")}

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
            optional=frozenset({"stream", "state", "from", "to", "after"}),
            answers={200: Answer({JSON: ref("IncidentList")})},
        ),
    ),
    Route(
        "GET",
        "/incidents/{incident}",
        get_incident,
        Operation(
            id="get_incident",
            tag="watching",
            summary="Get one incident",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer({JSON: ref("IncidentAnswer")})},
            problems=("unknown_incident", *OF_STORE),
        ),
    ),
]
