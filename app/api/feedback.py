"""POST /feedback: late labels."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.api.admission import permitted_allowance
from app.api.bodies.columns import Column, read_column, refuse_dropped, refuse_repeated
from app.api.bodies.raw import RawFeedbackBody, decode_short, raw_body
from app.api.bodies.reading import InvalidBody, invalid_form, media_type, read_body, refuse_repeated_names, without_bom
from app.api.queries import STREAM, flag_in, read_query, stream_in
from app.api.routing import JSON, Answer, Operation, Route, ref
from app.api.schemas.samples import FeedbackBody, LabelBody
from app.api.service import Service, service_of
from app.security import Scope
from app.streams.changes.feedback import FeedbackResult, LabelRequest, label
from app.streams.errors import refuse_beyond
from app.streams.faults import Fault, Faults

_BODY = msgspec.json.Decoder(FeedbackBody)
_RAW = msgspec.json.Decoder(RawFeedbackBody)
_LABELS = msgspec.json.Decoder(list[LabelBody])
_LABEL = msgspec.json.Decoder(LabelBody)
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
    labels = await read_labels(body, service.settings.max_labels)
    labelled = await service.tasks.shielded(label_stream(request, service, stream, labels, dry_run=dry_run))
    return Response(_ENCODER.encode(columns(stream, labels, labelled, dry_run=dry_run)), media_type=JSON)


async def label_stream(
    request: Request, service: Service, stream: str, labels: list[LabelRequest], *, dry_run: bool
) -> FeedbackResult:
    """Label when it is the request's turn, unless its client went away: it may have sent newer labels elsewhere."""
    async with service.registry.changing(stream) as session:
        if await request.is_disconnected():
            raise ClientDisconnect
        return await label(session, labels, dry_run=dry_run)


async def read_labels(body: bytes, limit: int) -> list[LabelRequest]:
    """Read {"labels": [{"id" or "seq": ..., "anomaly": ...}]}; InvalidBody for all labels that are none."""
    body = without_bom(body)
    read, error = decode_short(_BODY, body)
    if read is None:
        labels = await read_column(LABELS, (await raw_body(_RAW, body, error)).labels, limit)
    else:
        labels = read.labels
        refuse_beyond(limit, len(labels), "labels", LABELS.setting)
        refuse_repeated_names(body, 1 + count_fields(labels), ids_of(labels))
    faults = Faults()
    for i, given in enumerate(labels):
        if given.id is UNSET and given.seq is UNSET:
            faults.add(i, f"labels[{i}]", {"anomaly": given.anomaly}, "an object with id or seq")
    InvalidBody.for_any(faults)
    return [label_request(given) for given in labels]


def label_request(given: LabelBody) -> LabelRequest:
    """Give a label by its id, or else by its seq."""
    if given.id is not UNSET:
        return LabelRequest(given.anomaly, client_id=given.id)
    return LabelRequest(given.anomaly, seq=None if given.seq is UNSET else given.seq)


def read_all(text: bytes) -> list[LabelBody]:
    """Read an array of labels; ValueError if one may name a field twice."""
    labels = _LABELS.decode(text)
    refuse_dropped(text, count_fields(labels), ids_of(labels))
    return labels


def read_one(text: bytes) -> LabelBody:
    """Read one label; ValueError if it names a field twice."""
    given = _LABEL.decode(text)
    refuse_repeated(text, count_fields([given]), ids_of([given]))
    return given


def count_fields(labels: Iterable[LabelBody]) -> int:
    """Count the names of fields that labels were read of."""
    return sum(1 + (given.id is not UNSET) + (given.seq is not UNSET) for given in labels)


def ids_of(labels: Iterable[LabelBody]) -> Iterable[str]:
    """Give the ids of the labels that have one."""
    return (given.id for given in labels if given.id is not UNSET)


def label_fault(tree: Any) -> Fault:
    """Say what is wrong with a label."""
    try:
        msgspec.convert(tree, LabelBody)
    except msgspec.ValidationError as error:
        refused = invalid_form(str(error), tree, "", LabelBody.__struct_fields__)
        return Fault(f".{refused.field}" if refused.field != "body" else "", refused.value, refused.limit)
    return Fault("", tree, 'a label such as {"seq": 17, "anomaly": true}')


LABELS = Column("labels", read_all, read_one, label_fault, InvalidBody, "ITAN_MAX_LABELS")


def columns(stream: str, labels: list[LabelRequest], labelled: FeedbackResult, *, dry_run: bool) -> dict[str, Any]:
    """Give the answer: one entry a label, and how the stream stands."""
    return {
        "stream": stream,
        "dry_run": dry_run,
        "seq": labelled.seq,
        "id": [request.client_id for request in labels],
        "outcome": labelled.outcome,
        "retracted": labelled.retracted,
        "outcomes": labelled.outcomes,
        "accepted": labelled.accepted,
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
                "dry_run": (
                    {"type": "boolean", "default": False},
                    "true: say what the labels would do, and change nothing",
                ),
            },
            body={JSON: ref("FeedbackBody")},
            answers={200: Answer({JSON: ref("FeedbackAnswer")})},
            problems=("unknown_stream", "too_many", "quota_exceeded"),
        ),
    )
]
