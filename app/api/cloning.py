"""POST /streams/S/clone: a stream with the whole state of another; and streams that start warm."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.admission import permitted_allowance
from app.api.bodies.reading import invalid_form
from app.api.queries import STREAM, InvalidQuery, read_query
from app.api.routing import JSON, Answer, Operation, Route, answer, ref
from app.api.service import Service, permitted_path_stream, service_of
from app.security import Scope
from app.streams.allowance import Allowance
from app.streams.changes.lifecycle import clone
from app.streams.ids import checked_stream_id
from app.streams.open.models import WarmStart
from app.streams.slices import copy_of
from app.streams.views.score import describe
from core import Detector, DetectorConfig


def read_warm_start(given: Any) -> WarmStart | None:
    """Read the field of a body; None if it is left out. Raises InvalidBody or InvalidStreamId."""
    if given is None:
        return None
    try:
        warm = msgspec.convert(given, WarmStart)
    except msgspec.ValidationError as error:
        raise invalid_form(str(error), given, "warm_start", ("from", "samples")) from error
    checked_stream_id(warm.source)
    return warm


async def warm_from(service: Service, warm: WarmStart) -> Callable[[DetectorConfig], Detector]:
    """Give what makes detectors with the model that a stream has now. Raises UnknownStream."""
    async with service.registry.changing(warm.source) as session:
        source = copy_of((await session.latest()).detector)
    return lambda config: Detector.warm_started(config, source, warm.samples)


async def post_clone(request: Request) -> Response:
    """Make a new stream of the state of another one."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    query = read_query(request, "to")
    if "to" not in query:
        raise InvalidQuery("to", None, "given")
    target = checked_stream_id(query["to"])
    allowance = permitted_allowance(request, Scope.ADMIN, target)
    async with service.registry.changing(stream) as session:
        body = (await session.latest()).exported()
    await allowance.keep(len(body))
    return await service.tasks.shielded(clone_stream(service, target, body, allowance))


async def clone_stream(service: Service, target: str, body: bytes, allowance: Allowance) -> Response:
    """Create the clone when it is the request's turn."""
    async with service.registry.changing(target) as session:
        await clone(session, body, allowance)
        return answer(await describe(session), 201)


ROUTES = [
    Route(
        "POST",
        "/streams/{stream}/clone",
        post_clone,
        Operation(
            id="clone_stream",
            tag="streams",
            summary="Make a new stream with the state of another one",
            description="Needs a key that may read the one and administer the other.",
            scope=Scope.ADMIN,
            path={"stream": (STREAM, "the stream to copy")},
            query={"to": (STREAM, "the new stream")},
            answers={201: Answer({JSON: ref("StreamDescription")}, "Created")},
            problems=("unknown_stream", "stream_exists", "quota_exceeded", "stream_moved", "stream_elsewhere"),
        ),
    ),
]
