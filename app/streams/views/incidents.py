"""Incidents of all streams from the index, the newest first."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from urllib.parse import quote

from app.storage import IncidentKey, Store
from app.streams.ids import PATTERN
from app.streams.log.incidents import Incident, State, read_incident

ID = f"{PATTERN}~[0-9]{{1,16}}~[0-9]{{1,16}}"
_ID = re.compile(f"({PATTERN})~([0-9]{{1,16}})~([0-9]{{1,16}})")
MOST_READ, MOST_LISTED = 1_000, 100_000
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which incidents are asked for; None asks for all."""

    is_visible: Callable[[str], bool]
    stream: str | None = None
    prefix: str = ""
    state: State | None = None

    def names(self, stream: str) -> bool:
        """Tell whether incidents of a stream are asked for."""
        is_named = stream == self.stream if self.stream is not None else stream.startswith(self.prefix)
        return is_named and self.is_visible(stream)


@dataclass(frozen=True, slots=True)
class Found:
    """Incidents with their streams, and the id to go on from if there may be more."""

    incidents: list[tuple[str, Incident]]
    next: str | None


def id_of(stream: str, seq: int, opened: int) -> str:
    """Give the id of an incident: no other has it, also after the stream was deleted and created again."""
    return f"{stream}~{seq}~{opened}"


def page_of(stream: str, public_url: str = "") -> str:
    """Give the address of a stream's live page; without a public URL as seen from the service's own pages."""
    return f"{public_url.rstrip('/')}/#/streams/{quote(stream)}"


def read_id(text: str) -> IncidentKey:
    """Read the id of an incident. Raises ValueError for any other text."""
    parts = _ID.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    return IncidentKey(int(parts[3]), parts[1], int(parts[2]))


async def find(store: Store, wanted: Wanted, before: IncidentKey | None, limit: int) -> Found:
    """Give up to `limit` incidents from before a place on; read no more than MOST_READ.

    Where to go on is always a place that is asked for: others are not to be told.
    """
    found: list[tuple[str, Incident]] = []
    n_read = 0
    async for key in places(store, wanted, before):
        incident = await read(store, key)
        n_read += 1
        if incident is not None and wanted.state in (None, incident.state):
            found.append((key.stream, incident))
        if len(found) == limit or n_read == MOST_READ:
            return Found(found, id_of(key.stream, key.seq, key.opened))
    return Found(found, None)


async def places(store: Store, wanted: Wanted, before: IncidentKey | None) -> AsyncIterator[IncidentKey]:
    """Give the places that are asked for, among the next MOST_LISTED of all streams or all of one stream."""
    if wanted.stream is not None:
        rows = await store.incidents(wanted.stream) if wanted.names(wanted.stream) else []
        keys = sorted((IncidentKey(row.opened, wanted.stream, row.seq) for row in rows), reverse=True)
        for key in keys:
            if before is None or key < before:
                yield key
        return
    for _ in range(0, MOST_LISTED, PAGE):
        keys = await store.newest_incidents(before, PAGE)
        for key in keys:
            if wanted.names(key.stream):
                yield key
        if len(keys) < PAGE:
            return
        before = keys[-1]


async def read(store: Store, key: IncidentKey) -> Incident | None:
    """Read an incident; None if it is gone, or another one has its place."""
    row = (await store.find_incidents(key.stream, [key.seq])).get(key.seq)
    return read_incident(row) if row is not None and row.opened == key.opened else None
