"""Answers to samples and to labels."""

import msgspec

from itan_client.columns import Columns


class Explanation(msgspec.Struct, frozen=True):
    """Why a sample was flagged: the nats that each feature adds, its expected value, and the nearest node.

    labels_contribution is in nats too, of what labels added; nearest_anomaly is the seq of a sample labelled anomalous.
    """

    contributions: dict[str, float | None]
    expected: dict[str, float]
    node: int
    path: list[int]
    labels_contribution: float
    nearest_anomaly: int | None


class Observed(Columns, frozen=True):
    """Answer to a batch of samples: columns with one entry for each sample, None if a value is unknown.

    incident and event are there if the samples were learned: the seq that opened the incident, and what happened to it.
    in_maintenance says which samples lie in a maintenance window; None from a service that knows none.
    explanation has entries for the flagged samples, if it was requested. as_of_seq is there if nothing was learned.
    """

    __columns__ = (
        "seq",
        "ids",
        "score",
        "threshold",
        "is_anomaly",
        "ready",
        "severity",
        "incident",
        "event",
        "in_maintenance",
    )

    score: list[float | None]
    threshold: list[float | None]
    is_anomaly: list[bool]
    ready: list[bool]
    severity: list[float | None]
    samples_needed: int = 0
    stream: str = ""
    seq: list[int] | None = None
    ids: list[str | None] | None = None
    incident: list[int | None] | None = None
    event: list[str | None] | None = None
    in_maintenance: list[bool] | None = None
    explanation: list[Explanation | None] | None = None
    explanation_note: str | None = None
    as_of_seq: int | None = None


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """How good the decisions were, by the labels so far; the intervals are of 95 %."""

    labels: int
    true_alarms: int
    false_alarms: int
    misses: int
    true_passes: int
    cost: float
    best_fixed_cost: float
    best_fixed_threshold: float | None
    regret: float
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None
    recall_low: float | None
    recall_high: float | None


class Feedback(Costs, Columns, frozen=True, kw_only=True):
    """Answer to labels: columns with one entry for each label, and the state of the stream after them.

    Each sample of a range, or of an incident, has an entry; found says how many each range, or the incident, has found.
    """

    __columns__ = ("seq", "id", "outcome", "retracted")

    seq: list[int | None]
    id: list[str | None]
    outcome: list[str]
    retracted: list[bool | None]
    outcomes: dict[str, int]
    accepted: list[int]
    threshold_before: float | None
    threshold_after: float | None
    oldest_seq: int
    stream: str = ""
    dry_run: bool = False
    found: list[int] | None = None
