"""Samples of the log, as the live page reads them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.api.schemas.incidents import IncidentAnswer
from app.api.schemas.samples import Explanation
from app.api.schemas.types import ArraySample, AsOfSeq, EventOf, IncidentOf, NamedSample, Severity


class Columns(msgspec.Struct, omit_defaults=True):
    """Samples in columns; score and threshold are null before the stream is ready; label is null if there is none.

    time, in epoch seconds, is the sample's timestamp, or the time of its arrival if it had none.
    """

    stream: str
    seq: list[int]
    id: list[str | None]
    time: list[float]
    score: list[float | None]
    threshold: list[float | None]
    is_anomaly: list[bool]
    severity: list[Severity]
    incident: list[IncidentOf]
    event: list[EventOf]
    in_maintenance: list[bool]
    label: list[bool | None]


class History(Columns, kw_only=True):
    """The samples of a range, thinned so that each stretch keeps its lowest and its highest score."""

    features: list[str] | UnsetType = UNSET
    values: Annotated[list[ArraySample], Meta(description="one row for each sample")] | UnsetType = UNSET
    oldest_seq: Annotated[int, Meta(description="the oldest sample that the log holds")]
    newest_seq: int
    position: Annotated[str, Meta(description="where the log ended; /events after this position gives what came later")]
    next: Annotated[
        int | None, Meta(description="the seq to continue from, if the range holds more than one request reads")
    ]
    thinned: bool
    marked_thinned: Annotated[bool, Meta(description="whether flagged or labelled samples were left out too")]


class Logged(msgspec.Struct):
    """One sample, and the answer to it."""

    seq: int
    id: str | None
    time: float
    score: float | None
    threshold: float | None
    is_anomaly: bool
    severity: Severity
    incident: IncidentOf
    event: EventOf
    in_maintenance: bool
    label: bool | None
    values: NamedSample


class ReviewQueue(msgspec.Struct):
    """What has no label: incidents, open ones first and then the gravest, and samples that were nearly flagged."""

    stream: str
    incidents: list[IncidentAnswer]
    to_review: Annotated[int, Meta(description="incidents without a label, of which these are the newest")]
    samples: Annotated[list[Logged], Meta(description="of no incident, the nearest to their threshold first")]
    border: Annotated[float | None, Meta(description="nats that a close call may be below its threshold")]


class Sample(Logged):
    """One sample, and what the present model says of it (null before the stream is ready)."""

    stream: str
    score_now: float | None
    threshold_now: float | None
    as_of_seq: AsOfSeq
    contributions: dict[str, float | None] | None
    expected: dict[str, float] | None
    path: list[int] | None
    labels_contribution: float | None
    nearest_anomaly: int | None
    first_explanation: Annotated[
        Explanation | None, Meta(description="as answered when it was observed, if asked for then")
    ]
