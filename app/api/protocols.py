"""Answers to senders that read a protocol of their own."""

import re
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import UnsupportedMedia
from app.api.outcomes import Own
from app.api.refusals import PartlyTaken
from app.api.routing import JSON, PROTOBUF, answer
from app.api.schemas.ingest import RefusedRecord
from app.sources.formats import otlp_json
from app.sources.source import Format

MESSAGE: Final = re.compile(r"proto=(?!prometheus\.WriteRequest\b)")
"""Another message than that of remote write 1.0."""


def own_answer(of: Format, media: str) -> Own | None:
    """Give what answers in the way of a format to a body of this type; None if /ingest has its own answer.

    The senders repeat a request after a 429 or a 5xx, and only then.
    """
    match of:
        case "otlp":
            return partial(export_response, media)
        case "prometheus":
            return written
    return None


def refuse_other_message(request: Request, of: Format) -> None:
    """Raise UnsupportedMedia for a message of another version of remote write, which would seem to be empty."""
    given = request.headers.get("content-type", "")
    if of == "prometheus" and MESSAGE.search(given):
        raise UnsupportedMedia("content-type", given, "application/x-protobuf;proto=prometheus.WriteRequest")


def written(problems: list[RefusedRecord]) -> Response | Exception:
    """Answer that all was written, or fail for good: what was refused would be refused again."""
    return PartlyTaken(len(problems)) if problems else Response(status_code=204)


def export_response(media: str, problems: list[RefusedRecord]) -> Response:
    """Answer an ExportMetricsServiceResponse, which says how many points were rejected, and why the first was."""
    message = f"{problems[0].code}: {problems[0].detail}" if problems else ""
    if media == JSON:
        return answer(otlp_json.as_json(len(problems), message))
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

    response = ExportMetricsServiceResponse()
    if problems:
        response.partial_success.rejected_data_points = len(problems)
        response.partial_success.error_message = message
    return Response(response.SerializeToString(), media_type=PROTOBUF)
