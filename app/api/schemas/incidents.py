"""Incidents, as answers have them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from app.streams.log.incidents import MainFeature, State


class IncidentAnswer(msgspec.Struct):
    """A run of flagged samples; times are epoch seconds.

    n_flagged and the peak of an open incident may lag behind, n_flagged by half at most.
    """

    id: Annotated[str, Meta(description="the stream, the seq of the opening sample, and when it came")]
    stream: str
    incident: Annotated[int, Meta(description="seq of the sample that opened it")]
    state: State
    begin: float
    peak_seq: int
    peak_time: float
    peak_score: float
    peak_severity: float
    last_seq: Annotated[int, Meta(description="the newest flagged sample")]
    last_time: float
    ended_at: Annotated[float | None, Meta(description="when it was over; null while it goes on")]
    n_flagged: int
    n_anomalous: Annotated[int, Meta(description="samples labelled anomalous")]
    n_normal: Annotated[int, Meta(description="flagged samples labelled normal")]
    features: Annotated[tuple[MainFeature, ...], Meta(description="what set it off, the greatest contribution first")]
    url: Annotated[str, Meta(description="the incident on the live page")]


class IncidentList(msgspec.Struct):
    """Incidents, the newest first."""

    incidents: list[IncidentAnswer]
    next: Annotated[str | None, Meta(description="`after` of the next page, which may be empty; null at the end")]
