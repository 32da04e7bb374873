"""How long connections are waited for."""

import json
import socket

import pytest

from tests.app.protocol.serving import Gate, head, read_all, read_one, serving, statuses
from tests.processes import wait_until

BODY = b'{"samples": [[1.0, 2.0]]}'
POST = head("POST /observe?stream=s", "Content-Type: application/json", f"Content-Length: {len(BODY)}")
LIVE = head("GET /livez")


def is_open(connection):
    """Nothing has come, and it has not ended."""
    connection.setblocking(False)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    else:
        return False
    finally:
        connection.settimeout(20)


def known(served, count):
    """Wait until the service knows of so many connections."""
    wait_until(lambda: len(served.connections) == count)


def received(served, connection, count):
    """Wait until the service has read so much of a body."""
    wait_until(lambda: served.connections.held_bytes >= count)


def problem(answer):
    return json.loads(answer.rpartition(b"\r\n\r\n")[2])


def test_a_silent_connection_is_closed_without_a_word(served):
    with served.connect() as connection:
        known(served, 1)
        served.advance(9.5)
        assert is_open(connection)
        served.advance(1)
        assert read_all(connection) == b""
    assert served.count("idle") == 1


@pytest.mark.parametrize("begun", [b"G", LIVE[:-2], LIVE[:-1]])
def test_a_head_must_end_within_its_time(served, begun):
    before = served.count("slow_head")
    with served.connect() as connection:
        known(served, 1)
        served.advance(9)
        connection.sendall(begun[:1])
        if begun[1:]:
            served.advance(5)
            connection.sendall(begun[1:])
        else:
            served.advance(5)
        served.advance(4.5)
        assert is_open(connection)
        served.advance(1.5)
        answer = read_all(connection)
    refused = problem(answer)
    assert statuses(answer) == [408]
    assert (refused["code"], refused["field"]) == ("too_slow", "head")
    assert "ITAN_HEAD_SECONDS" in refused["limit"]
    assert served.count("slow_head") == before + 1


def test_an_idle_connection_is_kept_for_a_while(served):
    with served.connect() as connection:
        for _ in range(3):
            connection.sendall(LIVE)
            assert statuses(read_one(connection)) == [200]
            served.advance(74.5)
            assert is_open(connection)
        served.advance(1)
        assert read_all(connection) == b""


def test_empty_lines_are_no_sign_of_life(served):
    with served.connect() as connection:
        known(served, 1)
        for _ in range(11):
            connection.sendall(b"\r\n")
            served.advance(1)
        assert read_all(connection) == b""


def test_a_body_must_come_on(served):
    before = served.count("slow_body")
    with served.connect() as connection:
        connection.sendall(POST + BODY[:5])
        received(served, connection, 5)
        served.advance(30)
        assert is_open(connection)
        served.advance(2)
        answer = read_all(connection)
    refused = problem(answer)
    assert (statuses(answer), refused["code"], refused["field"]) == ([408], "too_slow", "body")
    assert "ITAN_STALL_SECONDS" in refused["limit"]
    assert served.count("slow_body") == before + 1
    assert served.connections.held_bytes == 0


@pytest.mark.parametrize(("bytes_a_second", "status"), [(110, 200), (90, 408)])
def test_a_thin_line_is_enough_and_a_trickle_is_not(served, bytes_a_second, status):
    blanks = b" " * (bytes_a_second * 120)
    request = head(
        "POST /observe?stream=s",
        "Content-Type: application/json",
        f"Content-Length: {len(BODY) + len(blanks)}",
        "Connection: close",
    )
    with served.connect() as connection:
        connection.sendall(request)
        known(served, 1)
        for second in range(120):
            try:
                connection.sendall(blanks[:bytes_a_second])
            except ConnectionError:
                break
            wait_until(
                lambda sent=(second + 1) * bytes_a_second: (
                    served.connections.held_bytes >= sent or served.count("slow_body") > 1
                )
            )
            served.advance(1)
        else:
            connection.sendall(BODY)
        assert statuses(read_all(connection)) == [status]


def test_a_client_that_waits_to_be_told_is_not_slow(loop):
    gate = Gate()
    with serving(loop, gate) as served, served.connect() as connection:
        connection.sendall(POST[:-2] + b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
        wait_until(lambda: gate.paths != [])
        served.advance(100)
        gate.opened.set()
        assert connection.recv(25).startswith(b"HTTP/1.1 100")
        connection.sendall(BODY)
        assert statuses(read_all(connection)) == [200]


def test_a_request_that_takes_long_is_not_the_clients_fault(loop):
    gate = Gate()
    with serving(loop, gate) as served, served.connect() as connection:
        gate.opened.set()
        connection.sendall(LIVE)
        assert statuses(read_one(connection)) == [200]
        gate.opened.clear()
        connection.sendall(LIVE)
        wait_until(lambda: len(gate.paths) == 2)
        served.advance(200)
        connection.sendall(LIVE[:9])  # the next one, begun meanwhile
        served.advance(200)
        gate.opened.set()
        assert statuses(read_one(connection)) == [200]
        connection.sendall(LIVE[9:])
        assert statuses(read_one(connection)) == [200]


def test_the_rest_of_a_body_that_nobody_wants_is_taken_for_a_while(served):
    request = head("POST /nowhere", "Content-Length: 100000000")
    with served.connect() as connection:
        connection.sendall(request)
        assert statuses(read_one(connection)) == [404]
        for _ in range(30):
            connection.sendall(b"x" * 1000)
            served.advance(1)
        served.advance(2)
        known(served, 0)
    assert served.connections.held_bytes == 0


LARGE = 30_000_000


async def large(scope, receive, send):
    """Answers more than the kernel takes."""
    if scope["type"] == "http":
        headers = [(b"content-length", b"%d" % LARGE)]
        if scope["path"] == "/last":
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(LARGE)})


@pytest.mark.parametrize("path", ["/", "/last"])
def test_an_answer_must_be_read(loop, path):
    with serving(loop, large) as served, served.connect() as connection:
        connection.sendall(head(f"GET {path}"))
        assert connection.recv(10) == b"HTTP/1.1 2"
        wait_until(lambda: served.connections._closings is not None)
        served.advance(29)
        known(served, 1)
        served.advance(4)
        known(served, 0)
        assert served.count("unread") == 1
        assert len(read_all(connection)) < LARGE


@pytest.mark.parametrize("path", ["/", "/last"])
def test_an_answer_may_be_read_slowly(loop, path):
    with serving(loop, large) as served, served.connect() as connection:
        connection.sendall(head(f"GET {path}"))
        got = 0
        for _ in range(60):
            for _ in range(3):
                got += len(connection.recv(100_000))
            served.advance(1)
        while got < LARGE:
            got += len(connection.recv(1_000_000))
        assert served.count("unread") == 0


def test_events_may_be_rare(served):
    with served.connect() as connection:
        connection.sendall(POST + BODY)
        assert statuses(read_one(connection)) == [200]
        connection.sendall(head("GET /streams/s/events"))
        assert statuses(read_one(connection)) == [200]
        served.advance(500)
        assert len(served.connections) == 1
        with served.connect() as other:
            other.sendall(POST + BODY)
            assert statuses(read_one(other)) == [200]
        while b"event: samples" not in connection.recv(65536):
            pass


def test_time_stands_still_while_the_process_does(served):
    with served.connect() as connection:
        known(served, 1)
        served._time += 1000
        served.advance(1)
        assert is_open(connection)
