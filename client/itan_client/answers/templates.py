"""Templates: the configs that new streams get."""

from typing import Any

import msgspec


class Template(msgspec.Struct, frozen=True):
    """A template: the config of new streams whose ids fit, and the model that they begin with."""

    template: str
    streams: str
    config: dict[str, Any]
    warm_start: dict[str, Any] | None


class TemplateNames(msgspec.Struct, frozen=True):
    """The names of all templates in order."""

    templates: list[str]
