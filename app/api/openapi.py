"""The OpenAPI document, made of what the routes, the bodies and the table of problems say of themselves."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from app.api.examples import EXAMPLES
from app.api.problems import HTTP_CODES, TABLE
from app.api.queries import STREAM
from app.api.routing import OF_STORE, PROBLEM, SCHEMA_REF, Answer, Contents, Operation, Parameters, Route, ref
from app.api.schemas.documented import DOCUMENTED
from app.security import COOKIE, CSRF_HEADER, Scope
from app.streams.open.models import MOST_SAMPLES
from core import AFFINE_SCHEMA, CALENDAR_SCHEMA, FEATURE_SCHEMA, changes_schema, config_schema

PROBLEMS = {code: (status, title) for status, code, title in TABLE.values()} | {
    code: (status, HTTPStatus(status).phrase) for status, code in HTTP_CODES.items()
}
WITHOUT_ROUTE = (
    *("invalid_http", "head_too_large", "method_not_allowed"),
    *("too_slow", "too_many_connections", "too_many_bodies"),
)
TAGS = {
    "samples": "Send samples, which are scored and learned; send labels later.",
    "density": "The learned density.",
    "sources": "How the records of agents become samples.",
    "rules": "Who is told of incidents.",
    "templates": "The configs that new streams get.",
    "windows": "When samples are scored, but neither learned nor told.",
    "streams": "Create, inspect, list, reset, delete, export and import streams.",
    "watching": "Past and present samples of a stream.",
    "session": "Signing in to the live page.",
    "health": "Probes and metrics.",
    "page": "The live page and this document.",
}
CHANGING = {Scope.OBSERVE, Scope.LABEL, Scope.ADMIN}
A_KEY = "A key of ITAN_API_KEYS, or of the file that ITAN_API_KEYS_FILE names"
SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": A_KEY},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": A_KEY},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": f"The cookie of POST /session; changes also need the {CSRF_HEADER} of GET /session",
    },
}
REQUEST_ID = ({"type": "string"}, "the X-Request-ID of the request if it is valid, else a new one; log lines hold it")
RETRY_AFTER = ({"type": "integer", "minimum": 1}, "seconds to wait before the next try")
CHALLENGE = ({"type": "string"}, "how to send a key")
HEADERS_OF_STATUS: dict[int, Parameters] = {
    401: {"WWW-Authenticate": CHALLENGE},
    429: {"Retry-After": RETRY_AFTER},
    503: {"Retry-After": RETRY_AFTER},
}


def document(routes: Iterable[Route], version: str, *, keys_required: bool) -> dict[str, Any]:
    """Describe the interface; where no key is asked for, sending none is one way more."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route.operation, keys_required=keys_required)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "itan",
            "version": version,
            "summary": "Streaming anomaly detection that learns from late labels",
            "description": "Any request may also be refused before it reaches its route: "
            + ", ".join(WITHOUT_ROUTE)
            + ".",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": SECURITY,
            "schemas": schemas(),
            "headers": {"X-Request-Id": header(*REQUEST_ID)},
            "examples": {code: problem_example(code) for code in PROBLEMS},
        },
    }


def operation(described: Operation, *, keys_required: bool) -> dict[str, Any]:
    """Describe one method of a path."""
    found: dict[str, Any] = {
        "operationId": described.id,
        "tags": [described.tag],
        "summary": described.summary,
        "security": security(described, keys_required=keys_required),
        "parameters": parameters(described),
        "responses": responses(described),
    }
    if described.description:
        found["description"] = described.description
    if described.body:
        found["requestBody"] = {"required": True, "content": contents(described.body)}
    return found


def security(described: Operation, *, keys_required: bool) -> list[dict[str, list[str]]]:
    """Name the ways to show a key, each with the scope that the key must have."""
    if described.scope is None:
        return []
    ways = [{name: [described.scope.value]} for name in SECURITY]
    return ways if keys_required and described.with_key else [*ways, {}]


def parameters(described: Operation) -> list[dict[str, Any]]:
    """Describe the parameters, wherever they stand."""
    places = {"path": described.path, "query": described.query, "header": described.headers}
    return [
        {
            "in": place,
            "name": name,
            "required": place == "path" or (place == "query" and is_required(described, name, schema)),
            "schema": dict(schema),
            "description": text,
        }
        | ({"example": schema["examples"][0]} if "examples" in schema else {})
        for place, given in places.items()
        for name, (schema, text) in given.items()
    ]


def is_required(described: Operation, name: str, schema: Mapping[str, Any]) -> bool:
    """Tell whether a parameter must be given."""
    return "default" not in schema and name not in described.optional


def responses(described: Operation) -> dict[str, Any]:
    """Describe the answers of a route, then its problems, by status."""
    by_status: dict[int, list[str]] = {}
    for code in sorted(problem_codes(described)):
        by_status.setdefault(PROBLEMS[code][0], []).append(code)
    found = {
        status: response(answer, HEADERS_OF_STATUS.get(status, {})) for status, answer in described.answers.items()
    }
    for status, codes in by_status.items():
        refused = problem_response(status, codes)
        if status in found:
            found[status]["content"] |= refused["content"]
        else:
            found[status] = refused
    return {str(status): found[status] for status in sorted(found)}


def problem_codes(described: Operation) -> set[str]:
    """Give the codes that a route may answer: its own, and those that follow from what it takes."""
    codes = {"internal_error", *described.problems}
    if described.reads_query:
        codes |= {"invalid_query"}
    if described.scope is not None:
        codes |= {"unauthenticated", "forbidden", "unknown_host", "rate_limited"}
    if described.scope in CHANGING:
        codes |= {"cross_site", "csrf_token_needed"}
    if described.body:
        codes |= {"body_too_large", "unsupported_media_type", "invalid_body"}
        codes |= {"invalid_json"} if any("json" in media for media in described.body) else set()
    if "stream" in {*described.path, *described.query}:
        codes |= {"invalid_stream_id", *OF_STORE}
        codes |= {"stream_moved", "stream_elsewhere"} if described.scope in CHANGING else set()
    return codes


def response(answer: Answer, more: Parameters) -> dict[str, Any]:
    """Describe one answer."""
    named = {name: header(*given) for name, given in {**answer.headers, **more}.items()}
    found: dict[str, Any] = {"description": answer.description, "headers": named | shared_headers()}
    if answer.contents:
        found["content"] = contents(answer.contents)
    return found


def problem_response(status: int, codes: list[str]) -> dict[str, Any]:
    """Describe the problems of one status; the keys of the examples are their codes."""
    said = f"{HTTPStatus(status).phrase}: {', '.join(codes)}"
    described = response(Answer(description=said), HEADERS_OF_STATUS.get(status, {}))
    examples = {code: {"$ref": f"#/components/examples/{code}"} for code in codes}
    described["content"] = {PROBLEM: {"schema": ref("Problem"), "examples": examples}}
    return described


def problem_example(code: str) -> dict[str, Any]:
    """Show a problem as it is answered at the least."""
    status, title = PROBLEMS[code]
    value = {"type": f"urn:itan:{code}", "title": title, "status": status, "detail": title, "code": code}
    return {"summary": title, "value": value}


def header(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Describe a header."""
    return {"schema": dict(schema), "description": text}


def shared_headers() -> dict[str, Any]:
    """Name the headers of every answer."""
    return {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}


def contents(given: Contents) -> dict[str, Any]:
    """Describe a body by its media types, each with its schema's first example."""
    return {media: content(schema) for media, schema in given.items()}


def content(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a body of one media type."""
    name = schema.get("$ref", "").rpartition("/")[2]
    examples = [EXAMPLES[name]] if name else schema.get("examples", [])
    return {"schema": dict(schema)} | ({"example": examples[0]} if examples else {})


def new_stream_schema(config: dict[str, Any]) -> dict[str, Any]:
    """Describe the body that creates a stream: a config, and perhaps a stream to begin with the model of."""
    warm = {
        "type": "object",
        "description": "begin with the model of a stream, which counts as so many samples",
        "properties": {"from": dict(STREAM), "samples": {"type": "integer", "minimum": 1, "maximum": MOST_SAMPLES}},
        "required": ["from", "samples"],
        "additionalProperties": False,
    }
    return config | {"properties": config["properties"] | {"warm_start": {"anyOf": [warm, {"type": "null"}]}}}


def schemas() -> dict[str, Any]:
    """Give the schemas of all bodies, by name."""
    _, found = msgspec.json.schema_components(DOCUMENTED, ref_template=SCHEMA_REF)
    found["LabelBody"] |= {"if": {"not": {"required": ["id"]}}, "then": {"required": ["seq"]}}
    found |= {"Feature": FEATURE_SCHEMA, "AffineScaling": AFFINE_SCHEMA, "Calendar": CALENDAR_SCHEMA}
    named = ref("Feature"), ref("AffineScaling"), ref("Calendar")
    found |= {"StreamConfig": config_schema(*named), "StreamChanges": changes_schema(*named)}
    found["NewStream"] = new_stream_schema(config_schema(*named))
    return dict(sorted(found.items()))
