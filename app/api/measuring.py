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

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            self._metrics.answered(route, scope["method"], status, perf_counter() - start)
