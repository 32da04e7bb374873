"""Incidents: runs of flagged samples."""

import msgspec


class IncidentFeature(msgspec.Struct, frozen=True):
    """A feature that set off an incident: its value, what was expected, and the nats that it added to the score."""

    name: str
    value: float | None
    expected: float
    contribution: float


class Incident(msgspec.Struct, frozen=True):
    """One incident; times are epoch seconds. state is open, closed, accepted, confirmed or dismissed."""

    id: str
    stream: str
    incident: int
    state: str
    begin: float
    peak_seq: int
    peak_time: float
    peak_score: float
    peak_severity: float
    last_seq: int
    last_time: float
    ended_at: float | None
    n_flagged: int
    n_anomalous: int
    n_normal: int
    features: list[IncidentFeature]
    url: str


class IncidentPage(msgspec.Struct, frozen=True):
    """Some incidents, the newest first, and the id that the next page comes after."""

    incidents: list[Incident]
    next: str | None
