"""Templates: the configs that new streams get, by their ids."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from app import patterns
from app.documents import Documents, UnknownDocument
from app.storage import DocumentKind, Store
from app.streams.errors import Refused
from app.streams.open.clock import Clock
from app.streams.open.models import Defaults, WarmStart
from core import DetectorConfig

OF_SAMPLES: Final = ("features", "n_features")
"""Fields that the first samples of a stream give, or whoever creates it."""


class InvalidTemplate(Refused):
    """A template that cannot be used."""


class UnknownTemplate(UnknownDocument):
    """No such template."""

    kind = DocumentKind.TEMPLATE


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The config of new streams with these ids, but for their features, and the model that they begin with."""

    streams: Annotated[str, Meta(max_length=129, description="a stream id, or a prefix and *")]
    config: Annotated[dict[str, Any], Meta(description="fields that a new stream gets unless it is given others")] = {}
    warm_start: Annotated[WarmStart | None, Meta(description="the model that a new stream begins with")] = None

    def covers(self, stream: str) -> bool:
        """Tell whether a new stream of this id gets the config."""
        return patterns.fits(self.streams, stream)

    @property
    def rank(self) -> tuple[int, bool]:
        """Order templates by how specific they are: the longer prefix wins, and at the same length the id alone."""
        return len(self.streams.removesuffix("*")), not self.streams.endswith("*")


Templates = Documents[Template]


def templates_in(store: Store, clock: Clock, most: int) -> Templates:
    """Give the templates of a store."""
    return Templates(store, clock, most, UnknownTemplate, read_template)


def read_template(body: bytes) -> Template:
    """Give a template that is kept."""
    return msgspec.json.decode(body, type=Template)


def check(template: Template) -> None:
    """Raise InvalidTemplate or InvalidConfig for a template that cannot be used."""
    if not patterns.PATTERN.fullmatch(template.streams):
        raise InvalidTemplate("streams", template.streams, patterns.WANTED)
    for field in OF_SAMPLES:
        if field in template.config:
            raise InvalidTemplate(f"config.{field}", template.config[field], "left out: each stream has its own")
    DetectorConfig.from_dict({**template.config, "n_features": 1})


async def defaults_of(templates: Templates, stream: str) -> Defaults:
    """Give what the most specific template has for a new stream; of two alike, the first by name."""
    covering = [template for template in (await templates.all()).values() if template.covers(stream)]
    if not covering:
        return Defaults()
    template = max(covering, key=lambda template: template.rank)
    return Defaults(template.config, template.warm_start)
