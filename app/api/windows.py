"""/windows: when samples of which streams are scored, but neither learned nor told."""

from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, invalid_form, read_small
from app.api.moments import LATEST, LIMIT, is_plausible
from app.api.queries import WINDOW, read_query
from app.api.routing import JSON, OF_STORE, Answer, Operation, Route, answer, ref
from app.api.schemas.types import Moment
from app.api.schemas.windows import WindowAnswer, WindowBody, WindowList
from app.api.service import Service, service_of
from app.security import Scope
from app.streams.batches.timestamps import advice
from app.windows import InvalidWindow, UnknownWindow, Window, check, keep


async def put_window(request: Request) -> Response:
    """Keep a window, for a key that may label all its streams, and those of the one that it replaces."""
    service, name = asked(request, Scope.LABEL)
    window = read_window(checked_tree(await read_small(request)))
    check(name, window)
    service.keys.permit(request, Scope.LABEL, window.streams)
    with suppress(UnknownWindow):
        service.keys.permit(request, Scope.LABEL, (await service.windows.newest(name)).streams)
    is_new = await service.tasks.shielded(keep(service.windows, name, window, service.registry.worker.clock.now()))
    return answer(described(name, window), 201 if is_new else 200)


async def get_window(request: Request) -> Response:
    """Give a window."""
    service, name = asked(request, Scope.READ)
    window = await service.windows.newest(name)
    service.keys.permit(request, Scope.READ, window.streams)
    return answer(described(name, window))


async def delete_window(request: Request) -> Response:
    """Delete a window; what was decided by it stays."""
    service, name = asked(request, Scope.LABEL)
    window = await service.windows.newest(name)
    service.keys.permit(request, Scope.LABEL, window.streams)
    await service.tasks.shielded(service.windows.delete(name))
    return Response(status_code=204)


async def get_windows(request: Request) -> Response:
    """List the windows whose streams the key may read."""
    service, _ = asked(request, Scope.READ)
    kept = await service.windows.all()
    visible = set(service.keys.visible(request, [window.streams for window in kept.values()]))
    return answer(WindowList([described(name, one) for name, one in kept.items() if one.streams in visible]))


def asked(request: Request, scope: Scope) -> tuple[Service, str]:
    """Give the window that the path names, if the request's key may do this on any stream."""
    service = service_of(request)
    service.keys.permit(request, scope)
    read_query(request)
    return service, request.path_params.get("window", "")


def read_window(given: Any) -> Window:
    """Read a window. Raises InvalidBody or InvalidWindow."""
    if not isinstance(given, dict):
        raise InvalidBody(
            "body", given, 'an object, such as {"streams": "web-*", "from": 1800000000, "to": 1800003600}'
        )
    try:
        body = msgspec.convert(given, WindowBody)
    except msgspec.ValidationError as error:
        raise invalid_form(str(error), given, "", tuple(WindowBody.__struct_encode_fields__)) from error
    return Window(body.streams, seconds_of("from", body.begin), seconds_of("to", body.end), body.reason)


def seconds_of(field: str, moment: Moment) -> float:
    """Give a time in epoch seconds. Raises InvalidWindow for one that no sample can have."""
    seconds = moment.timestamp() if isinstance(moment, datetime) else float(moment)
    if not is_plausible(seconds):
        raise InvalidWindow(field, seconds, LIMIT + advice(seconds, LATEST))
    return seconds


def described(name: str, window: Window) -> WindowAnswer:
    """Describe a window as an answer does."""
    return WindowAnswer(**msgspec.structs.asdict(window), window=name)


PATH = {"window": (WINDOW, "the window")}
ONE = {JSON: ref("WindowAnswer")}
ROUTES = [
    Route(
        "GET",
        "/windows",
        get_windows,
        Operation(
            id="list_windows",
            tag="windows",
            summary="List maintenance windows",
            description="A key sees those whose streams it may all read.",
            scope=Scope.READ,
            answers={200: Answer({JSON: ref("WindowList")})},
            problems=OF_STORE,
        ),
    ),
    Route(
        "PUT",
        "/windows/{window}",
        put_window,
        Operation(
            id="put_window",
            tag="windows",
            summary="Keep a maintenance window",
            description="Needs the scope `label` on all its streams. Other workers follow within seconds.",
            scope=Scope.LABEL,
            path=PATH,
            body={JSON: ref("WindowBody")},
            answers={200: Answer(ONE, "Replaced"), 201: Answer(ONE, "Created")},
            problems=("invalid_window", "too_many", *OF_STORE),
        ),
    ),
    Route(
        "GET",
        "/windows/{window}",
        get_window,
        Operation(
            id="get_window",
            tag="windows",
            summary="Get a maintenance window",
            scope=Scope.READ,
            path=PATH,
            answers={200: Answer(ONE)},
            problems=("unknown_window", *OF_STORE),
        ),
    ),
    Route(
        "DELETE",
        "/windows/{window}",
        delete_window,
        Operation(
            id="delete_window",
            tag="windows",
            summary="Delete a maintenance window",
            scope=Scope.LABEL,
            path=PATH,
            answers={204: Answer()},
            problems=("unknown_window", *OF_STORE),
        ),
    ),
]
