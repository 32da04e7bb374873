"""What is read of a connection, and what is refused: heads, framing, upgrades, pipelines."""

import json
import logging
import socket
import time

import pytest

from tests.app.protocol.serving import HOST, Gate, codes, head, read_all, read_one, serving, statuses
from tests.processes import wait_until

BODY = b'{"samples": [[1.0, 2.0]]}'
CHUNKED = b"19\r\n" + BODY + b"\r\n0\r\n\r\n"
LIVE = head("GET /livez")
LAST = head("GET /livez", "Connection: close")
LIMIT = 65_536
POST = ("POST /observe?stream=s", "Content-Type: application/json")
UPGRADE = ("Connection: Upgrade", "Upgrade: h2c")


def of_length(n):
    """A head of so many bytes."""
    short = head("GET /livez", "Connection: close", "X: ")
    return short.replace(b"X: ", b"X: " + b"x" * (n - len(short)))


def problem(received):
    """The problem document that ends what was received."""
    headers, _, body = received.rpartition(b"\r\n\r\n")
    last = headers[headers.rindex(b"HTTP/1.1 ") :].lower()
    assert b"content-type: application/problem+json" in last
    assert b"connection: close" in last
    assert b"content-length: %d" % len(body) in last
    return json.loads(body)


def test_a_head_may_be_as_long_as_the_setting_says(served):
    assert statuses(served.exchange(of_length(LIMIT))) == [200]
    whole = of_length(LIMIT)
    assert statuses(served.exchange(*(whole[i : i + 1000] for i in range(0, LIMIT, 1000)))) == [200]


def test_a_head_is_refused_at_the_first_byte_beyond(served):
    before = served.count("head")
    with served.connect() as connection:
        connection.sendall(of_length(LIMIT + 1)[:-1])  # as many as there may be, and it has not ended
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(20)
        connection.sendall(b"\n")
        refused = problem(read_all(connection))
    assert (refused["status"], refused["code"], refused["field"]) == (431, "head_too_large", "head")
    assert "ITAN_MAX_HEAD_BYTES" in refused["limit"]
    assert served.count("head") == before + 1


def test_the_limit_is_a_setting(loop):
    with serving(loop, max_head_bytes=2000) as served:
        assert statuses(served.exchange(of_length(2000))) == [200]
        assert statuses(served.exchange(of_length(2001))) == [431]


def test_headers_are_counted(served):
    headers = [f"X-{i}: 1" for i in range(98)]
    assert statuses(served.exchange(head("GET /livez", "Connection: close", *headers))) == [200]
    refused = problem(served.exchange(head("GET /livez", "Connection: close", *headers, "One: more")))
    assert (refused["status"], refused["field"]) == (431, "headers")


FLOODS = {
    "address": (b"GET /", b"x"),
    "header": (b"GET / HTTP/1.1\r\nX: ", b"x"),
    "name": (b"GET / HTTP/1.1\r\n", b"x"),
    "headers": (b"GET / HTTP/1.1\r\n", b"a:\r\n"),
    "empty lines": (b"", b"\r\n"),
    "chunk extension": (head(*POST, "Transfer-Encoding: chunked") + b"5;", b"x"),
    "trailer": (head(*POST, "Transfer-Encoding: chunked") + b"0\r\nX: ", b"x"),
    "trailers": (head(*POST, "Transfer-Encoding: chunked") + b"0\r\n", b"a:\r\n"),
    "fat chunks": (head(*POST, "Transfer-Encoding: chunked"), b"1;" + b"x" * 100 + b"\r\n \r\n"),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_costs_little(served, flood):
    start, filling = FLOODS[flood]
    million = filling * (2**20 // len(filling))
    before = time.thread_time(), time.process_time()
    with served.connect() as connection:
        sent = 0
        try:
            connection.sendall(start)
            for _ in range(100):
                connection.sendall(million)
                sent += 1
        except OSError:
            pass
        received = read_all(connection)
    here, all_threads = time.thread_time() - before[0], time.process_time() - before[1]
    assert sent < 20  # MB, most of them in the kernel's buffers
    assert all_threads - here < 0.5  # 12 s once
    assert statuses(received) in ([400], [431])
    assert codes(received)[0] in ("invalid_http", "head_too_large")


def test_a_chunked_body_may_come_byte_by_byte(served):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY + b" " * 30_000) + b"0\r\n\r\n"
    received = served.exchange(head(*POST, "Transfer-Encoding: chunked", "Connection: close") + chunks)
    assert statuses(received) == [200]


def test_trailers_are_no_headers(served):
    # the answer would carry the request's id
    seen = {}

    async def app(scope, receive, send):
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            seen["headers"] = list(scope["headers"])
            await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": b""})

    with serving("asyncio", app) as bare:
        request = head("POST /", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\nAuthorization: Bearer k\r\n\r\n"
        assert statuses(bare.exchange(request)) == [200]
    assert [name for name, _ in seen["headers"]] == [b"host", b"transfer-encoding"]


REFUSED = {
    "both lengths": head(*POST, "Content-Length: 4", "Transfer-Encoding: chunked") + CHUNKED,
    "both lengths, turned": head(*POST, "Transfer-Encoding: chunked", "Content-Length: 4") + CHUNKED,
    "blank before the colon": head(*POST, "Transfer-Encoding : chunked") + CHUNKED,
    "unknown encoding": head(*POST, "Transfer-Encoding: xchunked") + CHUNKED,
    "identity": head(*POST, "Transfer-Encoding: identity") + CHUNKED,
    "identity last": head(*POST, "Transfer-Encoding: chunked, identity") + CHUNKED,
    "gzip first": head(*POST, "Transfer-Encoding: gzip, chunked") + CHUNKED,
    "encoding twice": head(*POST, "Transfer-Encoding: chunked", "Transfer-Encoding: identity") + CHUNKED,
    "chunked twice": head(*POST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + CHUNKED,
    "vertical tab": head(*POST, "Transfer-Encoding: \x0bchunked") + CHUNKED,
    "quoted": head(*POST, 'Transfer-Encoding: "chunked"') + CHUNKED,
    "folded encoding": head(*POST, "Transfer-Encoding:\r\n chunked") + CHUNKED,
    "folded after a word": head(*POST, "Transfer-Encoding: x\r\n chunked") + CHUNKED,
    "two lengths": head(*POST, "Content-Length: 5", "Content-Length: 25") + BODY,
    "one length twice": head(*POST, "Content-Length: 25", "Content-Length: 25") + BODY,
    "listed lengths": head(*POST, "Content-Length: 25, 25") + BODY,
    "plus": head(*POST, "Content-Length: +25") + BODY,
    "minus": head(*POST, "Content-Length: -1") + BODY,
    "hexadecimal": head(*POST, "Content-Length: 0x19") + BODY,
    "blank within": head(*POST, "Content-Length: 2 5") + BODY,
    "empty length": head(*POST, "Content-Length: ") + BODY,
    "length beyond 64 bits": head(*POST, "Content-Length: 18446744073709551641") + BODY,
    "folded length": head(*POST, "Content-Length: 2\r\n 5") + BODY,
    "chunk 0x19": head(*POST, "Transfer-Encoding: chunked") + b"0x19\r\n" + BODY + b"\r\n0\r\n\r\n",
    "chunk -19": head(*POST, "Transfer-Encoding: chunked") + b"-19\r\n" + BODY + b"\r\n0\r\n\r\n",
    "chunk beyond 64 bits": head(*POST, "Transfer-Encoding: chunked") + b"1" + b"0" * 16 + b"\r\n" + BODY,
    "chunk and blank": head(*POST, "Transfer-Encoding: chunked") + b"19 \r\n" + BODY + b"\r\n0\r\n\r\n",
    "chunks by line feeds": head(*POST, "Transfer-Encoding: chunked") + b"19\n" + BODY + b"\n0\n\n",
    "chunk without its end": head(*POST, "Transfer-Encoding: chunked") + b"19\r\n" + BODY + b"0\r\n\r\n",
    "extension by a line feed": head(*POST, "Transfer-Encoding: chunked") + b"19;a\n" + BODY + b"\r\n0\r\n\r\n",
    "length in the trailer": head(*POST, "Transfer-Encoding: chunked") + CHUNKED[:-2] + b"Content-Length: 30\r\n\r\n",
    "line feeds alone": head(*POST, "Content-Length: 25").replace(b"\r\n", b"\n") + BODY,
    "carriage returns alone": head(*POST, "Content-Length: 25").replace(b"\r\n", b"\r") + BODY,
    "header after a carriage return": head(*POST, "X: a\rContent-Length: 25") + BODY,
    "header after a line feed": head(*POST, "X: a\nContent-Length: 25") + BODY,
    "two hosts": head("GET /livez", "Host: other.example"),
    "NUL in a header": head("GET /livez", "X: a\0b"),
    "control in a header": head("GET /livez", "X: a\x01b"),
    "DEL in a header": head("GET /livez", "X: a\x7fb"),
    "name beyond ASCII": head("GET /livez", "X\xe9: 1"),
    "no name": head("GET /livez", ": 1"),
    "blank in a name": head("GET /livez", "X y: 1"),
    "folded header": head("GET /livez", "X: a\r\n b"),
    "NUL in the target": head("GET /livez\0"),
    "control in the target": head("GET /liv\x01ez"),
    "target beyond ASCII": head("GET /liv\xe9z"),
    "query beyond ASCII": head("GET /livez?a=\xe9"),
    "tab": head("GET\t/livez"),
    "target without a path": head("GET http://localhost"),
    "CONNECT": head("CONNECT localhost:80"),
    "relative target": head("GET livez"),
    "lower case": head("get /livez"),
    "HTTP/1.2": b"GET /livez HTTP/1.2\r\nHost: localhost\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "rubbish": b"rubbish\r\n\r\n",
    "upgrade with a body": head(*POST, *UPGRADE, "Content-Length: 25") + BODY,
    "upgrade with chunks": head(*POST, *UPGRADE, "Transfer-Encoding: chunked") + CHUNKED,
}


@pytest.mark.parametrize("variant", REFUSED)
@pytest.mark.parametrize("in_one", [True, False])
def test_what_can_be_read_in_two_ways_is_not_read(served, variant, in_one, caplog):
    caplog.set_level(logging.INFO)
    request, before = REFUSED[variant], served.count("invalid")
    begin, _, rest = request.partition(b"\r\n\r\n")
    parts = [request + LIVE] if in_one else [begin + b"\r\n\r\n" + rest[:3], rest[3:] + LIVE]
    received = served.exchange(*parts)
    assert statuses(received) == [400]
    refused = problem(received)
    assert (refused["code"], refused["field"]) == ("invalid_http", "request")
    assert served.count("invalid") == before + 1
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_tls_is_called_by_its_name(served):
    assert "TLS" in problem(served.exchange(REFUSED["TLS"]))["detail"]


ANSWERED = {
    "zeros before a length": (head(*POST, "Content-Length: 0000000000000000000025") + BODY, [200, 200]),
    "chunk extension": (head(*POST, "Transfer-Encoding: chunked") + b'19;a=b;c="d"' + CHUNKED[2:], [200, 200]),
    "trailer": (head(*POST, "Transfer-Encoding: chunked") + CHUNKED[:-2] + b"X: 1\r\n\r\n", [200, 200]),
    "no length": (head(*POST), [400, 200]),
    "other name for a length": (head(*POST, "Content_Length: 25"), [400, 200]),
    "empty lines first": (b"\r\n\r\n" + LIVE, [200, 200]),
    "body of a GET": (head("GET /livez", f"Content-Length: {len(LIVE)}") + LIVE, [200, 200]),
    "whole address": (head("GET http://localhost/livez"), [200, 200]),
    "fragment": (head("GET /livez#x"), [200, 200]),
    "star": (head("OPTIONS *"), [404, 200]),
    "broken escape": (head("GET /streams/%zz"), [400, 200]),
    "escaped NUL": (head("GET /streams/%00"), [400, 200]),
    "escape of no UTF-8": (head("GET /streams/%ff"), [400, 200]),
    "escape of no UTF-8 in the query": (head("GET /density?stream=%ff"), [400, 200]),
    "header beyond ASCII": (head("GET /livez", "X: \xe9"), [200, 200]),
    "unknown expectation": (head(*POST, "Expect: magic", "Content-Length: 25") + BODY, [200, 200]),
    "close": (head("GET /livez", "Connection: close"), [200]),
    "HTTP/1.0": (b"GET /livez HTTP/1.0\r\n\r\n", [200]),
    "HTTP/1.0, chunked": (head(*POST, "Transfer-Encoding: chunked").replace(b"1.1", b"1.0") + CHUNKED, [200]),
    "HTTP/0.9": (b"GET /livez\r\n\r\n", [200]),
    "upgrade": (head("GET /livez", *UPGRADE), [200]),
    "web socket": (head("GET /livez", "Connection: Upgrade", "Upgrade: websocket"), [200]),
}


@pytest.mark.parametrize("variant", ANSWERED)
def test_what_is_odd_but_plain_is_answered_once(served, variant, caplog):
    caplog.set_level(logging.INFO)
    request, expected = ANSWERED[variant]
    assert statuses(served.exchange(request + LAST)) == expected
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_what_follows_an_upgrade_is_no_request(served):
    with served.connect() as connection:
        connection.sendall(head("GET /livez", *UPGRADE))
        first = read_one(connection)
        try:
            connection.sendall(LIVE)
            assert read_all(connection) == b""
        except ConnectionError:
            pass
    assert statuses(first) == [200]
    assert b"connection: close" in first


def test_what_comes_after_an_upgrade_before_its_answer_is_no_request(loop):
    gate = Gate()
    with serving(loop, gate) as served, served.connect() as connection:
        connection.sendall(head("GET /first", *UPGRADE))
        wait_until(lambda: gate.paths == ["/first"])
        connection.sendall(head("GET /second"))
        served.advance(1)
        gate.opened.set()
        assert statuses(read_all(connection)) == [200]
        assert gate.paths == ["/first"]


def test_a_head_that_begins_behind_a_large_body_has_its_whole_length(served):
    blanks = b" " * 60_000
    request = head(*POST, f"Content-Length: {len(BODY) + len(blanks)}") + BODY + blanks
    following = of_length(20_000)
    assert statuses(served.exchange(request + following[:5_000], following[5_000:])) == [200, 200]


def test_a_body_that_breaks_off_behind_a_begun_answer_cuts_it(loop):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"so far", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass

    with serving(loop, app) as served, served.connect() as connection:
        connection.sendall(head("POST /", "Transfer-Encoding: chunked") + b"1\r\nx\r\n")
        first = connection.recv(65536)
        while b"so far" not in first:
            first += connection.recv(65536)
        connection.sendall(b"zz\r\n")
        assert read_all(connection) == b""
    assert statuses(first) == [200]


def test_requests_that_wait_hold_back_those_after_them(loop):
    gate = Gate()
    with serving(loop, gate) as served, served.connect() as connection:
        connection.sendall(LIVE * 20)
        wait_until(lambda: gate.paths != [])
        served.advance(1)
        connection.sendall(LIVE * 19 + LAST)
        served.advance(1)
        gate.opened.set()
        assert statuses(read_all(connection)) == [200] * 40


def test_the_client_that_waits_is_told_to_go_on(served):
    with served.connect() as connection:
        connection.sendall(head(*POST, "Expect: 100-continue", "Content-Length: 25", "Connection: close"))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert statuses(read_all(connection)) == [200]


def test_requests_before_a_refused_one_are_answered_first(served):
    request = head(*POST, "Content-Length: 25") + BODY
    assert statuses(served.exchange(request + LIVE + b"rubbish\r\n\r\n")) == [200, 200, 400]
    assert statuses(served.exchange(request, LIVE, b"rubbish\r\n\r\n")) == [200, 200, 400]
    broken = head(*POST, "Transfer-Encoding: chunked") + b"zz\r\n"
    assert statuses(served.exchange(request + broken)) == [200, 400]
    assert statuses(served.exchange(request + LIVE + broken + LIVE)) == [200, 200, 400]
    assert statuses(served.exchange(request + LIVE + of_length(200_000))) == [200, 200, 431]


def test_a_body_that_breaks_off_changes_nothing(served):
    request = head("POST /observe?stream=broken", POST[1], "Transfer-Encoding: chunked")
    assert statuses(served.exchange(request + b"19\r\n" + BODY + b"\r\nzz")) == [400]
    assert statuses(served.exchange(head("GET /streams/broken", "Connection: close"))) == [404]


def test_so_many_requests_at_once_and_no_more(served):
    received = served.exchange(LIVE * 500)
    answers = statuses(received)
    assert answers == [200] * 33
    assert received.count(b"connection: close") == 1
    assert b"connection: close" in received[received.rindex(b"HTTP/1.1") :]


def test_requests_that_wait_for_their_answers_may_go_on_for_ever(served):
    with served.connect() as connection:
        for _ in range(20):
            connection.sendall(LIVE * 10)
            received = b""
            while received.count(b"HTTP/1.1 200") < 10 or not received.endswith(b"}"):
                received += connection.recv(65536)


def test_a_client_that_hangs_up_is_forgotten(served):
    for part in (b"", b"GET /liv", head(*POST, "Content-Length: 25") + BODY[:3]):
        with served.connect() as connection:
            connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
            assert read_all(connection) == b""


def test_who_does_not_close_is_closed(served):
    with served.connect() as connection:
        connection.sendall(b"rubbish\r\n\r\n")
        assert statuses(read_all(connection)) == [400]
        served.advance(1.9)
        # the service has said its last, and reads on for a while: closing at once might take its answer away
        connection.sendall(b"x" * 1000)
        assert len(served.connections) == 1
        served.advance(0.2)
        wait_until(lambda: len(served.connections) == 0)


def test_a_name_given_twice_is_not_chosen_from(served):
    refused = problem(served.exchange(head("GET /livez", HOST)))
    assert "host" in refused["detail"]
