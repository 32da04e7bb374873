"""The sources by name: those that are kept, and the presets."""

import msgspec

from app.sources.mapper import Mapper
from app.sources.presets import PRESETS
from app.sources.source import Source
from app.storage import Store, StoreCorrupt
from app.streams.errors import more_than
from app.streams.open.clock import Clock

FRESH_SECONDS = 5.0
"""So long after a change another worker may still use the source as it was."""


class UnknownSource(LookupError):
    """No such source."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no source {name!r}")
        self.field, self.value, self.limit = "source", name, "a source that exists"


class Sources:
    """Finds sources by name. A preset is a source as long as no other of its name is kept."""

    def __init__(self, store: Store, clock: Clock, most: int) -> None:
        self._store, self._clock, self._most = store, clock, most
        self._mappers: dict[str, tuple[float, Mapper]] = {}

    async def mapper(self, name: str) -> Mapper:
        """Give the mapper of a source. Raises UnknownSource."""
        until, mapper = self._mappers.get(name, (0.0, None))
        if mapper is None or until <= self._clock.monotonic():
            mapper = Mapper(await self.source(name))
            self._mappers[name] = self._clock.monotonic() + FRESH_SECONDS, mapper
        return mapper

    async def source(self, name: str) -> Source:
        """Give a source. Raises UnknownSource."""
        body = await self._store.source(name)
        if body is None:
            if name not in PRESETS:
                self._mappers.pop(name, None)
                raise UnknownSource(name)
            return preset(name)
        try:
            return msgspec.json.decode(body, type=Source)
        except msgspec.DecodeError as error:
            raise StoreCorrupt(None, f"source {name!r} cannot be read: {error}") from error

    async def is_kept(self, name: str) -> bool:
        """Tell whether a source is kept, and so is no preset."""
        return await self._store.source(name) is not None

    async def put(self, name: str, source: Source) -> bool:
        """Keep a source; tell whether it is new. Raises TooMany."""
        names = await self._store.sources()
        if name not in names and len(names) >= self._most:
            raise more_than(self._most, "sources", "ITAN_MAX_SOURCES")
        is_new = await self._store.put_source(name, msgspec.json.encode(source))
        self._mappers.pop(name, None)
        return is_new

    async def delete(self, name: str) -> None:
        """Delete a source; a preset of its name is there again. Raises UnknownSource."""
        self._mappers.pop(name, None)
        if not await self._store.delete_source(name):
            raise UnknownSource(name)

    async def names(self) -> list[str]:
        """List all sources in order, presets too."""
        return sorted({*PRESETS, *await self._store.sources()})


def preset(name: str) -> Source:
    """Give a preset."""
    return msgspec.convert(PRESETS[name], Source)
