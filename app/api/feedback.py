"""POST /feedback: late labels."""

from typing import Any

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from app.api.admission import permitted_allowance
from app.api.bodies import InvalidBody, decode, media_type, read_body, refuse_repeated_names
from app.api.queries import STREAM, flag_in, read_query, stream_in
from app.api.routing import JSON, Answer, Operation, Route, ref
from app.api.schemas import FeedbackBody, LabelBody
from app.api.service import Service, service_of
from app.security import Scope
from app.streams.errors import refuse_beyond
from app.streams.labelling import Labelled, LabelRequest, label

_BODY = msgspec.json.Decoder(FeedbackBody)
_ENCODER = msgspec.json.Encoder()


async def post_feedback(request: Request) -> Response:
    """Apply labels to samples observed earlier, or with dry_run=true say what they would do."""
    service = service_of(request)
    query = read_query(request, "stream", "dry_run")
    stream, dry_run = stream_in(query), flag_in(query, "dry_run", default=False)
    allowance = permitted_allowance(request, Scope.LABEL, stream)
    media_type(request, JSON)
    body = await read_body(request, service.settings.max_body_bytes)
    if not dry_run:
        await allowance.keep(len(body))
    labels = read_labels(body, service.settings.max_labels)
    labelled = await service.registry.shielded(label_stream(service, stream, labels, dry_run=dry_run))
    return Response(_ENCODER.encode(columns(stream, labels, labelled, dry_run=dry_run)), media_type=JSON)


async def label_stream(service: Service, stream: str, labels: list[LabelRequest], *, dry_run: bool) -> Labelled:
    """Label when it is the request's turn."""
    async with service.registry.changing(stream) as session:
        return await label(session, labels, dry_run=dry_run)


def read_labels(body: bytes, limit: int) -> list[LabelRequest]:
    """Read {"labels": [{"id" or "seq": ..., "anomaly": ...}]}."""
    labels = decode(_BODY, body).labels
    refuse_beyond(limit, len(labels), "labels", "ITAN_MAX_LABELS")
    names = sum(1 + (given.id is not UNSET) + (given.seq is not UNSET) for given in labels)
    refuse_repeated_names(body, 1 + names, (given.id for given in labels if given.id is not UNSET))
    return [label_request(given, f"labels[{i}]") for i, given in enumerate(labels)]


def label_request(given: LabelBody, field: str) -> LabelRequest:
    """Check that a label names its sample."""
    if given.id is not UNSET:
        return LabelRequest(given.anomaly, client_id=given.id)
    if given.seq is not UNSET:
        return LabelRequest(given.anomaly, seq=given.seq)
    raise InvalidBody(field, {"anomaly": given.anomaly}, "an object with id or seq")


def columns(stream: str, labels: list[LabelRequest], labelled: Labelled, *, dry_run: bool) -> dict[str, Any]:
    """Give the answer: one entry a label, and how the stream stands."""
    return {
        "stream": stream,
        "dry_run": dry_run,
        "seq": labelled.seq,
        "id": [request.client_id for request in labels],
        "outcome": labelled.outcome,
        "retracted": labelled.retracted,
        "outcomes": labelled.outcomes,
        "threshold_before": labelled.threshold_before,
        "threshold_after": labelled.threshold_after,
        "oldest_seq": labelled.oldest_seq,
        **labelled.costs,
    }


ROUTES = [
    Route(
        "POST",
        "/feedback",
        post_feedback,
        Operation(
            id="label",
            tag="samples",
            summary="Send labels for samples observed earlier",
            scope=Scope.LABEL,
            query={
                "stream": (STREAM, "the stream"),
                "dry_run": ({"type": "boolean", "default": False}, "true: answer as if, change nothing"),
            },
            body={JSON: ref("FeedbackBody")},
            answers={200: Answer({JSON: ref("FeedbackAnswer")})},
            problems=("unknown_stream", "too_many", "quota_exceeded"),
        ),
    )
]
