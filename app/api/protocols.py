"""Answers to senders that read a protocol of their own."""

from functools import partial
from typing import Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from starlette.responses import Response

from app.api.outcomes import Own
from app.api.routing import JSON, PROTOBUF, answer
from app.api.schemas.ingest import RefusedRecord
from app.sources.formats import otlp_json
from app.sources.source import Format

PROTOCOLS: Final[frozenset[Format]] = frozenset({"otlp"})
"""Formats whose senders read their own answers; they repeat a request after a 429 or 503, and only then."""


def own_answer(of: Format, media: str) -> Own | None:
    """Give what answers in the way of a format to a body of this type; None if /ingest has its own answer."""
    return partial(export_response, media) if of in PROTOCOLS else None


def export_response(media: str, problems: list[RefusedRecord]) -> Response:
    """Answer an ExportMetricsServiceResponse, which says how many points were rejected, and why the first was."""
    message = f"{problems[0].code}: {problems[0].detail}" if problems else ""
    if media == JSON:
        return answer(otlp_json.as_json(len(problems), message))
    response = ExportMetricsServiceResponse()
    if problems:
        response.partial_success.rejected_data_points = len(problems)
        response.partial_success.error_message = message
    return Response(response.SerializeToString(), media_type=PROTOBUF)
