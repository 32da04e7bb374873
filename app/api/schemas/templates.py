"""Templates: the configs that new streams get."""

import msgspec

from app.templates import Template


class TemplateBody(Template, frozen=True, kw_only=True):
    """A template."""


class TemplateAnswer(Template, frozen=True, kw_only=True):
    """A template and its name."""

    template: str


class TemplateList(msgspec.Struct):
    """The names of all templates in order."""

    templates: list[str]
