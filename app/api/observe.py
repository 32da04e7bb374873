"""POST /observe: score, decide, learn."""

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import media_type, read_body
from app.api.problems import NotAvailable
from app.api.queries import STREAM, flag_in, read_query, stream_in
from app.api.routing import BYTES, JSON, NDJSON, Route, operation, ref
from app.api.sample_bodies import read_batch
from app.api.schemas import ObserveAnswer
from app.api.service import Service, service_of
from app.security import Scope
from app.streams.observing import Answer, Batch, observe
from app.streams.reading import score

_ENCODER = msgspec.json.Encoder()


async def post_observe(request: Request) -> Response:
    """Score a batch of samples and learn it, or with learn=false score it only."""
    service = service_of(request)
    query = read_query(request, "stream", "learn", "explain")
    stream, learn = stream_in(query), flag_in(query, "learn", default=True)
    if flag_in(query, "explain", default=False):
        raise NotAvailable("explain", "true", "false: explanations are not offered yet")
    service.keys.permit(request, Scope.OBSERVE if learn else Scope.READ, stream)
    media = media_type(request, JSON, NDJSON, BYTES)
    body = await read_body(request, service.settings.max_body_bytes)
    batch = read_batch(media, body, service.settings.max_batch_samples)
    if learn:
        answer = await service.registry.shielded(learn_batch(service, stream, batch))
    else:
        answer = await score_batch(service, stream, batch)
    return Response(encode(stream, answer, batch.ids, learn=learn), media_type=JSON)


async def learn_batch(service: Service, stream: str, batch: Batch) -> Answer:
    """Observe a batch when it is its turn."""
    async with service.registry.changing(stream) as session:
        return await observe(session, batch)


async def score_batch(service: Service, stream: str, batch: Batch) -> Answer:
    """Score a batch by the model as it is."""
    async with service.registry.reading(stream) as session:
        return await score(session, batch)


def encode(stream: str, answer: Answer, ids: tuple[str, ...], *, learn: bool) -> bytes:
    """Write the answer in columns; NaN becomes null."""
    return _ENCODER.encode(
        ObserveAnswer(
            stream=stream,
            score=answer.score.tolist(),
            threshold=answer.threshold.tolist(),
            is_anomaly=answer.is_anomaly.tolist(),
            ready=answer.ready.tolist(),
            samples_needed=answer.samples_needed,
            ids=[client_id or None for client_id in ids] if ids else None,
            seq=answer.seq.tolist() if learn else UNSET,
            as_of_seq=UNSET if learn else answer.as_of_seq,
        )
    )


ROUTES = [
    Route(
        "POST",
        "/observe",
        post_observe,
        summary="Score samples, decide, learn",
        operation=operation(
            query={
                "stream": (STREAM, "the stream; it is created by its first samples"),
                "learn": ({"type": "boolean", "default": True}, "false: score only, keep nothing"),
                "explain": ({"type": "boolean", "default": False}, "not offered yet"),
            },
            body={
                JSON: ref("ObserveBody"),
                NDJSON: ref("ObserveLine"),
                BYTES: {
                    "type": "string",
                    "format": "binary",
                    "description": "little-endian float64 rows, NaN = missing",
                },
            },
            answer={JSON: ref("ObserveAnswer")},
        ),
    )
]
