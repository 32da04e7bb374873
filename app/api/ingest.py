"""POST /ingest: records of many streams, each answered by itself."""

from collections.abc import Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.api.admission import admit_records, permitted_grants
from app.api.bodies.formats import FORMS
from app.api.bodies.reading import media_type, read_body
from app.api.bodies.records import read_records
from app.api.bodies.sourced import read_sourced
from app.api.outcomes import Answering, answered
from app.api.protocols import own_answer, refuse_other_message
from app.api.queries import SOURCE, flag_in, read_as, read_query
from app.api.routing import JSON, NDJSON, OF_STORE, PROTOBUF, TEXT, Answer, Operation, Parameters, Route, ref
from app.api.service import service_of
from app.security import Scope
from app.sources.source import Format
from app.streams.batches.records import Record
from app.streams.changes.ingest import Outcomes
from app.streams.errors import refuse_beyond


async def post_ingest(request: Request) -> Response:
    """Score and learn records of many streams; each is taken or refused by itself."""
    return await ingested(request)


async def post_otlp(request: Request) -> Response:
    """Do the same, at a path for exporters that append their own, or cut off the query."""
    return await ingested(request, "otlp")


async def ingested(request: Request, usual_source: str = "") -> Response:
    """Read, ingest and answer."""
    service = service_of(request)
    query = read_query(request, "source", "answer", "retry")
    answering = read_as(query, "answer", Answering, f"one of {', '.join(Answering)}", Answering.ALL)
    held = permitted_grants(request, Scope.OBSERVE)
    name = query.get("source", usual_source)
    mapper = await service.sources.find(name) if name else None
    of: Format = mapper.source.format if mapper else "json"
    form = FORMS[of]
    media = media_type(request, *form.media)
    refuse_other_message(request, of)
    own = own_answer(of, media)
    retry = flag_in(query, "retry", default=own is not None)
    body = await read_body(request, min(service.settings.max_body_bytes, form.most_bytes))
    limit = service.settings.max_batch_samples
    reading = await (read_sourced(media, body, limit, mapper) if mapper else read_records(media, body, limit))
    outcomes = Outcomes(reading.refused, reading.ignored)
    by_stream = grouped(reading.records)
    refuse_beyond(service.settings.max_batch_streams, len(by_stream), "streams", "ITAN_MAX_BATCH_STREAMS")
    allowances = await admit_records(service, held, by_stream, len(body), outcomes)
    source = mapper.source if mapper else None
    await service.tasks.shielded(service.forwarder.ingest(by_stream, allowances, outcomes, source))
    return await answered(service.metrics, outcomes, answering, retry=retry, own=own)


def grouped(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Group records by stream, in order."""
    by_stream = dict[str, list[Record]]()
    for record in records:
        by_stream.setdefault(record.stream, []).append(record)
    return by_stream


EXAMPLE: Final = [
    {"stream": "web-1", "sample": {"cpu": 0.31, "latency_ms": 18}, "id": "a-1", "timestamp": 1764374400},
    {"stream": "db-1", "sample": [0.2, 7, None], "id": "a-2"},
]
LINES: Final = {
    "type": "string",
    "description": "an IngestRecord a line",
    "examples": [
        '{"stream": "web-1", "sample": {"cpu": 0.31}, "id": "a-1"}\n{"stream": "web-2", "sample": {"cpu": 0.29}}\n'
    ],
}
INFLUX: Final = {
    "type": "string",
    "description": "Influx line protocol, with a source of that format",
    "examples": ["cpu,host=web-1,cpu=cpu0 usage_idle=94.1,usage_user=3.2 1764374400000000000\n"],
}
MESSAGE: Final = {
    "type": "string",
    "format": "binary",
    "description": "an ExportMetricsServiceRequest with the source otlp, a WriteRequest with prometheus",
}
POINT: Final = {"timeUnixNano": "1764374400000000000", "asDouble": 0.31}
METRICS: Final = [{"scopeMetrics": [{"metrics": [{"name": "cpu", "gauge": {"dataPoints": [POINT]}}]}]}]
EXPORT: Final = {
    "type": "object",
    "description": "an ExportMetricsServiceRequest",
    "examples": [{"resourceMetrics": METRICS}],
}
EXPORTED: Final = {
    "type": "object",
    "description": "an ExportMetricsServiceResponse",
    "properties": {
        "partialSuccess": {
            "type": "object",
            "properties": {"rejectedDataPoints": {"type": "string"}, "errorMessage": {"type": "string"}},
        }
    },
    "examples": [{"partialSuccess": {"rejectedDataPoints": "1", "errorMessage": "invalid_body: ..."}}],
}
RECORDS: Final = {"type": "array", "items": ref("IngestRecord"), "minItems": 1, "examples": [EXAMPLE]}
QUERY: Final[Parameters] = {
    "source": (SOURCE, "how records are made samples; without one each is an IngestRecord"),
    "answer": (
        {"type": "string", "enum": list(Answering), "default": Answering.ALL.value},
        "which records to list: all, those that were flagged, or none (counts)",
    ),
    "retry": (
        {"type": "boolean", "default": False},
        "true: if some records could not be taken now, answer 429 or 503 although others were taken, so"
        " that a sender which reads only the status sends all again; give the records ids;"
        " the default with the sources otlp and prometheus",
    ),
}
OF_RECORD: Final = (
    *("forbidden", "rate_limited", "quota_exceeded", "unknown_stream"),
    *("invalid_body", "invalid_json", "invalid_stream_id", "invalid_samples", "invalid_ids", "invalid_timestamps"),
    *("id_conflict", "too_many", "invalid_config", "stream_elsewhere", "stream_moved", "holder_unreachable"),
    *("internal_error", *OF_STORE),
)
"""Codes of the problems that a record may have."""
ROUTES = [
    Route(
        "POST",
        "/ingest",
        post_ingest,
        Operation(
            id="ingest_records",
            tag="samples",
            summary="Score and learn records of many streams",
            description="Each record is taken or refused by itself. A repeat of an id gets the first answer.",
            scope=Scope.OBSERVE,
            optional=frozenset({"source"}),
            query=QUERY,
            body={JSON: RECORDS, NDJSON: LINES, TEXT: INFLUX, PROTOBUF: MESSAGE},
            answers={
                200: Answer({JSON: ref("IngestAnswer")}),
                204: Answer({}, "All taken, with the source prometheus"),
            },
            problems=("nothing_taken", "unknown_source", "invalid_message", "partly_taken", *OF_RECORD),
        ),
    ),
    Route(
        "POST",
        "/ingest/otlp/v1/metrics",
        post_otlp,
        Operation(
            id="ingest_otlp",
            tag="samples",
            summary="Score and learn OpenTelemetry metrics",
            description="POST /ingest with the source otlp: for exporters that append /v1/metrics to their endpoint.",
            scope=Scope.OBSERVE,
            optional=frozenset({"source"}),
            query=QUERY,
            body={PROTOBUF: MESSAGE, JSON: EXPORT},
            answers={200: Answer({PROTOBUF: MESSAGE, JSON: EXPORTED})},
            problems=("nothing_taken", "unknown_source", "invalid_message", *OF_RECORD),
        ),
    ),
]
