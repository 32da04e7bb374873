"""Maintenance windows."""

from typing import Annotated

import msgspec
from msgspec import Meta

from app.api.schemas.types import Moment
from app.windows import Window


class WindowBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"begin": "from", "end": "to"}):
    """A maintenance window; it ends at most 366 days after its beginning."""

    streams: Annotated[str, Meta(max_length=129, description="a stream, or a prefix and *")]
    begin: Moment
    end: Annotated[Moment, Meta(description="a sample of this time lies outside")]
    reason: Annotated[str, Meta(max_length=500, description="for people")] = ""


class WindowAnswer(Window, frozen=True, kw_only=True):
    """A maintenance window and its name; times are in epoch seconds."""

    window: str


class WindowList(msgspec.Struct):
    """All windows whose streams a key may read, in order of their names."""

    windows: list[WindowAnswer]
