"""Routes: what answers a request, and what the OpenAPI document says of it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette import routing
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.admission import admit
from app.api.service import service_of
from app.security import Scope as KeyScope
from app.streams.errors import Stopping

JSON = "application/json"
NDJSON = "application/x-ndjson"
TEXT = "text/plain"
PROTOBUF = "application/x-protobuf"
BYTES = "application/octet-stream"
PROBLEM = "application/problem+json"
FILE = {BYTES: {"type": "string", "format": "binary"}}
OF_STORE = ("store_unavailable", "store_corrupt", "replay_mismatch", "stopping")
"""Problem codes of every route that uses the store."""

Schema = Mapping[str, Any]
Contents = Mapping[str, Schema]
"""Schemas of a body by its media types."""
Parameters = Mapping[str, tuple[Schema, str]]
"""Schemas and descriptions of parameters by their names."""
Endpoint = Callable[[Request], Awaitable[Response]]
SCHEMA_REF = "#/components/schemas/{name}"
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a route answers with one status."""

    contents: Contents = field(default_factory=dict)
    description: str = "Done"
    headers: Parameters = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What the OpenAPI document says of a route.

    `scope` is what a key must allow (None: no key is asked for); with_key tells whether there must be one. `problems`
    are codes beyond those that follow from the scope, the body and the stream. A query parameter is required unless it
    has a default or is `optional`.
    """

    id: str
    tag: str
    summary: str
    answers: Mapping[int, Answer]
    scope: KeyScope | None = None
    with_key: bool = True
    query: Parameters = field(default_factory=dict)
    path: Parameters = field(default_factory=dict)
    headers: Parameters = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    body: Contents = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    description: str = ""
    reads_query: bool = True


class Route(routing.Route):
    """A route whose endpoint takes the request itself and answers bytes, to GET and to HEAD."""

    def __init__(self, method: str, path: str, endpoint: Endpoint, operation: Operation) -> None:
        super().__init__(path, endpoint, methods=[method])
        self.method = method
        self.operation = operation
        self.app = answering(endpoint if operation.scope is None else admitted(endpoint))

    def matches(self, scope: Scope) -> tuple[routing.Match, Scope]:
        """Put the matched route into the scope, for metrics and log."""
        match, found = super().matches(scope)
        found["route"] = self
        return match, found


def answering(endpoint: Endpoint) -> ASGIApp:
    """Make an ASGI app of an endpoint; the middleware answers what it raises."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            response = await endpoint(request)
        except asyncio.CancelledError as error:
            # the shutdown time is over, and the server would answer 500
            if service_of(request).is_stopping:
                raise Stopping from error
            raise
        await response(scope, receive, without_body(send) if scope["method"] == "HEAD" else send)

    return app


def admitted(endpoint: Endpoint) -> Endpoint:
    """Charge the key's request quota before the endpoint runs."""

    async def counted(request: Request) -> Response:
        await admit(request)
        return await endpoint(request)

    return counted


def without_body(send: Send) -> Send:
    """Send the same status and headers, without the body."""

    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


def allowed(routes: Iterable[routing.BaseRoute], scope: Scope) -> list[str]:
    """Give all methods that the routes of a request's path take."""
    found = [
        route for route in routes if isinstance(route, Route) and route.matches(scope)[0] is not routing.Match.NONE
    ]
    return sorted({method for route in found for method in route.methods or ()})


def answer(document: object, status: int = 200) -> Response:
    """Answer with a document as JSON."""
    return Response(_ENCODER.encode(document), status, media_type=JSON)


def ref(name: str) -> dict[str, str]:
    """Refer to a schema by the name of its struct."""
    return {"$ref": SCHEMA_REF.format(name=name)}
