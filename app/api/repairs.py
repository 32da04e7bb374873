"""/streams/S/check, /repair and /accept: what an operator does about a damaged stream."""

from starlette.requests import Request
from starlette.responses import Response

from app.api.queries import STREAM, flag_in, read_query
from app.api.routing import JSON, Answer, Operation, Parameters, Route, answer, ref
from app.api.service import Service, permitted_path_stream, service_of
from app.security import Scope
from app.streams.maintenance.repair import accept, repair, report
from app.streams.views.score import describe


async def get_check(request: Request) -> Response:
    """Replay a stream's log beside its work, and say what is wrong."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    read_query(request)
    return answer(report(stream, await service.checker.check(stream)))


async def post_repair(request: Request) -> Response:
    """Repair a damaged stream; what would be lost by that must be allowed."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.ADMIN)
    lossy = flag_in(read_query(request, "lossy"), "lossy", default=False)
    return await service.tasks.shielded(repair_stream(service, stream, lossy=lossy))


async def repair_stream(service: Service, stream: str, *, lossy: bool) -> Response:
    """Repair a stream when it is the request's turn."""
    async with service.registry.changing(stream) as session:
        return answer(await repair(session, lossy=lossy))


async def post_accept(request: Request) -> Response:
    """Take a replay that differed, or a repair, as it is."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.ADMIN)
    read_query(request)
    return await service.tasks.shielded(accept_stream(service, stream))


async def accept_stream(service: Service, stream: str) -> Response:
    """Accept when it is the request's turn."""
    async with service.registry.changing(stream) as session:
        await accept(session)
        return answer(await describe(session))


PATH = {"stream": (STREAM, "the stream")}
LOSSY: Parameters = {
    "lossy": ({"type": "boolean", "default": False}, "true: repair even if samples, or the log with its ids, are lost")
}

ROUTES = [
    Route(
        "GET",
        "/streams/{stream}/check",
        get_check,
        Operation(
            id="check_stream",
            tag="streams",
            summary="Read and replay everything stored of a stream, and say what is wrong",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer({JSON: ref("Checked")})},
            problems=("unknown_stream",),
        ),
    ),
    Route(
        "POST",
        "/streams/{stream}/repair",
        post_repair,
        Operation(
            id="repair_stream",
            tag="streams",
            summary="Repair a damaged stream",
            scope=Scope.ADMIN,
            path=PATH,
            query=LOSSY,
            answers={200: Answer({JSON: ref("Repaired")})},
            problems=("unknown_stream", "repair_loses", "invalid_state"),
        ),
    ),
    Route(
        "POST",
        "/streams/{stream}/accept",
        post_accept,
        Operation(
            id="accept_stream",
            tag="streams",
            summary="Accept what a replay or a repair has changed",
            scope=Scope.ADMIN,
            path=PATH,
            answers={200: Answer({JSON: ref("StreamDescription")})},
            problems=("unknown_stream", "invalid_state"),
        ),
    ),
]
