"""/streams/S: create, describe, reset, delete, export and import a stream."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.api.admission import permitted_allowance
from app.api.bodies.reading import InvalidBody, checked_tree, media_type, read_body, read_small
from app.api.cloning import read_warm_start, warm_from
from app.api.listing import SILENT, silent_seconds_in
from app.api.queries import STREAM, read_query
from app.api.routing import BYTES, FILE, JSON, Answer, Operation, Route, answer, ref
from app.api.schemas.streams import StreamEstimate
from app.api.service import Service, permitted_path_stream, service_of
from app.security import Scope
from app.streams.allowance import Allowance
from app.streams.changes.lifecycle import create, reset, restore
from app.streams.changes.reconfigure import reconfigure
from app.streams.errors import UnknownStream
from app.streams.ids import checked_stream_id
from app.streams.open.models import WarmStart
from app.streams.open.replacement import delete, delete_silent
from app.streams.open.sizes import estimate
from app.streams.views.score import describe
from core import DetectorConfig


async def put_stream(request: Request) -> Response:
    """Create a stream with a config of its own."""
    service, stream = service_of(request), checked_stream_id(request.path_params["stream"])
    allowance = permitted_allowance(request, Scope.ADMIN, stream)
    given = await read_fields(request)
    warm = read_warm_start(given.pop("warm_start", None))
    if warm is not None:
        service.keys.permit(request, Scope.READ, warm.source)
    DetectorConfig.from_dict(given)
    await allowance.keep(0)
    return await service.tasks.shielded(create_stream(service, stream, given, allowance, warm))


async def read_fields(request: Request) -> dict[str, Any]:
    """Read a body that is the fields of a stream's config."""
    read_query(request)
    return read_object(checked_tree(await read_small(request)), '{"n_features": 2}')


def read_object(given: Any, example: str) -> dict[str, Any]:
    """Give a body that is an object. Raises InvalidBody."""
    if not isinstance(given, dict):
        raise InvalidBody("body", given, f"an object, such as {example}")
    return given


async def create_stream(
    service: Service, stream: str, given: Mapping[str, Any], allowance: Allowance, warm: WarmStart | None
) -> Response:
    """Create a stream when it is the request's turn."""
    made = None if warm is None else await warm_from(service, warm)
    async with service.registry.changing(stream) as session:
        is_new = await create(session, given, allowance, made)
        return answer(await describe(session), 201 if is_new else 200)


async def post_estimate(request: Request) -> Response:
    """Say what a stream of a config would take, without creating one."""
    service = service_of(request)
    service.keys.permit(request, Scope.READ)
    expected = estimate(DetectorConfig.from_dict(await read_fields(request)))
    streams = int(service.settings.memory_budget_bytes // expected.memory_bytes)
    return answer(
        StreamEstimate(expected.memory_bytes, expected.snapshot_bytes, expected.log_bytes_per_sample, streams)
    )


async def get_stream(request: Request) -> Response:
    """Say how a stream is configured and how it stands."""
    stream = permitted_path_stream(request, Scope.READ)
    read_query(request)
    async with service_of(request).registry.reading(stream) as session:
        return answer(await describe(session))


async def patch_stream(request: Request) -> Response:
    """Change fields of a stream's config; it keeps what it has learned."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.ADMIN)
    read_query(request)
    changes = read_object(checked_tree(await read_small(request)), '{"expected_anomaly_rate": 0.001}')
    return await service.tasks.shielded(change_stream(service, stream, changes))


async def change_stream(service: Service, stream: str, changes: Mapping[str, Any]) -> Response:
    """Change a stream's config when it is the request's turn."""
    async with service.registry.changing(stream) as session:
        await reconfigure(session, changes)
        return answer(await describe(session))


async def delete_stream(request: Request) -> Response:
    """Delete a stream with all that it has learned."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.ADMIN)
    silent_seconds = silent_seconds_in(read_query(request, "silent_seconds"))
    await service.tasks.shielded(forget_stream(service, stream, silent_seconds))
    return Response(status_code=204)


async def forget_stream(service: Service, stream: str, silent_seconds: int) -> None:
    """Delete a stream when it is the request's turn; NotSilent if it must be silent and is not."""
    async with service.registry.changing(stream) as session:
        if silent_seconds:
            await delete_silent(session, silent_seconds)
        elif not await delete(session):
            raise UnknownStream(stream)


async def post_reset(request: Request) -> Response:
    """Forget what a stream has learned; its config stays and its seq goes on."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.ADMIN)
    read_query(request)
    return await service.tasks.shielded(reset_stream(service, stream))


async def reset_stream(service: Service, stream: str) -> Response:
    """Reset a stream when it is the request's turn."""
    async with service.registry.changing(stream) as session:
        await reset(session)
        return answer(await describe(session))


async def get_export(request: Request) -> Response:
    """Give a stream's whole state as a file."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    read_query(request)
    async with service.registry.changing(stream) as session:
        body = (await session.latest()).exported()
    return Response(body, media_type=BYTES, headers={"Content-Disposition": 'attachment; filename="stream.itan"'})


async def put_import(request: Request) -> Response:
    """Put an exported state in the place of a stream, or make it, or an image, a new stream."""
    service, stream = service_of(request), checked_stream_id(request.path_params["stream"])
    allowance = permitted_allowance(request, Scope.ADMIN, stream)
    read_query(request)
    media_type(request, BYTES)
    body = await read_body(request, service.settings.max_import_bytes, "ITAN_MAX_IMPORT_BYTES")
    await allowance.keep(len(body))
    return await service.tasks.shielded(restore_stream(service, stream, body, allowance))


async def restore_stream(service: Service, stream: str, body: bytes, allowance: Allowance) -> Response:
    """Import when it is the request's turn."""
    async with service.registry.changing(stream) as session:
        await restore(session, body, allowance)
        return answer(await describe(session))


PATH = {"stream": (STREAM, "the stream")}
DESCRIPTION = {JSON: ref("StreamDescription")}
ROUTES = [
    Route(
        "PUT",
        "/streams/{stream}",
        put_stream,
        Operation(
            id="create_stream",
            tag="streams",
            summary="Create a stream",
            scope=Scope.ADMIN,
            path=PATH,
            body={JSON: ref("NewStream")},
            answers={
                200: Answer(DESCRIPTION, "The stream exists already, with this config"),
                201: Answer(DESCRIPTION, "Created"),
            },
            problems=("stream_exists", "invalid_config", "quota_exceeded", "unknown_stream", "not_ready"),
        ),
    ),
    Route(
        "POST",
        "/streams/estimate",
        post_estimate,
        Operation(
            id="estimate_stream",
            tag="streams",
            summary="Estimate the size of a stream",
            scope=Scope.READ,
            body={JSON: ref("StreamConfig")},
            answers={200: Answer({JSON: ref("StreamEstimate")})},
            problems=("invalid_config",),
        ),
    ),
    Route(
        "GET",
        "/streams/{stream}",
        get_stream,
        Operation(
            id="get_stream",
            tag="streams",
            summary="Get a stream's config and state",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer(DESCRIPTION)},
            problems=("unknown_stream",),
        ),
    ),
    Route(
        "PATCH",
        "/streams/{stream}",
        patch_stream,
        Operation(
            id="change_stream",
            tag="streams",
            summary="Change a stream's config",
            description="The stream keeps what it has learned. A field that cannot change is refused, with the reason.",
            scope=Scope.ADMIN,
            path=PATH,
            body={JSON: ref("StreamChanges")},
            answers={200: Answer(DESCRIPTION)},
            problems=("unknown_stream", "invalid_config"),
        ),
    ),
    Route(
        "DELETE",
        "/streams/{stream}",
        delete_stream,
        Operation(
            id="delete_stream",
            tag="streams",
            summary="Delete a stream",
            scope=Scope.ADMIN,
            path=PATH,
            query={"silent_seconds": (SILENT, "delete it only if it has been silent for at least so long")},
            answers={204: Answer()},
            problems=("unknown_stream", "not_silent"),
        ),
    ),
    Route(
        "POST",
        "/streams/{stream}/reset",
        post_reset,
        Operation(
            id="reset_stream",
            tag="streams",
            summary="Forget what a stream has learned",
            scope=Scope.ADMIN,
            path=PATH,
            answers={200: Answer(DESCRIPTION)},
            problems=("unknown_stream",),
        ),
    ),
    Route(
        "GET",
        "/streams/{stream}/export",
        get_export,
        Operation(
            id="export_stream",
            tag="streams",
            summary="Get a stream's whole state",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer(FILE, headers={"Content-Disposition": ({"type": "string"}, "a name for the file")})},
            problems=("unknown_stream", "stream_moved", "stream_elsewhere"),
        ),
    ),
    Route(
        "PUT",
        "/streams/{stream}/import",
        put_import,
        Operation(
            id="import_stream",
            tag="streams",
            summary="Replace a stream's state with an exported one",
            scope=Scope.ADMIN,
            path=PATH,
            body=FILE,
            description="An image, as itan backfill writes, can only become a new stream.",
            answers={200: Answer(DESCRIPTION)},
            problems=("invalid_snapshot", "quota_exceeded", "stream_exists"),
        ),
    ),
]
