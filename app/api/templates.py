"""/templates: the configs that new streams get, by their ids."""

import re
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, invalid_form, read_small
from app.api.cloning import read_warm_start
from app.api.queries import TEMPLATE, read_query
from app.api.routing import JSON, OF_STORE, Answer, Operation, Route, answer, ref
from app.api.schemas.templates import TemplateAnswer, TemplateList
from app.api.service import Service, service_of
from app.security import Scope
from app.templates import InvalidTemplate, Template, check

NAME: Final = re.compile(TEMPLATE["pattern"].strip("^$"))
NAME_LIMIT: Final = "1 to 64 letters, digits, dots, underscores or hyphens"
ALL: Final = "*"
"""Whoever changes a template changes what the streams of others begin with: that takes a key for all streams."""


async def put_template(request: Request) -> Response:
    """Keep a template."""
    service, name = permitted(request, Scope.ADMIN)
    if not NAME.fullmatch(name):
        raise InvalidTemplate("template", name, NAME_LIMIT)
    template = read_template(checked_tree(await read_small(request)))
    is_new = await service.tasks.shielded(service.templates.put(name, msgspec.json.encode(template)))
    return answer(described(name, template), 201 if is_new else 200)


async def get_template(request: Request) -> Response:
    """Give a template."""
    service, name = permitted(request, Scope.READ)
    return answer(described(name, await service.templates.newest(name)))


async def delete_template(request: Request) -> Response:
    """Delete a template; the streams that were created by it stay as they are."""
    service, name = permitted(request, Scope.ADMIN)
    await service.tasks.shielded(service.templates.delete(name))
    return Response(status_code=204)


async def get_templates(request: Request) -> Response:
    """List templates."""
    service, _ = permitted(request, Scope.READ)
    return answer(TemplateList(await service.templates.names()))


def permitted(request: Request, scope: Scope) -> tuple[Service, str]:
    """Give the template that the path names, if the request's key may do this."""
    service = service_of(request)
    service.keys.permit(request, scope, ALL if scope is Scope.ADMIN else None)
    read_query(request)
    return service, request.path_params.get("template", "")


def read_template(given: Any) -> Template:
    """Read a template. Raises InvalidBody, InvalidStreamId, InvalidTemplate or InvalidConfig."""
    if not isinstance(given, dict):
        raise InvalidBody("body", given, 'an object, such as {"streams": "plant-*", "config": {}}')
    warm = read_warm_start(given.pop("warm_start", None))
    try:
        template = msgspec.structs.replace(msgspec.convert(given, Template), warm_start=warm)
    except msgspec.ValidationError as error:
        raise invalid_form(str(error), given, "", Template.__struct_fields__) from error
    check(template)
    return template


def described(name: str, template: Template) -> TemplateAnswer:
    """Describe a template as an answer does."""
    return TemplateAnswer(**msgspec.structs.asdict(template), template=name)


PATH = {"template": (TEMPLATE, "the template")}
ONE = {JSON: ref("TemplateAnswer")}
ROUTES = [
    Route(
        "GET",
        "/templates",
        get_templates,
        Operation(
            id="list_templates",
            tag="templates",
            summary="List templates",
            scope=Scope.READ,
            answers={200: Answer({JSON: ref("TemplateList")})},
            problems=OF_STORE,
        ),
    ),
    Route(
        "PUT",
        "/templates/{template}",
        put_template,
        Operation(
            id="put_template",
            tag="templates",
            summary="Keep a template",
            description="Needs a key that may administer all streams. Other workers follow within seconds.",
            scope=Scope.ADMIN,
            path=PATH,
            body={JSON: ref("TemplateBody")},
            answers={200: Answer(ONE, "Replaced"), 201: Answer(ONE, "Created")},
            problems=("invalid_template", "invalid_config", "invalid_stream_id", "too_many", *OF_STORE),
        ),
    ),
    Route(
        "GET",
        "/templates/{template}",
        get_template,
        Operation(
            id="get_template",
            tag="templates",
            summary="Get a template",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer(ONE)},
            problems=("unknown_template", *OF_STORE),
        ),
    ),
    Route(
        "DELETE",
        "/templates/{template}",
        delete_template,
        Operation(
            id="delete_template",
            tag="templates",
            summary="Delete a template",
            scope=Scope.ADMIN,
            path=PATH,
            answers={204: Answer()},
            problems=("unknown_template", *OF_STORE),
        ),
    ),
]
