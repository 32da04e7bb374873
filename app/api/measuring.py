"""Counts and times every request."""

from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.metrics import OTHER, Metrics


class Measured:
    """Stands around the app; requests that no route takes are counted together."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500  # what a request ends with when it raises before it answers
        start = perf_counter()
        answered_at: float | None = None

        async def note_status(message: Message) -> None:
            nonlocal status, answered_at
            if message["type"] == "http.response.start":
                # an event stream goes on for hours after it
                status, answered_at = message["status"], perf_counter()
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            # a HEAD is a GET whose body stays here
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            self._metrics.answered(route, method, status, (answered_at or perf_counter()) - start)
