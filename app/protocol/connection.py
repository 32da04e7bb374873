"""One connection: uvicorn's protocol over httptools, with limits on what it reads before there is a request."""

from enum import Enum, auto
from typing import Any, Final

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.api.bodies.reading import HOLD
from app.api.refusals import HeadTooLarge, InvalidHttp, TooManyBodies, TooManyConnections, TooSlow
from app.protocol.connections import Connections
from app.protocol.limits import (
    FRAMING_BYTES,
    LINGER_BYTES,
    LINGER_SECONDS,
    MAX_HEADERS,
    MAX_PIPELINED,
    PROBES,
)
from app.protocol.pace import Pace
from app.protocol.refusing import written
from app.streams.errors import Refused

WATCHED_HEADERS: Final = frozenset((b"expect", b"host", b"transfer-encoding"))
TLS_HANDSHAKE: Final = b"\x16\x03"
ODD_TARGETS: Final = (httptools.HttpParserError, AttributeError, UnicodeError)
"""The errors that uvicorn raises for a target without a path."""


class Stage(Enum):
    """How much of the current request has been read."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    ENDED = auto()
    """The next request may begin in the same piece."""
    OVER = auto()
    """Nothing more is read."""


# bound here: a look-up through the class runs in Python each time
IDLE, HEAD, BODY, ENDED, OVER = Stage


class Connection(HttpToolsProtocol):
    """Reads requests, and answers invalid input with a problem document.

    Answers go out in the order of the requests, even if one of them is refused. Methods that do not call uvicorn's own
    do what these do, and a test fails when uvicorn's change.
    """

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._connections = connections
        limits = connections.limits
        self._limit = limits.head_bytes
        self._body_budget = limits.body_bytes
        self._pace = Pace(limits.stall_seconds, limits.bytes_per_second)
        self.is_spare = False
        self.begun_at = 0.0  # when the last request began
        self._since = connections.now  # when it began to wait
        self._stage = IDLE
        self._room = self._limit  # bytes that may be read at once
        self._piece = 0  # bytes that are being read
        self._received = 0  # bytes of the body and its framing
        self._delivered = 0  # bytes of the body alone
        self._held = 0  # bytes of bodies that are not answered yet
        self._dropped = 0
        self._is_answering = False
        self._farewell = b""

    # what the transport calls

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._release()
        self._connections.discard(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._pace.rest()

    def data_received(self, data: bytes | memoryview) -> None:
        size = len(data)
        if size > self._room:
            self._read_in_pieces(memoryview(data))
            return
        self._piece = size
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # the answer to the earlier request says that the connection ends
            self._read_no_more()
        except httptools.HttpParserError as error:
            if self._stage is not OVER:
                self.refuse(self._reason(error, data))
        if self._stage is ENDED:
            self._stage, self._room = IDLE, self._limit
        elif self._stage is BODY:
            self._check_framing()
        elif self._stage is not OVER:
            self._room -= self._piece

    def _read_in_pieces(self, data: memoryview) -> None:
        """Feed the parser no more at once than the head may still hold."""
        while data and self._stage is not OVER:
            if not self._room:
                limit = f"at most {self._limit} bytes (ITAN_MAX_HEAD_BYTES)"
                self.refuse(HeadTooLarge("head", f"{self._limit + 1} bytes or more", limit))
                break
            piece, data = data[: self._room], data[self._room :]
            self.data_received(piece)
        self._drop(len(data))

    def _check_framing(self) -> None:
        self._received += self._piece
        if self._received > self._limit + FRAMING_BYTES * self._delivered:
            self.refuse(
                InvalidHttp(f"its chunks have more than {FRAMING_BYTES} bytes of framing for each of their own")
            )

    def _reason(self, error: httptools.HttpParserError, data: bytes | memoryview) -> Refused:
        """Say why the parser stopped."""
        cause = error.__context__
        if isinstance(cause, Refused):
            return cause
        if self._stage is not BODY and data[:2] == TLS_HANDSHAKE:
            return InvalidHttp("it looks like TLS, but the service speaks only plain HTTP")
        if cause is None:
            return InvalidHttp(str(error))
        if not isinstance(cause, ODD_TARGETS):
            self.logger.error("a request could not be read", exc_info=cause)
        return InvalidHttp("its target is not a path")

    # what the parser calls

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:
            # the last accepted answer says that the connection ends, so a client that sent more knows what to repeat
            self.cycle.keep_alive = False
            self._read_no_more()
            raise InvalidHttp("too many requests at once")
        super().on_message_begin()
        # if it begins in the middle of a piece, only what comes after the piece is counted
        self._room = self._limit if self._stage is IDLE else self._limit + self._piece
        self._stage = HEAD
        self.begun_at = self._connections.now

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if len(self.headers) >= MAX_HEADERS:
            raise HeadTooLarge("headers", f"{MAX_HEADERS + 1} headers or more", f"at most {MAX_HEADERS} headers")
        if name in WATCHED_HEADERS:
            self._check_header(name, value)
        self.headers.append((name, value))

    def _check_header(self, name: bytes, value: bytes) -> None:
        if name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"
        elif any(name == other for other, _ in self.headers):
            raise InvalidHttp(f"its header {name.decode()} occurs twice")
        elif name == b"transfer-encoding" and value.lower() != b"chunked":
            raise InvalidHttp("the only transfer encoding that the service reads is chunked")

    def on_headers_complete(self) -> None:
        is_leaving = self.parser.should_upgrade()
        if is_leaving and any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers):
            raise InvalidHttp("a request with a body cannot be an upgrade: leave out the header Upgrade")
        if self.is_spare and self.url.partition(b"?")[0] not in PROBES:
            raise TooManyConnections(self._connections.limits.connections)
        self.scope["extensions"] = {HOLD: {HOLD: self.hold}}
        super().on_headers_complete()
        if is_leaving or self.is_spare:
            self.cycle.keep_alive = False
        self.headers = []  # trailers go here, and no further
        self._received, self._delivered = -self._piece, 0
        self._stage, self._room = BODY, self._limit
        if not self._is_answering:
            self._is_answering = True
            self._connections.work(self)

    def on_body(self, body: bytes) -> None:
        size = len(body)
        self._delivered += size
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()
        self._held += size
        self._connections.held_bytes += size
        if self._connections.held_bytes > self._body_budget:
            self._connections.relieve(self)

    def on_message_complete(self) -> None:
        self._stage = ENDED
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.message_event.set()

    # what a request calls while it decodes its body

    def hold(self, size: int) -> None:
        """Count bytes by which a body has grown. Raises TooManyBodies if all bodies together take too much."""
        if self.transport.is_closing():
            return  # it may have been released already
        self._held += size
        self._connections.held_bytes += size
        if self._connections.held_bytes > self._body_budget:
            raise TooManyBodies(self._body_budget)

    # what a request calls once it is answered

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        else:
            self._is_answering = False
            self._release()
            self._wait()
        if not self.pipeline:
            self.flow.resume_reading()

    def _wait(self) -> None:
        """Wait for the next request, if there can be one."""
        if self._farewell:
            self._part()
        self._since = self._connections.now
        self._connections.wait(self)

    def _release(self) -> None:
        self._connections.held_bytes -= self._held
        self._held = 0

    # how the connection ends

    def refuse(self, error: Refused) -> None:
        """Stop reading, and answer with a problem once all earlier requests are answered."""
        self._connections.note(error)
        self._farewell = written(error, self.server_state.default_headers)
        if self._stage is BODY:
            self._give_up(self.cycle)
        self._read_no_more()
        if self._is_answering:
            self.flow.pause_reading()
        else:
            self._part()
            self._since = self._connections.now
            self._connections.wait(self)

    def _give_up(self, cycle: RequestResponseCycle) -> None:
        """End a request whose body does not arrive."""
        if self.pipeline:
            self.pipeline.popleft()
            return
        self._is_answering = False
        self._release()
        if cycle.response_started:
            self._farewell = b""
        cycle.disconnected = True
        cycle.message_event.set()

    def _part(self) -> None:
        """Write the last answer, and give the client time to read it."""
        if self.transport.is_closing():
            return
        self.transport.write(self._farewell)
        self.flow.resume_reading()
        self.transport.write_eof()

    def _read_no_more(self) -> None:
        self._stage, self._room = OVER, -1

    def _drop(self, size: int) -> None:
        """Read what a client still sends before it reads its answer: closing at once would discard the answer."""
        if self._stage is not OVER:
            return
        self._dropped += size
        if self._is_answering:
            self.flow.pause_reading()
        elif self._dropped > LINGER_BYTES:
            self.transport.abort()

    # what the regular check calls

    @property
    def is_receiving(self) -> bool:
        """Tell whether a body is arriving whose request will be answered."""
        return self._stage is BODY and not self.cycle.response_complete

    def check(self, now: float) -> None:
        """End the connection if its client takes too long."""
        if self.flow.write_paused or self.transport.is_closing():
            self._check_reader(now)
        elif self.is_receiving:
            self._check_body(now)
        elif not self._is_answering:
            self._check_waiting(now - self._since)

    def _check_reader(self, now: float) -> None:
        """Nothing is written meanwhile, so the rest to send only shrinks."""
        if self._pace.is_slow(self.transport, -self.transport.get_write_buffer_size(), now):
            self._connections.close(self, "unread")

    def _check_body(self, now: float) -> None:
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._pace.rest()  # the client is waiting
        elif self._pace.is_slow(self.cycle, self._delivered, now):
            limits = self._connections.limits
            least = f"{limits.bytes_per_second:g} bytes a second (ITAN_MIN_BYTES_PER_SECOND)"
            limit = f"sent at {least}, over any {limits.stall_seconds:g} seconds (ITAN_STALL_SECONDS)"
            self.refuse(TooSlow("body", f"{self._delivered} bytes so far", limit))

    def _check_waiting(self, seconds: float) -> None:
        limits = self._connections.limits
        if self._stage is HEAD:
            if self._connections.now - self.begun_at > limits.head_seconds:
                limit = f"whole within {limits.head_seconds:g} seconds (ITAN_HEAD_SECONDS)"
                self.refuse(TooSlow("head", "unfinished", limit))
        elif self._stage is OVER:
            if seconds > LINGER_SECONDS:
                self.transport.abort()
        elif seconds > self._patience():
            self._connections.note_idle()
            self.transport.close()

    def _patience(self) -> float:
        """Give how long to wait: for a first request, for the rest of an unwanted body, or for another request."""
        limits = self._connections.limits
        if self.cycle is None:
            return limits.head_seconds
        return limits.stall_seconds if self._stage is BODY else limits.keep_alive_seconds
