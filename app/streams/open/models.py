"""The models that new streams begin with."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from app.storage import StoreError
from app.streams.errors import UnknownStream
from app.streams.open.clock import Clock
from app.streams.state.state import StreamState
from core import Detector

MOST_SAMPLES: Final = 10**9
FRESH_SECONDS: Final = 5.0
"""So long after a change another stream may still begin with the model as it was."""


class WarmStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """The stream whose model a new one begins with, and as how many samples this model counts."""

    source: str
    samples: Annotated[int, Meta(ge=1, le=MOST_SAMPLES)]


class Defaults(msgspec.Struct, frozen=True):
    """What a new stream gets unless it is given something else: fields of its config, and a model."""

    config: Mapping[str, Any] = {}
    warm_start: WarmStart | None = None


class Models:
    """Keeps the models of streams for a few seconds: many streams may begin at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[Detector | Exception, float]] = {}
        self._loading = asyncio.Lock()

    async def find(self, stream: str, load: Callable[[], Awaitable[StreamState | None]]) -> Detector:
        """Give the detector of a stream as it was at most FRESH_SECONDS ago; to be read only. Raises UnknownStream.

        What the store refuses is kept as long: a store that hangs takes seconds to fail.
        """
        async with self._loading:
            now = self._clock.monotonic()
            self._kept = {name: kept for name, kept in self._kept.items() if now < kept[1]}
            if stream not in self._kept:
                found = await _loaded(stream, load)
                self._kept[stream] = found, self._clock.monotonic() + FRESH_SECONDS
            found, _ = self._kept[stream]
        if isinstance(found, Exception):
            raise found
        return found


async def _loaded(stream: str, load: Callable[[], Awaitable[StreamState | None]]) -> Detector | Exception:
    try:
        state = await load()
    except StoreError as error:
        return error
    return UnknownStream(stream) if state is None else state.detector
