"""GET /streams/S/events: what happens to a stream, as server-sent events."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.api.histories import columns
from app.api.queries import InvalidQuery, flag_in, read_query
from app.api.routing import Answer, Operation, Parameters, Route
from app.api.service import service_of
from app.api.streams import PATH
from app.security import Grant
from app.security import Scope as KeyScope
from app.settings import Settings
from app.streams.errors import Stopping
from app.streams.ids import checked_stream_id
from app.streams.log.positions import Position, parse_position
from app.streams.open.subscriptions import NO_LIMIT, WatchLimit
from app.streams.views.tail import Deleted, Heartbeat, NewConfig, NewLabels, NewLog, NewModel, NewSamples, Update

EVENTS = "text/event-stream"
RETRY_MS = 1_000
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_ENCODER = msgspec.json.Encoder()


async def get_events(request: Request) -> "Events":
    """Tell what happens to a stream from now on, or from a position of its log."""
    service, stream = service_of(request), checked_stream_id(request.path_params["stream"])
    limit = watch_limit_of(service.settings, service.keys.permit(request, KeyScope.READ, stream))
    query = read_query(request, "after", "values")
    after, values = position_asked_for(request, query), flag_in(query, "values", default=False)
    if service.is_stopping:
        raise Stopping
    return Events(request, stream, after, limit, values=values)


class Events(StreamingResponse):
    """The events of one stream, for one watcher."""

    def __init__(
        self, request: Request, stream: str, after: Position | None, limit: WatchLimit, *, values: bool
    ) -> None:
        self._request, self._service = request, service_of(request)
        self._stream, self._after, self._limit, self._values = stream, after, limit, values
        self._tail = self._service.catalog.tail(stream)
        super().__init__(self._events(), headers=HEADERS, media_type=EVENTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the stream, the service or the watcher is gone."""
        # subscribe before the first await, so that the limit of watchers holds
        with self._service.registry.worker.subscriptions.subscribe(self._stream, self._limit) as self._subscription:
            await self._tail.begin(self._after)
            await super().__call__(scope, receive, send)

    def _is_over(self) -> bool:
        keys = self._service.keys
        return self._service.is_stopping or not keys.permits(self._request, KeyScope.READ, self._stream)

    async def _events(self) -> AsyncIterator[bytes]:
        if self._request.method == "HEAD":
            return
        # at once, so that a browser that loses the connection knows where to continue
        yield b"retry: %d\nid: %s\n\n" % (RETRY_MS, str(self._tail.position).encode())
        async for update in self._tail.updates(self._subscription, self._is_over):
            yield written(update, values=self._values)


def watch_limit_of(settings: Settings, grant: Grant | None) -> WatchLimit:
    """Give the limit of watchers of a key."""
    if grant is None:
        return NO_LIMIT
    own, key = grant.limits.watchers, str(grant.name)
    if own is None:
        return WatchLimit(key, settings.max_key_watchers, "ITAN_MAX_KEY_WATCHERS")
    return WatchLimit(key, own, f"limit of key {key!r}")


def position_asked_for(request: Request, query: dict[str, str]) -> Position | None:
    """Give the position to continue from; a browser that reconnects names its last event."""
    after, header = query.get("after"), request.headers.get("last-event-id")
    positions = [read_position("after", after), read_position("last-event-id", header)]
    return positions[header is not None]


def read_position(name: str, text: str | None) -> Position | None:
    """Read a position as events carry it; an empty one is none."""
    if not text:
        return None
    try:
        return parse_position(text)
    except ValueError:
        raise InvalidQuery(name, text, "a position in the log, such as 17-0") from None


def written(update: Update, *, values: bool) -> bytes:
    """Write an update as an event; updates of the log carry the position to go on from."""
    match update:
        case NewSamples():
            known = columns(update.rows, values=values) | {"thinned": update.is_downsampled}
            return event("samples", known, update.position)
        case NewLabels():
            told = {"seq": update.seq, "label": update.label, "accepted": update.accepted}
            return event("labels", told | {"threshold": update.threshold}, update.position)
        case NewConfig():
            told = {"changed": update.changed, "threshold": update.threshold}
            return event("config", told, update.position)
        case NewModel():
            return event("model", {"n_seen": update.n_seen, "n_nodes": update.n_nodes, "levels": update.n_levels})
        case NewLog():
            return event("reset", {"position": str(update.position)}, update.position)
        case Deleted():
            return event("deleted", {})
        case Heartbeat():
            return b": nothing new\n\n"


def event(name: str, data: dict[str, Any], position: Position | None = None) -> bytes:
    """Write one event."""
    place = b"" if position is None else b"id: %s\n" % str(position).encode()
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), place, _ENCODER.encode(data))


POSITION = {"type": "string", "pattern": "^([0-9]{1,15}-[0-9]{1,15})?$", "examples": ["17-0"]}
QUERY: Parameters = {
    "after": (POSITION, "the log position to continue from, unless the header Last-Event-ID gives one"),
    "values": ({"type": "boolean", "default": False}, "true: samples with the values of their features"),
}
SENT = 'id: 17-0\n\nevent: labels\nid: 18-0\ndata: {"seq":[17],"label":[true],"accepted":[],"threshold":9.1}\n\n'

ROUTES = [
    Route(
        "GET",
        "/streams/{stream}/events",
        get_events,
        Operation(
            id="watch_stream",
            tag="watching",
            summary="Watch a stream, by server-sent events",
            description="The answer goes on until the stream is deleted or the service stops.",
            scope=KeyScope.READ,
            path=PATH,
            query=QUERY,
            headers={"Last-Event-ID": (POSITION, "as a browser sends it when it connects again")},
            optional=frozenset({"after"}),
            answers={200: Answer({EVENTS: {"examples": [SENT]}})},
            problems=("unknown_stream", "too_many_watchers", "quota_exceeded"),
        ),
    )
]
