"""Bodies of requests and answers."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.streams.faults import Scalar
from app.streams.log.positions import MAX_SEQ
from app.streams.maintenance.repair import Checked, Repaired
from app.streams.open.incidents import Mismatches, Rebuilt
from app.streams.views.overview import Overview

ClientId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        pattern=r"^[^\u0000-\u001f\u007f-\u009f]*(?![\s\S])",
        description="without control characters",
    ),
]
Seq = Annotated[int, Meta(ge=1, le=MAX_SEQ)]
AsOfSeq = Annotated[
    int, Meta(description="the newest sample that the answer takes into account; another worker may know newer ones")
]
Moment = (
    Annotated[float, Meta(description="epoch seconds")]
    | Annotated[datetime, Meta(tz=True, description="RFC 3339 with offset", examples=["2026-11-28T08:00:00Z"])]
)
ArraySample = list[float | None]
NamedSample = dict[str, float | None]
SampleRows = Annotated[list[ArraySample | NamedSample], Meta(min_length=1)]


class ObserveBody(msgspec.Struct, forbid_unknown_fields=True):
    """Samples as arrays or objects of named values, null = missing; ids and timestamps have one entry a sample."""

    samples: SampleRows
    ids: Annotated[list[ClientId | None], Meta(min_length=1)] | UnsetType = UNSET
    timestamps: Annotated[list[Moment], Meta(min_length=1)] | UnsetType = UNSET


class ObserveLine(msgspec.Struct, forbid_unknown_fields=True):
    """A line of NDJSON that is more than a bare sample."""

    sample: ArraySample | NamedSample
    id: ClientId | UnsetType = UNSET
    timestamp: Moment | UnsetType = UNSET


class Explanation(msgspec.Struct):
    """Why a sample was flagged, by the model that scored it; features without names go by their number from 0."""

    contributions: Annotated[
        dict[str, float | None],
        Meta(description="nats by which the score falls without the feature; null if it is missing"),
    ]
    expected: Annotated[dict[str, float], Meta(description="mean of the feature given the others")]
    node: Annotated[int, Meta(description="the nearest node of the model, by its share of the sample's density")]
    path: Annotated[list[int], Meta(description="the nodes from the root down to that one")]


class ObserveAnswer(msgspec.Struct, omit_defaults=True):
    """Columns, one entry a sample; score (nats, high = anomalous) and threshold are null before the stream is ready.

    With explain=true, explanation is null where a sample was not flagged, or its id repeats a request without explain.
    """

    stream: str
    score: list[float | None]
    threshold: list[float | None]
    is_anomaly: list[bool]
    ready: list[bool]
    samples_needed: Annotated[int, Meta(description="samples until the stream is ready")]
    ids: list[str | None] | None
    seq: list[int] | UnsetType = UNSET
    explanation: list[Explanation | None] | UnsetType = UNSET
    explanation_note: Annotated[str, Meta(description="how to read contributions")] | UnsetType = UNSET
    as_of_seq: AsOfSeq | UnsetType = UNSET


class LabelBody(msgspec.Struct, forbid_unknown_fields=True):
    """The truth about one sample, by id or by seq (id wins); null withdraws a label."""

    anomaly: bool | None
    id: ClientId | UnsetType = UNSET
    seq: Seq | UnsetType = UNSET


class FeedbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """Labels for samples observed earlier."""

    labels: Annotated[list[LabelBody], Meta(min_length=1)]


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
    """The outcome of each label, in columns, and the state of the stream after them."""

    stream: str
    dry_run: bool
    seq: list[int | None]
    id: list[str | None]
    outcome: Annotated[
        list[str],
        Meta(description="applied, duplicate, revised, withdrawn, unknown, expired or conflict, one for each label"),
    ]
    retracted: Annotated[list[bool | None], Meta(description="whether this label removed the sample from the model")]
    outcomes: Annotated[dict[str, int], Meta(description="how many samples had each outcome")]
    threshold_before: float | None
    threshold_after: float | None
    oldest_seq: Annotated[int, Meta(description="the oldest sample that can still be labelled")]


class DensityBody(msgspec.Struct, forbid_unknown_fields=True):
    """Points as arrays or as objects of named values."""

    points: SampleRows


class DensityAnswer(msgspec.Struct):
    """Log densities at the points, in nats and the units of the samples."""

    stream: str
    as_of_seq: AsOfSeq
    log_density: list[float]


class Node(msgspec.Struct):
    """A part of the space and the density in it; covariance and factors are left out with covariances=false."""

    id: int
    parent: int | None
    level: int
    leaf: bool
    count: Annotated[float, Meta(description="samples counted in it, less what was forgotten")]
    weight: Annotated[float, Meta(description="its share of the mixture")]
    mean: list[float]
    degrees_of_freedom: Annotated[float | None, Meta(description="of its Student t; null if it is a Gaussian")]
    covariance: Annotated[list[list[float]], Meta(description="or scale matrix of the Student t")] | UnsetType = UNSET
    factors: Annotated[list[dict[str, Any]], Meta(description="features of other kinds")] | UnsetType = UNSET


class Hyperplane(msgspec.Struct):
    """The split of a node: left where normal . x >= offset."""

    node: int
    normal: list[float]
    offset: float
    left: int
    right: int


class Scaling(msgspec.Struct):
    """The scaling of samples: (x - location) / scale."""

    location: list[float]
    scale: list[float]


class Model(msgspec.Struct):
    """The learned density."""

    stream: str
    as_of_seq: AsOfSeq
    n_seen: int
    n_learned: int
    nodes: list[Node]
    hyperplanes: list[Hyperplane]
    scaling: Annotated[Scaling | None, Meta(description="null before the stream is ready")]


class DensityGrid(msgspec.Struct):
    """Log density over two features; log_density[i][j] is at y_values[i], x_values[j]."""

    stream: str
    as_of_seq: AsOfSeq
    x: str
    y: str
    x_values: list[float]
    y_values: list[float]
    log_density: list[list[float]]


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
    ready: bool
    samples_needed: int
    threshold: float | None
    costs: Costs
    replay_mismatches: Mismatches
    rebuilt: Annotated[Rebuilt | None, Meta(description="how it was rebuilt, until somebody accepts it")]
    snapshot_failure: Annotated[str | None, Meta(description="why its state cannot be stored; its log is complete")]
    memory_bytes: Annotated[int, Meta(description="memory that the stream takes while it is open")]
    storage: Annotated[Storage | None, Meta(description="null while the store is down")]


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
    label: bool | None
    values: NamedSample


class ReviewQueue(msgspec.Struct):
    """Samples without a label that were flagged, or nearly, the nearest to their threshold first."""

    stream: str
    samples: list[Logged]
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
    first_explanation: Annotated[
        Explanation | None, Meta(description="as answered when it was observed, if asked for then")
    ]


class StreamEstimate(msgspec.Struct):
    """The most that a stream takes, once everything that its config bounds is full; client ids add to the log."""

    memory_bytes: int
    snapshot_bytes: int
    log_bytes_per_sample: Annotated[int, Meta(description="if each sample is sent alone")]
    streams_in_budget: Annotated[int, Meta(description="how many such streams fit into ITAN_MEMORY_BUDGET_MB")]


class StreamPage(msgspec.Struct):
    """Streams in order of their ids, without details just these; `next` goes into `after` of the next request."""

    streams: list[Overview]
    next: str | None


class SignInBody(msgspec.Struct, forbid_unknown_fields=True):
    """The key to sign in with."""

    key: Annotated[str, Meta(min_length=1, max_length=1024)]


class GrantAnswer(msgspec.Struct):
    """The allowed scopes, and the streams: one id, or a prefix and *."""

    scopes: list[str]
    streams: str


class SessionAnswer(msgspec.Struct):
    """Whether a key is needed, and what the signed-in key may do; without keys everything is allowed."""

    keys_required: bool
    signed_in: bool
    csrf: Annotated[str | None, Meta(description="to be sent in the header X-CSRF-Token with every change")]
    scopes: Annotated[list[str] | None, Meta(description="scopes of any of the grants")]
    streams: Annotated[str | None, Meta(description="streams of any of the grants, comma-separated")]
    grants: list[GrantAnswer] | None


class Health(msgspec.Struct):
    """The state of the process and its store."""

    status: str
    store: str | None = None
    reason: str | None = None
    warnings: list[str] = []
    damaged_streams: Annotated[int, Meta(description="streams that are known to be damaged")] = 0


class Wrong(msgspec.Struct):
    """A field whose value is beyond a limit; the field is a path such as samples[500].cpu."""

    field: str
    value: Scalar
    limit: str


class Problem(msgspec.Struct, omit_defaults=True):
    """An error (RFC 9457): a stable code, and what was wrong where, beyond which limit.

    errors names up to 20 wrong fields, the first of them again; n_errors says how many there are.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | UnsetType = UNSET
    value: Scalar | UnsetType = UNSET
    limit: str | UnsetType = UNSET
    errors: list[Wrong] | UnsetType = UNSET
    n_errors: int | UnsetType = UNSET
    samples_needed: int | UnsetType = UNSET


DOCUMENTED: list[type[msgspec.Struct]] = [
    ObserveBody,
    ObserveLine,
    ObserveAnswer,
    FeedbackBody,
    FeedbackAnswer,
    DensityBody,
    DensityAnswer,
    Model,
    DensityGrid,
    StreamDescription,
    StreamEstimate,
    History,
    Sample,
    ReviewQueue,
    StreamPage,
    SignInBody,
    SessionAnswer,
    Checked,
    Repaired,
    Health,
    Problem,
]
