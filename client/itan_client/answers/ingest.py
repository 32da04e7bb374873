"""Answers to records of many streams."""

from typing import Any

import msgspec

from itan_client.columns import Columns


class RefusedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Why a record was refused; `record` is its place in the request, from 0."""

    record: int
    code: str
    detail: str
    status: int
    title: str = ""
    type: str = ""
    stream: str | None = None
    id: str | None = None
    field: str | None = None
    value: Any = None
    limit: str | None = None
    samples_needed: int | None = None


class Ingested(Columns, frozen=True, kw_only=True):
    """What became of each record: columns with one entry for each that was taken, and the problems of the others."""

    __columns__ = (
        *("record", "stream", "seq", "id", "score", "threshold", "is_anomaly", "ready", "severity", "incident"),
        *("event", "in_maintenance"),
    )

    records: int
    taken: int
    refused: int
    flagged: int
    refused_by_code: dict[str, int]
    ignored: int = 0
    record: list[int] | None = None
    stream: list[str] | None = None
    seq: list[int] | None = None
    id: list[str | None] | None = None
    score: list[float | None] | None = None
    threshold: list[float | None] | None = None
    is_anomaly: list[bool] | None = None
    ready: list[bool] | None = None
    severity: list[float | None] | None = None
    incident: list[int | None] | None = None
    event: list[str | None] | None = None
    in_maintenance: list[bool] | None = None
    problems: list[RefusedRecord] | None = None
