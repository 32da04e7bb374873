"""What the live page reads of a stream's log: a range of samples, one sample, those to review."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.found_incidents import said
from app.api.incidents import incident_events, incident_ids
from app.api.observe import named
from app.api.queries import InvalidQuery, flag_in, read_query, read_seq, seq_in, whole, whole_in
from app.api.routing import JSON, Answer, Operation, Parameters, Route, answer, ref
from app.api.schemas.history import Logged
from app.api.service import permitted_path_stream, service_of
from app.api.streams import PATH
from app.security import Scope
from app.streams.batches.features import feature_names
from app.streams.log.positions import MAX_SEQ
from app.streams.views.columns import Columns
from app.streams.views.history import history
from app.streams.views.review import review
from app.streams.views.sample import Inspection, inspect

POINTS = (16, 10_000, 2_000)
REVIEWED = (1, 500, 50)
MOST_VALUES = 500_000
COLUMNS: Final = tuple(name for name in Logged.__struct_fields__ if name != "values")
LABELS = {0: None, 1: True, -1: False}


async def get_history(request: Request) -> Response:
    """Give the samples of a range, thinned to so many points."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    query = read_query(request, "from", "to", "points", "values")
    first, last = seq_in(query, "from"), seq_in(query, "to")
    points, values = whole_in(query, "points", *POINTS), flag_in(query, "values", default=False)
    log, features = await service.catalog.log(stream), {}
    if values:
        names = feature_names(service.registry.glance(stream, log.snapshot).detector.config)
        points, features = min(points, max(POINTS[0], MOST_VALUES // len(names))), {"features": names}
    read = await history(log, first, last, points)
    known = {"oldest_seq": log.oldest_seq, "newest_seq": log.head.seq, "position": str(log.head)}
    thinned = {"next": read.next_seq, "thinned": read.is_downsampled, "marked_thinned": read.marked_downsampled}
    rows = columns(read.rows, values=values)
    return answer({"stream": stream, **rows, **features, **known, **thinned})


async def get_review(request: Request) -> Response:
    """Give what a label would tell most about: incidents and close calls without one."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    limit = whole_in(read_query(request, "limit"), "limit", *REVIEWED)
    log = await service.catalog.log(stream)
    state = service.registry.glance(stream, log.snapshot)
    names = feature_names(state.detector.config)
    oldest_to_label = state.horizon.oldest_to_label(log.head.seq + 1, service.settings.horizon_samples)
    queue = await review(log, oldest_to_label, limit)
    shown = [said(stream, incident, service.settings.public_url) for incident in queue.incidents]
    found = {"incidents": msgspec.to_builtins(shown), "to_review": queue.to_review}
    return answer({"stream": stream, **found, "samples": samples(queue.rows, names), "border": queue.border})


async def get_sample(request: Request) -> Response:
    """Give one sample, with what the present model makes of it."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    read_query(request)
    seq = path_seq(request)
    async with service.registry.reading(stream) as session:
        return answer({"stream": stream, **described(await inspect(session, seq))})


def path_seq(request: Request) -> int:
    """Give the sample that the path names."""
    text = request.path_params["seq"]
    try:
        return read_seq(text)
    except ValueError:
        raise InvalidQuery("seq", text, f"a whole number from 1 to {MAX_SEQ}") from None


def columns(rows: Columns | None, *, values: bool) -> dict[str, Any]:
    """Give samples in columns, or also their values, a row a sample."""
    said: dict[str, Any] = {name: [] if rows is None else getattr(rows, name).tolist() for name in COLUMNS}
    said["id"] = [client_id or None for client_id in said["id"]]
    said["incident"], said["event"] = incident_ids(said["incident"]), incident_events(said["event"])
    said["label"] = [LABELS[label] for label in said["label"]]
    if values:
        said["values"] = [] if rows is None else rows.x.tolist()
    return said


def samples(rows: Columns | None, names: list[str]) -> list[dict[str, Any]]:
    """Give samples one by one, their values by the names of the features."""
    said = columns(rows, values=True)
    said["values"] = [dict(zip(names, row, strict=True)) for row in said["values"]]
    return [dict(zip(said, one, strict=True)) for one in zip(*said.values(), strict=True)]


def described(inspection: Inspection) -> dict[str, Any]:
    """Give one sample, explained by the present model, and as it was when the sample came."""
    (said,) = samples(inspection.row, inspection.features)
    first, now = (
        None if explained is None else named(explained, inspection.features)
        for explained in (inspection.first, inspection.now)
    )
    why = {
        "contributions": now and now.contributions,
        "expected": now and now.expected,
        "path": now and now.path,
        "labels_contribution": now and now.labels_contribution,
        "nearest_anomaly": now and now.nearest_anomaly,
        "first_explanation": first,
    }
    present = {"score_now": inspection.score_now, "threshold_now": inspection.threshold_now}
    return said | present | {"as_of_seq": inspection.as_of_seq} | why


SEQ = {"type": "integer", "minimum": 1, "maximum": MAX_SEQ, "examples": [17]}
HISTORY_QUERY: Parameters = {
    "from": (SEQ, "the first sample; default: so that there are `points` samples"),
    "to": (SEQ, "the last sample; default: the newest"),
    "points": (whole(*POINTS), "most samples in the answer"),
    "values": ({"type": "boolean", "default": False}, "true: with the values of the features"),
}
REVIEW_QUERY: Parameters = {"limit": (whole(*REVIEWED), "most incidents, and most samples, in the answer")}

ROUTES = [
    Route(
        "GET",
        "/streams/{stream}/history",
        get_history,
        Operation(
            id="get_history",
            tag="watching",
            summary="Get a range of samples, thinned",
            scope=Scope.READ,
            path=PATH,
            query=HISTORY_QUERY,
            optional=frozenset({"from", "to"}),
            answers={200: Answer({JSON: ref("History")})},
            problems=("unknown_stream",),
        ),
    ),
    Route(
        "GET",
        "/streams/{stream}/samples/{seq}",
        get_sample,
        Operation(
            id="get_sample",
            tag="watching",
            summary="Get one sample, explained",
            scope=Scope.READ,
            path={**PATH, "seq": (SEQ, "the sample")},
            answers={200: Answer({JSON: ref("Sample")})},
            problems=("unknown_stream", "unknown_sample"),
        ),
    ),
    Route(
        "GET",
        "/streams/{stream}/review",
        get_review,
        Operation(
            id="get_review_queue",
            tag="watching",
            summary="Get the incidents and samples to label next",
            scope=Scope.READ,
            path=PATH,
            query=REVIEW_QUERY,
            answers={200: Answer({JSON: ref("ReviewQueue")})},
            problems=("unknown_stream",),
        ),
    ),
]
