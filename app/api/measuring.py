"""Counts and times every request."""

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import OTHER, Metrics


class Measured:
    """A middleware; it counts requests without a route together."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500  # for a request that raises before it answers
        start = perf_counter()
        answered_at: float | None = None

        async def note_status(message: Message) -> None:
            nonlocal status, answered_at
            if message["type"] == "http.response.start":
                # an event stream goes on for hours after this
                status, answered_at = message["status"], perf_counter()
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            # a HEAD is a GET without the body
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            self._metrics.answered(route, method, status, (answered_at or perf_counter()) - start)
