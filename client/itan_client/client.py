"""The blocking client."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import Concatenate, Final, ParamSpec, Self, TypeVar

import httpx2

from itan_client import calls
from itan_client.answers.events import Event, StreamDeleted
from itan_client.connection import DEFAULT_URL, Connection
from itan_client.errors import ApiError, ServiceUnreachable, api_error, unreachable
from itan_client.events import EventReader
from itan_client.request import Page, Request
from itan_client.retries import Retries

P = ParamSpec("P")
T = TypeVar("T")
RETRY_SECONDS: Final = 30.0


def _sending(call: Callable[P, Request[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(call)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(call(*args, **kwargs))

    return method


def _iterating(call: Callable[P, Request[Page[T]]]) -> "Callable[Concatenate[Client, P], Iterator[T]]":
    @wraps(call)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        request: Request[Page[T]] | None = call(*args, **kwargs)
        while request is not None:
            page = self.send(request)
            yield from page.entries
            request = page.next

    return method


class Client:
    """Call one itan service; use it as a context manager or close it.

    A request that fails for a passing reason (429, 503, no answer) is sent again, for at most `retry_seconds`, if the
    repeat cannot count twice: reads, labels, and samples with ids, which they have unless you say otherwise.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        retry_seconds: float = RETRY_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(url, key, timeout_seconds)
        self._retry_seconds, self._sleep, self._clock = retry_seconds, sleep, clock
        self._http = httpx2.Client(transport=transport, **self._connection.options())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    observe = _sending(calls.observe)
    observe_in_parts = _iterating(calls.observe_in_parts)
    score = _sending(calls.score)
    feedback = _sending(calls.feedback)
    ingest = _sending(calls.ingest)
    ingest_lines = _sending(calls.ingest_lines)
    density = _sending(calls.density)
    model = _sending(calls.model)
    grid = _sending(calls.grid)
    band = _sending(calls.band)
    create = _sending(calls.create)
    estimate = _sending(calls.estimate)
    get = _sending(calls.get)
    patch = _sending(calls.patch)
    clone = _sending(calls.clone)
    delete = _sending(calls.delete)
    reset = _sending(calls.reset)
    export = _sending(calls.export)
    import_ = _sending(calls.import_)
    streams = _iterating(calls.streams)
    summaries = _iterating(calls.summaries)
    overview = _sending(calls.overview)
    history = _sending(calls.history)
    sample = _sending(calls.sample)
    review = _sending(calls.review)
    incidents = _iterating(calls.incidents)
    incident = _sending(calls.incident)
    label_incident = _sending(calls.label_incident)
    check = _sending(calls.check)
    repair = _sending(calls.repair)
    accept = _sending(calls.accept)
    sources = _sending(calls.sources)
    get_source = _sending(calls.get_source)
    put_source = _sending(calls.put_source)
    delete_source = _sending(calls.delete_source)
    templates = _sending(calls.templates)
    get_template = _sending(calls.get_template)
    put_template = _sending(calls.put_template)
    delete_template = _sending(calls.delete_template)
    rules = _sending(calls.rules)
    get_rule = _sending(calls.get_rule)
    put_rule = _sending(calls.put_rule)
    delete_rule = _sending(calls.delete_rule)
    test_rule = _sending(calls.test_rule)
    windows = _sending(calls.windows)
    get_window = _sending(calls.get_window)
    put_window = _sending(calls.put_window)
    delete_window = _sending(calls.delete_window)

    def watch(self, stream: str, after: str = "", *, values: bool = False) -> Iterator[Event]:
        """Iterate over what happens to a stream from now on, or from a position of its log, until it is deleted.

        A lost connection is made anew, and continues where it ended.
        """
        reader, retries = EventReader(after), self._retries(repeatable=True)
        while True:
            request = calls.events(stream, reader.position, values=values)
            try:
                with self._opened(request, self._connection.silence_seconds) as answer:
                    for line in answer.iter_lines():
                        retries = self._retries(repeatable=True)
                        if (event := reader.read(line)) is not None:
                            yield event
                            if isinstance(event, StreamDeleted):
                                return
                failure: ApiError | ServiceUnreachable = ServiceUnreachable("the service ended the answer")
            except (ApiError, ServiceUnreachable) as error:
                failure = error
            self._sleep(retries.pause_after(failure))

    def send(self, request: Request[T]) -> T:
        """Send a request, again if that is safe and may help, and read its answer."""
        retries = self._retries(repeatable=request.repeatable)
        while True:
            try:
                return request.read(self._answer(request))
            except (ApiError, ServiceUnreachable) as error:
                pause = retries.pause_after(error)
            self._sleep(pause)

    def _answer(self, request: Request[T]) -> bytes:
        with self._opened(request, self._connection.timeout_seconds) as answer:
            return answer.read()

    @contextmanager
    def _opened(self, request: Request[T], silence_seconds: float) -> Iterator[httpx2.Response]:
        """Send a request once. Raises ApiError for an answer that is no success, and ServiceUnreachable for none."""
        try:
            with self._http.stream(
                request.method,
                request.path,
                params=request.params,
                content=request.body,
                headers=request.headers,
                timeout=silence_seconds,
            ) as answer:
                if not answer.is_success:
                    answer.read()
                    raise api_error(answer)
                yield answer
        except httpx2.TransportError as error:
            raise unreachable(self._connection.url, error) from error

    def _retries(self, *, repeatable: bool) -> Retries:
        return Retries(self._retry_seconds, repeatable=repeatable, clock=self._clock)
