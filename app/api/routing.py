"""Routes that FastAPI documents and nothing stands in front of."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

JSON = "application/json"
NDJSON = "application/x-ndjson"
BYTES = "application/octet-stream"
PROBLEM = "application/problem+json"

Parameters = dict[str, tuple[dict[str, Any], str]]
Endpoint = Callable[[Request], Awaitable[Response]]
SCHEMA_REF = "#/components/schemas/{name}"
_ENCODER = msgspec.json.Encoder()


class Route(APIRoute):
    """A route of the OpenAPI document whose endpoint takes the request itself and answers bytes."""

    def __init__(self, method: str, path: str, endpoint: Endpoint, *, summary: str, operation: dict[str, Any]) -> None:
        super().__init__(
            path,
            endpoint,
            methods=[method],
            summary=summary,
            response_model=None,
            status_code=int(next(iter(operation["responses"]))),
            openapi_extra=operation,
            tags=["itan"],
        )
        # FastAPI's handler solves dependencies and encodes answers: there is nothing to solve or to encode here
        self.app = answering(endpoint)


def answering(endpoint: Endpoint) -> ASGIApp:
    """Make an app of an endpoint; what it raises is for the middleware that answers errors."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    return app


def answer(document: object, status: int = 200) -> Response:
    """Answer with a document as JSON."""
    return Response(_ENCODER.encode(document), status, media_type=JSON)


def operation(
    *,
    query: Parameters | None = None,
    path: Parameters | None = None,
    body: dict[str, Any] | None = None,
    answer: dict[str, Any] | None = None,
    status: int = 200,
) -> dict[str, Any]:
    """Describe a route for OpenAPI: parameters as {name: (schema, description)}, contents as {media type: schema}."""
    parameters = [parameter("query", name, *given) for name, given in (query or {}).items()]
    parameters += [parameter("path", name, *given) for name, given in (path or {}).items()]
    described: dict[str, Any] = {"parameters": parameters, "responses": responses(status, answer)}
    if body is not None:
        described["requestBody"] = {"required": True, "content": contents(body)}
    return described


def parameter(place: str, name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Describe one parameter; those without a default are required."""
    required = place == "path" or "default" not in schema
    return {"in": place, "name": name, "required": required, "schema": schema, "description": description}


def responses(status: int, answer: dict[str, Any] | None) -> dict[str, Any]:
    """Describe the answer of a route and its problems."""
    good: dict[str, Any] = {"description": "done"}
    if answer is not None:
        good["content"] = contents(answer)
    problem = {"description": "refused or failed", "content": contents({PROBLEM: ref("Problem")})}
    return {str(status): good, "4XX": problem, "5XX": problem}


def contents(schemas: dict[str, Any]) -> dict[str, Any]:
    """Describe bodies by media type."""
    return {media: {"schema": schema} for media, schema in schemas.items()}


def ref(name: str) -> dict[str, str]:
    """Refer to a schema by the name of its struct."""
    return {"$ref": SCHEMA_REF.format(name=name)}


def components(types: list[type[msgspec.Struct]]) -> dict[str, Any]:
    """Give the schemas of structs, by name."""
    _, schemas = msgspec.json.schema_components(types, ref_template=SCHEMA_REF)
    return schemas
