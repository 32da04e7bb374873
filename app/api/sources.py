"""/sources: how the records of agents become samples."""

import re
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, choices_of, invalid_form, read_small
from app.api.queries import SOURCE, read_query
from app.api.routing import JSON, OF_STORE, Answer, Operation, Route, answer, ref
from app.api.schemas.sources import SourceAnswer, SourceList
from app.api.service import Service, service_of
from app.security import Scope
from app.sources.presets import PRESETS
from app.sources.source import InvalidSource, Source, check

NAME: Final = re.compile(SOURCE["pattern"].strip("^$"))
NAME_LIMIT: Final = "1 to 64 letters, digits, dots, underscores or hyphens"
ALL: Final = "*"
"""Whoever changes a source changes what becomes of the records of others: that takes a key for all streams."""


async def put_source(request: Request) -> Response:
    """Keep a source."""
    service, name = service_of(request), request.path_params["source"]
    service.keys.permit(request, Scope.ADMIN, ALL)
    read_query(request)
    if not NAME.fullmatch(name):
        raise InvalidSource("source", name, NAME_LIMIT)
    source = read_source(checked_tree(await read_small(request)))
    is_new = await service.tasks.shielded(service.sources.put(name, msgspec.json.encode(source)))
    return answer(described(name, source, is_preset=False), 201 if is_new else 200)


def read_source(given: Any) -> Source:
    """Read a source, or what differs from a preset. Raises InvalidBody, InvalidSource or InvalidConfig."""
    if not isinstance(given, dict):
        raise InvalidBody("body", given, 'an object, such as {"preset": "telegraf"}')
    fields = dict(given)
    preset = fields.pop("preset", None)
    if preset is not None and not (isinstance(preset, str) and preset in PRESETS):
        raise InvalidSource("preset", preset, f"one of {', '.join(PRESETS)}")
    merged = (PRESETS[preset] if preset else {}) | fields
    try:
        source = msgspec.convert(merged, Source)
    except msgspec.ValidationError as error:
        raise invalid_form(str(error), merged, "", ("preset", *Source.__struct_fields__), choices_of(Source)) from error
    check(source)
    return source


async def get_source(request: Request) -> Response:
    """Give a source."""
    service, name = service_of(request), request.path_params["source"]
    service.keys.permit(request, Scope.READ)
    read_query(request)
    return answer(await find(service, name))


async def find(service: Service, name: str) -> SourceAnswer:
    """Describe a source."""
    mapper = await service.sources.newest(name)
    return described(name, mapper.source, is_preset=not await service.sources.is_kept(name))


def described(name: str, source: Source, *, is_preset: bool) -> SourceAnswer:
    """Describe a source as an answer does."""
    fields = {field: getattr(source, field) for field in Source.__struct_fields__}
    return SourceAnswer(**fields, source=name, is_preset=is_preset)


async def delete_source(request: Request) -> Response:
    """Delete a source; if a preset has its name, that is there again."""
    service, name = service_of(request), request.path_params["source"]
    service.keys.permit(request, Scope.ADMIN, ALL)
    read_query(request)
    await service.tasks.shielded(service.sources.delete(name))
    return Response(status_code=204)


async def get_sources(request: Request) -> Response:
    """List sources."""
    service = service_of(request)
    service.keys.permit(request, Scope.READ)
    read_query(request)
    return answer(SourceList(await service.sources.names()))


PATH = {"source": (SOURCE, "the source")}
ONE = {JSON: ref("SourceAnswer")}
ROUTES = [
    Route(
        "GET",
        "/sources",
        get_sources,
        Operation(
            id="list_sources",
            tag="sources",
            summary="List sources",
            scope=Scope.READ,
            answers={200: Answer({JSON: ref("SourceList")})},
            problems=OF_STORE,
        ),
    ),
    Route(
        "PUT",
        "/sources/{source}",
        put_source,
        Operation(
            id="put_source",
            tag="sources",
            summary="Keep a source",
            description="Needs a key that may administer all streams. Other workers follow within seconds.",
            scope=Scope.ADMIN,
            path=PATH,
            body={JSON: ref("SourceBody")},
            answers={200: Answer(ONE, "Replaced"), 201: Answer(ONE, "Created")},
            problems=("invalid_source", "invalid_config", "too_many", *OF_STORE),
        ),
    ),
    Route(
        "GET",
        "/sources/{source}",
        get_source,
        Operation(
            id="get_source",
            tag="sources",
            summary="Get a source",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer(ONE)},
            problems=("unknown_source", *OF_STORE),
        ),
    ),
    Route(
        "DELETE",
        "/sources/{source}",
        delete_source,
        Operation(
            id="delete_source",
            tag="sources",
            summary="Delete a source",
            scope=Scope.ADMIN,
            path=PATH,
            answers={204: Answer()},
            problems=("unknown_source", *OF_STORE),
        ),
    ),
]
