"""How streams are configured and how they stand."""

from typing import Any

import msgspec

from itan_client.answers.samples import Costs


class Mismatches(msgspec.Struct, frozen=True):
    """Samples that a replay scored otherwise than the log says: how many, by the build that logged them; since when."""

    version: int
    other: int
    first_seq: int | None
    last_seq: int | None
    since: float | None


class Rebuilt(msgspec.Struct, frozen=True):
    """How a stream was rebuilt: when, why, and which samples are lost, if any."""

    at: float
    reason: str
    lost_first_seq: int | None
    lost_last_seq: int | None


class Storage(msgspec.Struct, frozen=True):
    """What the store holds of a stream."""

    log_entries: int
    log_bytes: int
    snapshot_bytes: int


class Stream(msgspec.Struct, frozen=True):
    """The config and the state of a stream; storage is None while the store is down."""

    stream: str
    config: dict[str, Any]
    n_seen: int
    next_seq: int
    as_of_seq: int
    oldest_seq: int
    newest_timestamp: float | None
    in_maintenance: bool
    ready: bool
    samples_needed: int
    threshold: float | None
    incident: int | None
    incidents: int
    costs: Costs
    replay_mismatches: Mismatches
    rebuilt: Rebuilt | None
    snapshot_failure: str | None
    memory_bytes: int
    storage: Storage | None


class StreamSummary(msgspec.Struct, frozen=True):
    """A stream in short; None is not known, and one that is known to be damaged is not readable.

    to_review counts incidents without a label. severity and flagged_time are those of the newest flagged sample.
    flags_by_hour counts the flagged samples of the last 24 hours, the present one last.
    """

    stream: str
    readable: bool
    as_of_seq: int | None
    n_seen: int | None
    ready: bool | None
    samples_needed: int | None
    threshold: float | None
    n_flagged: int | None
    incident: int | None
    incident_begin: float | None
    incident_severity: float | None
    incidents: int | None
    to_review: int | None
    severity: float | None
    flagged_time: float | None
    n_nodes: int | None
    labels: int | None
    true_alarms: int | None
    false_alarms: int | None
    misses: int | None
    newest_time: float | None
    silent_seconds: float | None
    flagged_lately: int | None
    flags_by_hour: list[int] | None


class StreamCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many streams there are, and how they stand; of `unknown` ones only the ids are known yet."""

    streams: int
    unknown: int
    unreadable: int
    warming_up: int
    silent: int
    open_incidents: int
    flagged_lately: int
    to_review: int


class StreamGroup(StreamCounts, frozen=True, kw_only=True):
    """Streams whose ids begin alike, in sum."""

    prefix: str


class StreamTotals(StreamCounts, frozen=True, kw_only=True):
    """All streams that the key may read, in sum.

    begin has the beginnings of the last 24 hours, flags_by_hour how many samples were flagged in each. incidents are
    the streams with the rarest open incidents, review those with the most incidents to review.
    """

    samples: int
    labels: int
    begin: list[float]
    flags_by_hour: list[int]
    groups: list[StreamGroup]
    more_groups: int
    incidents: list[StreamSummary]
    review: list[StreamSummary]


class Estimate(msgspec.Struct, frozen=True):
    """The most that a stream of a config takes."""

    memory_bytes: int
    snapshot_bytes: int
    log_bytes_per_sample: int
    streams_in_budget: int


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong with a stream: a stable kind, and a sentence."""

    kind: str
    text: str


class Checked(msgspec.Struct, frozen=True):
    """What a check found, and what a repair would do."""

    stream: str
    ok: bool
    findings: list[Finding]
    replayed_samples: int
    repair: str


class Repaired(msgspec.Struct, frozen=True):
    """What a repair did."""

    stream: str
    changed: bool
    findings: list[Finding]
    lost_first_seq: int | None
    lost_last_seq: int | None
