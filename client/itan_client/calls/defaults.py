"""Templates: the configs that new streams get."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from itan_client.answers.templates import Template, TemplateNames
from itan_client.request import JSON, Request, encode, nothing


def templates() -> Request[list[str]]:
    """List the names of all templates."""
    return Request("GET", "/templates", lambda content: _NAMES(content).templates)


def get_template(template: str) -> Request[Template]:
    """Get a template."""
    return Request("GET", _path(template), _TEMPLATE)


def put_template(template: str, fields: Mapping[str, Any]) -> Request[Template]:
    """Create or replace a template, such as {"streams": "plant-*", "config": {"labels_trusted": True}}."""
    return Request("PUT", _path(template), _TEMPLATE, {}, encode(fields), JSON)


def delete_template(template: str) -> Request[None]:
    """Delete a template; the streams that were created by it stay as they are."""
    return Request("DELETE", _path(template), nothing, repeatable=False)


def _path(template: str) -> str:
    return f"/templates/{quote(template, safe='')}"


_TEMPLATE = msgspec.json.Decoder(Template).decode
_NAMES = msgspec.json.Decoder(TemplateNames).decode
