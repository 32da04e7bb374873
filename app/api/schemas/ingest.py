"""Records of many streams, and what became of them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.api.schemas.service import Problem
from app.api.schemas.types import ArraySample, ClientId, EventOf, IncidentOf, Moment, NamedSample, Severity
from app.streams.ids import NOT_DOTS, PATTERN


class IngestRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A sample, and the stream that it is for; a stream with a calendar needs a timestamp, null = not known."""

    stream: Annotated[str, Meta(extra_json_schema={"pattern": f"^{NOT_DOTS}{PATTERN}$"})]
    sample: ArraySample | NamedSample
    id: ClientId | UnsetType | None = UNSET
    timestamp: Moment | UnsetType | None = UNSET


class RefusedRecord(Problem, kw_only=True):
    """Why a record was refused: the problem that POST /observe would answer."""

    record: Annotated[int, Meta(description="its place in the request, from 0")]
    stream: str | None = None
    id: str | None = None


class IngestProblem(Problem, kw_only=True):
    """A problem of a request from which no record was taken, or from which some must be sent again."""

    problems: list[RefusedRecord] | UnsetType = UNSET


class IngestAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of each record.

    The columns have one entry for each record that was taken, in the order of the request; with answer=flagged only for
    those that were flagged. With answer=counts there are neither columns nor problems. Joined records have
    the outcome of their sample.
    """

    records: int
    taken: int
    refused: int
    flagged: int
    ignored: Annotated[int, Meta(description="records in which the source found nothing to join")] = 0
    refused_by_code: Annotated[dict[str, int], Meta(description="refused records by the code of their problem")]
    record: Annotated[list[int], Meta(description="the place of the record in the request, from 0")] | UnsetType = UNSET
    stream: list[str] | UnsetType = UNSET
    seq: list[int] | UnsetType = UNSET
    id: list[str | None] | UnsetType = UNSET
    score: list[float | None] | UnsetType = UNSET
    threshold: list[float | None] | UnsetType = UNSET
    is_anomaly: list[bool] | UnsetType = UNSET
    ready: list[bool] | UnsetType = UNSET
    severity: list[Severity] | UnsetType = UNSET
    incident: list[IncidentOf] | UnsetType = UNSET
    event: list[EventOf] | UnsetType = UNSET
    in_maintenance: list[bool] | UnsetType = UNSET
    problems: list[RefusedRecord] | UnsetType = UNSET
