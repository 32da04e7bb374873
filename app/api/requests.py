"""Gives every request an id, and logs at most one line about it."""

import logging
import re
from collections.abc import Iterator
from itertools import count
from secrets import token_hex
from time import perf_counter
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from app.api.schemas.service import Problem
from app.logs.choices import LogLevel
from app.logs.context import Fields, begin
from app.metrics import OTHER
from app.workers.peers import PATH

HEADER = b"x-request-id"
SANE = re.compile(rb"[A-Za-z0-9._-]{1,64}")
SLOW_SECONDS = 1.0
WATCHING = {"/livez", "/readyz", "/metrics"}
FREQUENT = {"/observe", "/ingest", "/ingest/otlp/v1/metrics", "/feedback", "/density", PATH}
READING = {"GET", "HEAD"}
SHOWN_CHARACTERS = 80
NEVER = logging.CRITICAL + 1


class Logged:
    """The outermost middleware, so that even the answer to a failure carries the id."""

    def __init__(self, app: ASGIApp, level: LogLevel, *, with_values: bool) -> None:
        self._app = app
        self._with_values = with_values
        # without our log pipeline, under another server, requests are not logged
        self._least = level.number if structlog.is_configured() else NEVER
        self._logger: FilteringBoundLogger = structlog.get_logger().bind()
        self._ids = new_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = given_id(scope) or next(self._ids)
        request: Fields = {"request_id": request_id.decode(), "method": scope["method"]}
        begin(request)
        status: int | None = None  # stays None if the request is cut off before it is answered
        failure: Exception | None = None
        start = perf_counter()

        async def identify(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER, request_id)]
            await send(message)

        try:
            await self._app(scope, receive, identify)
        except Exception as error:
            failure = error
            if self._least == NEVER:
                raise
            # it has been answered; the server would log it a second time
        finally:
            self._log(scope, request, status, perf_counter() - start, failure)

    def _log(
        self, scope: Scope, request: Fields, status: int | None, seconds: float, failure: Exception | None
    ) -> None:
        route = getattr(scope.get("route"), "path", OTHER)
        level = logging.ERROR if failure else level_of(route, request["method"], status, seconds)
        problem: Problem | None = request.pop("problem", None)
        if level < self._least:
            return
        fields = {"route": route, "status": status, "duration_ms": round(seconds * 1e3, 3)}
        if problem is not None:
            fields |= refusal(problem, with_values=self._with_values)
        if failure is not None:
            fields["exc_info"] = failure
        self._logger.log(level, "request", **fields)


def new_ids() -> Iterator[bytes]:
    """Make ids that no other process makes; they need not be secret."""
    process = token_hex(6)
    return (f"{process}-{number:x}".encode() for number in count(1))


def given_id(scope: Scope) -> bytes | None:
    """Give the id that came with a request, if it is well-formed."""
    for name, value in scope["headers"]:
        if name == HEADER:
            return value if SANE.fullmatch(value) else None
    return None


def level_of(route: str, method: str, status: int | None, seconds: float) -> int:
    """Choose the level: failures are warnings; refusals, changes of streams and slow answers are information."""
    if route in WATCHING:
        return logging.DEBUG
    if status is None or status >= 500:
        return logging.WARNING
    is_change = method not in READING and route not in FREQUENT
    return logging.INFO if status >= 400 or is_change or seconds >= SLOW_SECONDS else logging.DEBUG


def refusal(problem: Problem, *, with_values: bool) -> dict[str, Any]:
    """Say why a request was refused; include what the client sent only if the settings ask for it."""
    found: dict[str, Any] = {"problem": problem.code}
    if problem.field:
        found["field"] = problem.field[:SHOWN_CHARACTERS]
    if problem.status >= 500:
        found["reason"] = problem.detail
    if with_values:
        found |= {"value": problem.value or None, "detail": problem.detail}
    return found
