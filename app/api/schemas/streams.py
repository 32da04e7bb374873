"""How streams are configured and how they stand."""

from typing import Annotated

import msgspec
from msgspec import Meta

from app.api.schemas.samples import Costs
from app.api.schemas.types import AsOfSeq
from app.streams.state.integrity import Mismatches, Rebuilt
from app.streams.views.overview import Overview
from app.streams.views.totals import Totals


class StreamConfig(msgspec.Struct):
    """The fields of a stream's config; core judges them and says what they may hold."""


class Storage(msgspec.Struct):
    """What the store holds of a stream."""

    log_entries: int
    log_bytes: int
    snapshot_bytes: int


class StreamDescription(msgspec.Struct):
    """The config and the state of a stream."""

    stream: str
    config: StreamConfig
    n_seen: int
    next_seq: int
    as_of_seq: AsOfSeq
    oldest_seq: int
    newest_timestamp: float | None
    in_maintenance: Annotated[bool, Meta(description="whether a sample that comes now lies in a maintenance window")]
    ready: bool
    samples_needed: int
    threshold: float | None
    incident: Annotated[int | None, Meta(description="the incident that is open now, by the seq of its first sample")]
    incidents: Annotated[int, Meta(description="incidents opened so far")]
    costs: Costs
    replay_mismatches: Mismatches
    rebuilt: Annotated[Rebuilt | None, Meta(description="how it was rebuilt, until somebody accepts it")]
    snapshot_failure: Annotated[str | None, Meta(description="why its state cannot be stored; its log is complete")]
    memory_bytes: Annotated[int, Meta(description="memory that the stream takes while it is open")]
    storage: Annotated[Storage | None, Meta(description="null while the store is down")]


class StreamEstimate(msgspec.Struct):
    """The most that a stream takes, once everything that its config bounds is full; client ids add to the log."""

    memory_bytes: int
    snapshot_bytes: int
    log_bytes_per_sample: Annotated[int, Meta(description="if each sample is sent alone")]
    streams_in_budget: Annotated[int, Meta(description="how many such streams fit into ITAN_MEMORY_BUDGET_MB")]


class StreamPage(msgspec.Struct):
    """Streams in the order asked for, without details just their ids; `next` goes into `after` of the next request."""

    streams: list[Overview]
    next: str | None


class FleetAnswer(Totals, kw_only=True):
    """All streams that the key may read, in sum, with the rarest open incidents and those with most to review."""

    incidents: list[Overview]
    review: list[Overview]
