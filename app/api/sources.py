"""/sources: how the records of agents become samples."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, choices_of, invalid_form, read_small
from app.api.documents import ALL, Resource, permitted, refuse_name
from app.api.routing import answer
from app.api.schemas.sources import SourceAnswer, SourceList
from app.api.service import Service
from app.security import Scope
from app.sources.catalog import UnknownSource
from app.sources.presets import PRESETS
from app.sources.source import InvalidSource, Source, check

KIND: Final = UnknownSource.kind


async def put_source(request: Request) -> Response:
    """Keep a source."""
    service, name = permitted(request, KIND, Scope.ADMIN, ALL)
    refuse_name(KIND, name, InvalidSource)
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
    service, name = permitted(request, KIND, Scope.READ)
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
    service, name = permitted(request, KIND, Scope.ADMIN, ALL)
    await service.tasks.shielded(service.sources.delete(name))
    return Response(status_code=204)


async def get_sources(request: Request) -> Response:
    """List sources."""
    service, _ = permitted(request, KIND, Scope.READ)
    return answer(SourceList(await service.sources.names()))


ROUTES = Resource(
    kind=KIND,
    noun="source",
    example="telegraf",
    reading=Scope.READ,
    changing=Scope.ADMIN,
    on_put="Needs a key that may administer all streams. Other workers follow within seconds.",
    refusals=("invalid_config",),
).routes(list_=get_sources, put=put_source, get=get_source, delete=delete_source)
