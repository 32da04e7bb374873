"""POST /workers/v1/records: records that another worker sends because this one holds their streams."""

from collections.abc import Iterable
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, media_type, read_body
from app.api.outcomes import documents, note_failures
from app.api.routing import Answer, Operation, Route
from app.api.schemas.ingest import RefusedRecord
from app.api.service import Service, service_of
from app.streams.changes.ingest import Outcomes, ingest
from app.workers.forwarder import Allowances, ByStream
from app.workers.messages import MOST_PER_BODY_BYTE, RefusedRow, reply, unpacked
from app.workers.peers import MEDIA, PATH
from app.workers.signatures import HEADER, refuse_other_body


async def post_records(request: Request) -> Response:
    """Learn records as the worker that holds their streams; those of other streams are refused, and go no further."""
    service = service_of(request)
    digest = service.signatures.check(request.headers.get(HEADER, ""))
    media_type(request, MEDIA)
    body = await read_body(request, MOST_PER_BODY_BYTE * service.settings.max_body_bytes)
    refuse_other_body(digest, body)
    try:
        by_stream, allowances = await unpacked(body)
    except msgspec.DecodeError as error:
        raise InvalidBody("body", f"{len(body)} bytes", "a message as this version writes it") from error
    outcomes = Outcomes({})
    released = await service.tasks.shielded(take(service, by_stream, allowances, outcomes))
    problems = await documents(outcomes.refused)
    note_failures(service.metrics, outcomes.refused, problems)
    return Response(reply(outcomes, packed(problems), released), media_type=MEDIA)


async def take(service: Service, by_stream: ByStream, allowances: Allowances, to: Outcomes) -> list[str]:
    """Learn records, and give up the streams of which only other workers send some; name these."""
    service.following.arrived(by_stream)
    await ingest(service.registry, by_stream, allowances, to, asks=False)
    released = service.following.learned(by_stream)
    await service.following.give_up(released)
    return released


def packed(problems: Iterable[RefusedRecord]) -> list[RefusedRow]:
    """Pack problems, for the worker that answers the client."""
    return [RefusedRow(problem.record, problem.code, msgspec.msgpack.encode(problem)) for problem in problems]


ROUTES: Final = [
    Route(
        "POST",
        PATH,
        post_records,
        Operation(
            id="take_records", tag="workers", summary="Take records from another worker", answers={200: Answer()}
        ),
    )
]
"""For workers alone, so the OpenAPI document does not describe them."""
