"""/windows: when samples of which streams are scored, but neither learned nor told."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies.reading import InvalidBody, checked_tree, invalid_form, read_small
from app.api.bodies.records import seconds_of
from app.api.documents import Resource, permitted, refuse_name
from app.api.moments import is_plausible, limit_for
from app.api.routing import answer
from app.api.schemas.types import Moment
from app.api.schemas.windows import WindowAnswer, WindowBody, WindowList
from app.api.service import service_of
from app.security import Forbidden, Scope
from app.windows import InvalidWindow, UnknownWindow, Window, check, keep

KIND: Final = UnknownWindow.kind


async def put_window(request: Request) -> Response:
    """Keep a window, for a key that may label all its streams, and those of the one that it replaces."""
    service, name = permitted(request, KIND, Scope.LABEL)
    refuse_name(KIND, name, InvalidWindow)
    window = read_window(checked_tree(await read_small(request)))
    check(window)
    service.keys.permit(request, Scope.LABEL, window.streams)
    over_before = service.registry.worker.clock.now() - service.settings.timestamp_allowance_seconds
    keeping = keep(service.windows, name, window, lambda one: permits(request, Scope.LABEL, one), over_before)
    is_new = await service.tasks.shielded(keeping)
    return answer(described(name, window), 201 if is_new else 200)


async def get_window(request: Request) -> Response:
    """Give a window."""
    service, name = permitted(request, KIND, Scope.READ)
    window = await service.windows.newest(name)
    if not permits(request, Scope.READ, window):
        raise UnknownWindow(name)
    return answer(described(name, window))


async def delete_window(request: Request) -> Response:
    """Delete a window; what was decided by it stays."""
    service, name = permitted(request, KIND, Scope.LABEL)

    def check_old(old: Window) -> None:
        if not permits(request, Scope.LABEL, old):
            raise Forbidden(Scope.LABEL, old.streams) if permits(request, Scope.READ, old) else UnknownWindow(name)

    await service.tasks.shielded(service.windows.delete(name, check_old))
    return Response(status_code=204)


async def get_windows(request: Request) -> Response:
    """List the windows whose streams the key may read."""
    service, _ = permitted(request, KIND, Scope.READ)
    kept = await service.windows.all()
    visible = set(service.keys.visible(request, [window.streams for window in kept.values()]))
    return answer(WindowList([described(name, one) for name, one in kept.items() if one.streams in visible]))


def permits(request: Request, scope: Scope, window: Window) -> bool:
    """Tell whether the request may do this on all streams of a window."""
    return service_of(request).keys.permits(request, scope, window.streams)


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
    return Window(body.streams, plausible("from", body.begin), plausible("to", body.end), body.reason)


def plausible(field: str, moment: Moment) -> float:
    """Give a time in epoch seconds. Raises InvalidWindow for one that no sample can have."""
    seconds = seconds_of(moment)
    if not is_plausible(seconds):
        raise InvalidWindow(field, seconds, limit_for(seconds))
    return seconds


def described(name: str, window: Window) -> WindowAnswer:
    """Describe a window as an answer does."""
    return WindowAnswer(**msgspec.structs.asdict(window), window=name)


ROUTES = Resource(
    kind=KIND,
    noun="maintenance window",
    example="deploy",
    reading=Scope.READ,
    changing=Scope.LABEL,
    on_list="A key sees those whose streams it may all read.",
    on_put="Needs the scope `label` on all its streams. Other workers follow within seconds.",
).routes(list_=get_windows, put=put_window, get=get_window, delete=delete_window)
