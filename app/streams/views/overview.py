"""Streams in short, as answers have them: from memory if they are open here, else by their summaries in the store."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from app.storage import Silence, Store, StoreError
from app.streams.open.registry import Registry
from app.streams.open.summary import Standing, Summary, read_summary
from app.streams.open.worker import Worker
from app.streams.views.fleet import described

MOST_READ: Final = 20
"""Streams without a summary that one request reads: each takes some milliseconds."""


class Overview(Standing, frozen=True, kw_only=True):
    """A stream in short; one that is known to be damaged is not readable. flags_by_hour ends with the present hour."""

    silent_seconds: float | None = None
    flagged_lately: int | None = None
    flags_by_hour: list[int] | None = None


async def overviews(registry: Registry, store: Store, streams: Sequence[str]) -> list[Overview]:
    """Describe streams without opening one; leave out those that are found to be gone."""
    here = {stream: summary for stream in streams if (summary := registry.summary(stream)) is not None}
    stored = await store.find_summaries([stream for stream in streams if stream not in here])
    known = {stream: read_summary(stream, body) for stream, body in stored.items()} | here
    damaged, now = registry.worker.health.damaged, registry.worker.clock.now()
    unknown = [stream for stream in streams if not known.get(stream, NOTHING).is_told]
    known |= await read_missing(registry.worker, unknown, now)
    silences = await store.silences(streams)
    return [
        shown(Summary(stream=stream, readable=False) if stream in damaged else known[stream], silences, now)
        for stream in streams
        if stream in known
    ]


NOTHING: Final = Summary(stream="")


async def read_missing(worker: Worker, streams: Sequence[str], now: float) -> dict[str, Summary]:
    """Describe streams that have no summary: a few by what is stored of them, and the others by name alone."""
    found = {stream: Summary(stream=stream) for stream in streams[MOST_READ:]}
    rows = await described(worker, streams[:MOST_READ], now)
    with suppress(StoreError):  # it is made again
        await worker.store.put_summaries(rows)
    return found | {row.stream: read_summary(row.stream, row.body) for row in rows}


def shown(summary: Summary, silences: Mapping[str, Silence], now: float) -> Overview:
    """Give a summary as answers have it."""
    silence, flags = silences.get(summary.stream), summary.flags_by_hour(now)
    return Overview(
        **{name: getattr(summary, name) for name in Standing.__struct_fields__},
        silent_seconds=None if silence is None else silence.seconds,
        flagged_lately=None if flags is None else sum(flags),
        flags_by_hour=flags,
    )
