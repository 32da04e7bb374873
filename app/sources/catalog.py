"""The sources by name: those that are kept, and the presets."""

import msgspec

from app.documents import Documents, UnknownDocument
from app.sources.mapper import Mapper
from app.sources.presets import PRESETS
from app.sources.source import Source
from app.storage import DocumentKind, Store
from app.streams.open.clock import Clock

Sources = Documents[Mapper]


class UnknownSource(UnknownDocument):
    """No such source."""

    kind = DocumentKind.SOURCE


def sources_in(store: Store, clock: Clock, most: int) -> Sources:
    """Give the sources of a store."""
    presets = {name: msgspec.json.encode(fields) for name, fields in PRESETS.items()}
    return Sources(store, clock, most, UnknownSource, read_mapper, presets)


def read_mapper(body: bytes) -> Mapper:
    """Give the mapper of a source that is kept."""
    return Mapper(msgspec.json.decode(body, type=Source))
