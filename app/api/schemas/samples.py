"""Bodies that bring samples and labels, and their answers."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.api.schemas.types import (
    ArraySample,
    AsOfSeq,
    ClientId,
    EventOf,
    IncidentOf,
    Moment,
    NamedSample,
    SampleRows,
    Seq,
    Severity,
)


class ObserveBody(msgspec.Struct, forbid_unknown_fields=True):
    """Samples as arrays or objects of named values, null = missing; ids and timestamps have one entry a sample.

    A stream with a calendar needs timestamps; null there means that the time is not known.
    """

    samples: SampleRows
    ids: Annotated[list[ClientId | None], Meta(min_length=1)] | UnsetType = UNSET
    timestamps: Annotated[list[Moment | None], Meta(min_length=1)] | UnsetType = UNSET


class ObserveLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of NDJSON that is more than a bare sample."""

    sample: ArraySample | NamedSample
    id: ClientId | UnsetType | None = UNSET
    timestamp: Moment | UnsetType | None = UNSET


class Explanation(msgspec.Struct):
    """Why a sample was flagged, by the model that scored it; features without names go by their number from 0."""

    contributions: Annotated[
        dict[str, float | None],
        Meta(description="nats by which the score falls without the feature; null if it is missing or context"),
    ]
    expected: Annotated[dict[str, float], Meta(description="mean of the feature given the others")]
    node: Annotated[int, Meta(description="the nearest node of the model, by its share of the sample's density")]
    path: Annotated[list[int], Meta(description="the nodes from the root down to that one")]
    labels_contribution: Annotated[float, Meta(description="nats that labels added to the score, or took from it")]
    nearest_anomaly: Annotated[
        int | None, Meta(description="seq of the nearest sample labelled anomalous; null while labels add nothing")
    ]


class ObserveAnswer(msgspec.Struct, omit_defaults=True):
    """Columns, one entry a sample; score (nats, high = anomalous) and threshold are null before the stream is ready.

    With explain=true, explanation is null where a sample was not flagged, or its id repeats a request without explain.
    """

    stream: str
    score: list[float | None]
    threshold: list[float | None]
    is_anomaly: list[bool]
    ready: list[bool]
    severity: list[Severity]
    in_maintenance: Annotated[list[bool], Meta(description="whether the sample lies in a maintenance window")]
    samples_needed: Annotated[int, Meta(description="samples until the stream is ready")]
    ids: list[str | None] | None
    seq: list[int] | UnsetType = UNSET
    incident: list[IncidentOf] | UnsetType = UNSET
    event: list[EventOf] | UnsetType = UNSET
    explanation: list[Explanation | None] | UnsetType = UNSET
    explanation_note: Annotated[str, Meta(description="how to read contributions")] | UnsetType = UNSET
    as_of_seq: AsOfSeq | UnsetType = UNSET


class LabelBody(msgspec.Struct, forbid_unknown_fields=True):
    """The truth about one sample, by id or by seq (id wins); null withdraws a label."""

    anomaly: bool | None
    id: ClientId | UnsetType = UNSET
    seq: Seq | UnsetType = UNSET


Only = Annotated[Literal["flagged", "all"], Meta(description="which of the samples: those that were flagged, or all")]


class RangeBody(msgspec.Struct, forbid_unknown_fields=True, rename={"begin": "from", "end": "to"}):
    """The truth about the samples of a stretch of time, both ends included: by their timestamps, else their arrival."""

    anomaly: bool | None
    begin: Moment
    end: Moment
    only: Only = "flagged"


class FeedbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """Labels for samples observed earlier, one by one, by time, or both."""

    labels: Annotated[list[LabelBody], Meta(min_length=1)] | UnsetType = UNSET
    ranges: Annotated[list[RangeBody], Meta(min_length=1, max_length=100)] | UnsetType = UNSET


class IncidentLabelBody(msgspec.Struct, forbid_unknown_fields=True):
    """The truth about the samples of an incident; null withdraws their labels."""

    anomaly: bool | None
    only: Only = "flagged"


class Costs(msgspec.Struct, kw_only=True):
    """How good the decisions were, by the labels so far."""

    labels: int
    true_alarms: int
    false_alarms: int
    misses: int
    true_passes: int
    cost: float
    best_fixed_cost: float
    best_fixed_threshold: float | None
    regret: Annotated[float, Meta(description="cost beyond best_fixed_cost")]
    precision: Annotated[float | None, Meta(description="true alarms among the labelled flagged samples")]
    precision_low: Annotated[float | None, Meta(description="lower end of its 95 % interval")]
    precision_high: float | None
    recall: Annotated[
        float | None,
        Meta(description="estimated flagged share of all anomalies; null below 20 labels of unflagged samples"),
    ]
    recall_low: float | None
    recall_high: float | None


class FeedbackAnswer(Costs, kw_only=True):
    """The outcome of each label, in columns, and the state of the stream after them.

    The samples of ranges, or of an incident, have an entry each, after those of the labels.
    """

    stream: str
    dry_run: bool
    seq: list[int | None]
    id: list[str | None]
    outcome: Annotated[
        list[str],
        Meta(
            description="applied, duplicate, revised, withdrawn, unknown, expired, conflict or not_learned, one for "
            "each label"
        ),
    ]
    retracted: Annotated[list[bool | None], Meta(description="whether this label removed the sample from the model")]
    outcomes: Annotated[dict[str, int], Meta(description="how many samples had each outcome")]
    accepted: Annotated[list[int], Meta(description="incidents that a normal label of one of their samples ended")]
    threshold_before: float | None
    threshold_after: float | None
    oldest_seq: Annotated[int, Meta(description="the oldest sample that can still be labelled")]
    found: (
        Annotated[list[int], Meta(description="how many samples each range, or the incident, has found")] | UnsetType
    ) = UNSET
