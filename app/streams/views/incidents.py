"""Incidents of all streams from the index, the newest first."""

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from app.storage import IncidentKey, Store
from app.streams.log.incident_ids import id_of, incident_in
from app.streams.log.incidents import Incident, State
from app.streams.log.span import ALWAYS, Span

MOST_READ, MOST_LISTED = 1_000, 100_000
PAGE = 1_000
READ_TOGETHER = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which incidents are asked for; None asks for all."""

    is_visible: Callable[[str], bool]
    stream: str | None = None
    prefix: str = ""
    state: State | None = None
    span: Span = ALWAYS

    @property
    def is_rare(self) -> bool:
        """Tell whether only some of the incidents of these streams are asked for."""
        return self.state is not None or self.span != ALWAYS

    def takes(self, incident: Incident) -> bool:
        """Tell whether an incident of these streams is asked for."""
        return self.state in (None, incident.state) and self.span.overlaps(*times_of(incident))

    def names(self, stream: str) -> bool:
        """Tell whether incidents of a stream are asked for."""
        is_named = stream == self.stream if self.stream is not None else stream.startswith(self.prefix)
        return is_named and self.is_visible(stream)


@dataclass(frozen=True, slots=True)
class Found:
    """Incidents with their streams, and the id to go on from if there may be more."""

    incidents: list[tuple[str, Incident]]
    next: str | None


def page_of(stream: str, seq: int, public_url: str = "") -> str:
    """Give the address of an incident on the live page; without a public URL as seen from the service's own pages.

    `incident` is the seq of the opening sample, which the page selects.
    """
    return f"{public_url.rstrip('/')}/#/streams/{quote(stream)}?incident={seq}"


def times_of(incident: Incident) -> tuple[float, float]:
    """Give when an incident began, and when its newest flagged sample was; one that goes on has no end yet."""
    return incident.begin, math.inf if incident.ended_at is None else incident.last_time


async def find(store: Store, wanted: Wanted, before: IncidentKey | None, limit: int) -> Found:
    """Give up to `limit` incidents from before a place on; read no more than MOST_READ.

    Where to go on is always a place that is asked for: others are not to be told.
    """
    found: list[tuple[str, Incident]] = []
    n_read = 0
    async for keys in places(store, wanted, before, READ_TOGETHER if wanted.is_rare else limit):
        for key, incident in zip(keys, await read(store, keys), strict=True):
            n_read += 1
            if incident is not None and wanted.takes(incident):
                found.append((key.stream, incident))
            if len(found) == limit or n_read == MOST_READ:
                return Found(found, id_of(key.stream, key.seq, key.opened))
    return Found(found, None)


async def places(
    store: Store, wanted: Wanted, before: IncidentKey | None, size: int
) -> AsyncIterator[Sequence[IncidentKey]]:
    """Give the places that are asked for, so many at a time, among the next MOST_LISTED of all streams, or of one."""
    if wanted.stream is not None:
        rows = await store.incidents(wanted.stream) if wanted.names(wanted.stream) else []
        keys = sorted((IncidentKey(row.opened, wanted.stream, row.seq) for row in rows), reverse=True)
        for part in parts([key for key in keys if before is None or key < before], size):
            yield part
        return
    for _ in range(0, MOST_LISTED, PAGE):
        keys = await store.newest_incidents(before, PAGE)
        for part in parts([key for key in keys if wanted.names(key.stream)], size):
            yield part
        if len(keys) < PAGE:
            return
        before = keys[-1]


def parts(keys: Sequence[IncidentKey], size: int) -> Iterator[Sequence[IncidentKey]]:
    """Cut places into parts of so many."""
    return (keys[start : start + size] for start in range(0, len(keys), size))


async def read(store: Store, keys: Sequence[IncidentKey]) -> list[Incident | None]:
    """Read incidents, those of one stream together; None for each that is gone, or whose place another one has."""
    seqs: defaultdict[str, list[int]] = defaultdict(list)
    for key in keys:
        seqs[key.stream].append(key.seq)
    rows = await asyncio.gather(*(store.find_incidents(stream, of_it) for stream, of_it in seqs.items()))
    by_stream = dict(zip(seqs, rows, strict=True))
    return [incident_in(by_stream[key.stream], key) for key in keys]
