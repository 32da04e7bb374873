"""POST /feedback and POST /incidents/ID/label: late labels."""

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.api.admission import allowance_of, permitted_allowance
from app.api.bodies.labels import read_labels
from app.api.bodies.reading import checked_tree, choices_of, invalid_form, media_type, read_body, read_small
from app.api.found_incidents import PATH, permitted_incident
from app.api.queries import STREAM, flag_in, read_query, stream_in
from app.api.routing import JSON, OF_STORE, Answer, Operation, Route, ref
from app.api.schemas.samples import IncidentLabelBody
from app.api.service import service_of
from app.security import Scope
from app.streams.allowance import Allowance
from app.streams.changes import ranges
from app.streams.changes.feedback import FeedbackResult, LabelRequest, label
from app.streams.changes.ranges import IncidentLabel, Many

_ENCODER = msgspec.json.Encoder()
LABEL_BYTES = 32
"""What a label for a sample that was looked up counts, against a limit of bytes: about as if it had been sent."""


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
    given = await read_labels(body, service.settings.max_labels)
    work = labelled(request, stream, given.labels, given.ranges, allowance, dry_run=dry_run)
    return await service.tasks.shielded(work)


async def post_incident_label(request: Request) -> Response:
    """Apply a label to the samples of an incident, or with dry_run=true say what it would do."""
    service, (key, grant) = service_of(request), permitted_incident(request, Scope.LABEL)
    dry_run = flag_in(read_query(request, "dry_run"), "dry_run", default=False)
    given = read_incident_label(checked_tree(await read_small(request)))
    many = [IncidentLabel(given.anomaly, key, flagged_only=given.only == "flagged")]
    work = labelled(request, key.stream, [], many, allowance_of(service, grant), dry_run=dry_run)
    return await service.tasks.shielded(work)


def read_incident_label(given: Any) -> IncidentLabelBody:
    """Read the label of an incident. Raises InvalidBody."""
    try:
        return msgspec.convert(given, IncidentLabelBody)
    except msgspec.ValidationError as error:
        known = IncidentLabelBody.__struct_fields__
        raise invalid_form(str(error), given, "", known, choices_of(IncidentLabelBody)) from error


async def labelled(
    request: Request,
    stream: str,
    labels: Sequence[LabelRequest],
    many: Sequence[Many],
    allowance: Allowance,
    *,
    dry_run: bool,
) -> Response:
    """Look up the samples of the labels for many, then label when it is the request's turn, and answer.

    Nothing is labelled if the client went away: it may have sent newer labels elsewhere.
    """
    service = service_of(request)
    async with service.registry.reading(stream) as session:
        lookup = await ranges.begin(session, many, service.settings.max_labels - len(labels)) if many else None
        if lookup is not None and not dry_run:
            await allowance.keep(LABEL_BYTES * sum(lookup.counts))
        async with session.lock:
            if await request.is_disconnected():
                raise ClientDisconnect
            given = labels if lookup is None else [*labels, *await lookup.finish(session)]
            result = await label(session, given, dry_run=dry_run)
    said = columns(stream, given, result, dry_run=dry_run)
    return Response(_ENCODER.encode(said if lookup is None else said | {"found": lookup.counts}), media_type=JSON)


def columns(stream: str, labels: Sequence[LabelRequest], labelled: FeedbackResult, *, dry_run: bool) -> dict[str, Any]:
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


DRY_RUN = ({"type": "boolean", "default": False}, "true: say what the labels would do, and change nothing")
OF_LABELS = ("too_many", "quota_exceeded")
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
            query={"stream": (STREAM, "the stream"), "dry_run": DRY_RUN},
            body={JSON: ref("FeedbackBody")},
            answers={200: Answer({JSON: ref("FeedbackAnswer")})},
            problems=("unknown_stream", *OF_LABELS),
        ),
    ),
    Route(
        "POST",
        "/incidents/{incident}/label",
        post_incident_label,
        Operation(
            id="label_incident",
            tag="samples",
            summary="Label the samples of an incident",
            scope=Scope.LABEL,
            path=PATH,
            query={"dry_run": DRY_RUN},
            body={JSON: ref("IncidentLabelBody")},
            answers={200: Answer({JSON: ref("FeedbackAnswer")})},
            problems=("unknown_stream", "unknown_incident", *OF_LABELS, *OF_STORE, "stream_moved", "stream_elsewhere"),
        ),
    ),
]
