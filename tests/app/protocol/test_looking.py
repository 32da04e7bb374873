"""What a look finds, on a transport that is written down."""

import asyncio

import pytest
from uvicorn.server import ServerState

from app.metrics import Metrics
from app.protocol import Connections, Limits, configure
from app.protocol.connection import Connection
from app.settings import Settings
from tests.app.protocol.serving import head


class Transport(asyncio.Transport):
    """Keeps what is written until somebody reads it."""

    def __init__(self):
        super().__init__()
        self.left, self.closing, self.aborted = 0, False, False

    def write(self, data):
        self.left += len(data)

    def write_eof(self):
        pass

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def get_write_buffer_size(self):
        return self.left

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    def abort(self):
        self.closing = self.aborted = True


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
async def connection():
    connections = Connections(Limits.of(Settings()), Metrics("0"))
    config = configure(app, connections, 5, "asyncio")
    config.load()
    made = Connection(connections, config=config, server_state=ServerState(), app_state={})
    made.connection_made(Transport())
    return made


def test_what_is_left_when_it_closes_must_be_read(connection):
    transport = connection.transport
    transport.left = 10
    transport.close()
    connection.check(0.0)
    connection.check(29.0)
    assert not transport.aborted
    connection.check(30.0)
    assert transport.aborted


def test_what_was_read_between_two_looks_counts(connection):
    transport = connection.transport
    for begins in (0.0, 20.0, 40.0):
        transport.left = 1_000_000
        connection.pause_writing()
        connection.check(begins)
        connection.check(begins + 19)
        transport.left = 0
        connection.resume_writing()
    assert not transport.aborted


async def test_small_answers_in_the_buffer_are_the_kernels_to_send(connection):
    connection.data_received(head("GET /"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection.transport.left > 0
    for second in range(70):
        connection._connections.look(float(second))
    assert not connection.transport.closing


def test_a_body_is_not_slow_while_it_is_not_read(connection):
    connection.data_received(head("POST /", "Content-Length: 1000000") + b"x" * 10_000)
    connection.check(0.0)
    connection.flow.pause_reading()
    for second in range(1, 100):
        connection.check(float(second))
    assert not connection.transport.closing
    connection.flow.resume_reading()
    connection.check(100.0)
    connection.check(129.0)
    assert connection.transport.left == 0
    connection.check(130.0)
    assert connection.transport.left > 0
