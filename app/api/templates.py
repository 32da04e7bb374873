"""/templates: the configs that new streams get, by their ids."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, invalid_form, read_small
from app.api.cloning import read_warm_start
from app.api.documents import ALL, Resource, permitted, refuse_name
from app.api.routing import answer
from app.api.schemas.templates import TemplateAnswer, TemplateList
from app.security import Scope
from app.templates import InvalidTemplate, Template, UnknownTemplate, check

KIND: Final = UnknownTemplate.kind


async def put_template(request: Request) -> Response:
    """Keep a template."""
    service, name = permitted(request, KIND, Scope.ADMIN, ALL)
    refuse_name(KIND, name, InvalidTemplate)
    template = read_template(checked_tree(await read_small(request)))
    is_new = await service.tasks.shielded(service.templates.put(name, msgspec.json.encode(template)))
    return answer(described(name, template), 201 if is_new else 200)


async def get_template(request: Request) -> Response:
    """Give a template."""
    service, name = permitted(request, KIND, Scope.READ)
    return answer(described(name, await service.templates.newest(name)))


async def delete_template(request: Request) -> Response:
    """Delete a template; the streams that were created by it stay as they are."""
    service, name = permitted(request, KIND, Scope.ADMIN, ALL)
    await service.tasks.shielded(service.templates.delete(name))
    return Response(status_code=204)


async def get_templates(request: Request) -> Response:
    """List templates."""
    service, _ = permitted(request, KIND, Scope.READ)
    return answer(TemplateList(await service.templates.names()))


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


ROUTES = Resource(
    kind=KIND,
    noun="template",
    example="plants",
    reading=Scope.READ,
    changing=Scope.ADMIN,
    on_put="Needs a key that may administer all streams. Other workers follow within seconds.",
    refusals=("invalid_config", "invalid_stream_id"),
).routes(list_=get_templates, put=put_template, get=get_template, delete=delete_template)
