"""POST /observe: score, decide, learn."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from app.api.admission import permitted_samples
from app.api.bodies.reading import media_type, read_body
from app.api.bodies.samples import read_batch
from app.api.incidents import incident_events, incident_ids
from app.api.queries import STREAM, InvalidQuery, flag_in, read_query, stream_in
from app.api.routing import BYTES, JSON, NDJSON, Operation, Parameters, Route, ref
from app.api.routing import Answer as Answered
from app.api.schemas.samples import Explanation, ObserveAnswer
from app.api.service import Service, service_of
from app.security import Scope
from app.streams.allowance import Allowance
from app.streams.batches.answer import Answer
from app.streams.batches.batch import Batch
from app.streams.changes.observe import observe
from app.streams.log.explanations import Explained
from app.streams.views.score import score
from core import Calendar, DetectorConfig

_ENCODER = msgspec.json.Encoder()
CONTRIBUTIONS_NOTE = "each is how much the score falls without that feature alone; they need not sum to the score"


async def post_observe(request: Request) -> Response:
    """Score a batch of samples and learn it, or with learn=false score it only; with explain=true say why."""
    service = service_of(request)
    query = read_query(request, "stream", "learn", "explain", "calendar", "timezone")
    stream, learn = stream_in(query), flag_in(query, "learn", default=True)
    explain, calendar = flag_in(query, "explain", default=False), calendar_in(query)
    allowance = permitted_samples(request, Scope.OBSERVE if learn else Scope.READ, stream)
    media = media_type(request, JSON, NDJSON, BYTES)
    body = await read_body(request, service.settings.max_body_bytes)
    if learn:
        await allowance.keep(len(body))
    began = perf_counter()
    batch = await read_batch(media, body, service.settings.max_batch_samples)
    if explain or calendar is not None:
        batch = replace(batch, explain=explain, calendar=calendar)
    if not learn:
        return await score_batch(service, stream, batch, allowance)
    service.metrics.observe_steps["decode"].observe(perf_counter() - began)
    return await learn_batch(service, stream, batch, allowance)


def calendar_in(query: dict[str, str]) -> Calendar | None:
    """Give the calendar that a new stream is to have; None if the request names none."""
    if "calendar" not in query:
        if "timezone" in query:
            raise InvalidQuery("timezone", query["timezone"], "left out without calendar")
        return None
    periods = [period_in(text) for text in query["calendar"].split(",")]
    zone = {"timezone": query["timezone"]} if "timezone" in query else {}
    # core judges it as part of a config
    return DetectorConfig.from_dict({"n_features": 1, "calendar": {"periods": periods, **zone}}).calendar


def period_in(text: str) -> str | float:
    """Give the name of a period, or its seconds."""
    try:
        return float(text)
    except ValueError:
        return text


async def learn_batch(service: Service, stream: str, batch: Batch, allowance: Allowance) -> Response:
    """Observe a batch when it is its turn."""
    answer = await service.tasks.shielded(observe_in_turn(service, stream, batch, allowance))
    began = perf_counter()
    body = encode(stream, answer, batch.ids, learn=True)
    service.metrics.observe_steps["encode"].observe(perf_counter() - began)
    return Response(body, media_type=JSON)


async def observe_in_turn(service: Service, stream: str, batch: Batch, allowance: Allowance) -> Answer:
    """Observe a batch after those that came before it."""
    async with service.registry.changing(stream) as session:
        return await observe(session, batch, allowance)


async def score_batch(service: Service, stream: str, batch: Batch, allowance: Allowance) -> Response:
    """Score a batch by the model as it is."""
    async with service.registry.reading(stream) as session:
        answer = await score(session, batch, allowance)
    return Response(encode(stream, answer, batch.ids, learn=False), media_type=JSON)


def encode(stream: str, answer: Answer, ids: tuple[str, ...], *, learn: bool) -> bytes:
    """Write the answer in columns; NaN becomes null."""
    return _ENCODER.encode(
        ObserveAnswer(
            stream=stream,
            score=answer.score.tolist(),
            threshold=answer.threshold.tolist(),
            is_anomaly=answer.is_anomaly.tolist(),
            ready=answer.ready.tolist(),
            severity=answer.severity.tolist(),
            in_maintenance=answer.held_out.tolist(),
            samples_needed=answer.samples_needed,
            ids=[client_id or None for client_id in ids] if ids else None,
            seq=answer.seq.tolist() if learn else UNSET,
            incident=incident_ids(answer.incident.tolist()) if learn else UNSET,
            event=incident_events(answer.event.tolist()) if learn else UNSET,
            explanation=explanations(answer),
            explanation_note=UNSET if answer.explained is None else CONTRIBUTIONS_NOTE,
            as_of_seq=UNSET if learn else answer.as_of_seq,
        )
    )


def explanations(answer: Answer) -> list[Explanation | None] | UnsetType:
    """Give the column of explanations, features by their names; none if they were not asked for."""
    if answer.explained is None:
        return UNSET
    return [None if one is None else named(one, answer.features) for one in answer.explained]


def named(explained: Explained, features: Sequence[str]) -> Explanation:
    """Give an explanation by the names of the features."""
    contributions = dict(zip(features, explained.contributions, strict=True))
    expected = dict(zip(features, explained.expected, strict=True))
    return Explanation(
        contributions, expected, explained.path[-1], explained.path, explained.labels, explained.nearest_anomaly
    )


LINES = {
    "type": "string",
    "description": "a sample a line: an array, an object of named values, or an ObserveLine",
    "examples": ['[0.31, 18]\n{"sample": [0.29, null], "id": "req-2"}\n'],
}
ROWS = {
    "type": "string",
    "format": "binary",
    "description": "little-endian float64 rows, NaN = missing; the stream must exist",
}

# without examples: the documentation's form would fill them in, and streams without a calendar refuse them
CALENDAR_QUERY: Parameters = {
    "calendar": (
        {"type": "string"},
        "periods of the calendar that a new stream gets, such as day,week (or seconds); a stream that exists must have "
        "the same",
    ),
    "timezone": ({"type": "string"}, "time zone of the calendar, such as Europe/Berlin; default: UTC"),
}

ROUTES = [
    Route(
        "POST",
        "/observe",
        post_observe,
        Operation(
            id="observe",
            tag="samples",
            summary="Score samples, decide, learn",
            description="With `learn=false` the scope `read` is enough.",
            scope=Scope.OBSERVE,
            query={
                "stream": (STREAM, "the stream; it is created by its first samples"),
                "learn": ({"type": "boolean", "default": True}, "false: score only, keep nothing"),
                "explain": ({"type": "boolean", "default": False}, "true: explain the flagged samples"),
                **CALENDAR_QUERY,
            },
            optional=frozenset(CALENDAR_QUERY),
            body={JSON: ref("ObserveBody"), NDJSON: LINES, BYTES: ROWS},
            answers={200: Answered({JSON: ref("ObserveAnswer")})},
            problems=(
                "unknown_stream",
                "stream_exists",
                "id_conflict",
                "too_many",
                "invalid_config",
                "invalid_samples",
                "invalid_ids",
                "invalid_timestamps",
                "quota_exceeded",
            ),
        ),
    )
]
