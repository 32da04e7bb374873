"""How many connections there may be, and what their bodies take together."""

import gzip
import json
import logging
from contextlib import ExitStack

import pytest

from app.protocol import limits as limits_module
from app.protocol.limits import SPARES, Limits
from app.settings import Settings
from tests.app.protocol.serving import codes, head, read_all, read_one, serving, statuses
from tests.processes import wait_until

LIVE = head("GET /livez")
BEGUN = head("POST /observe?stream=s", "Content-Type: application/json", "Content-Length: 1000") + b"{"
MOST = 5


@pytest.fixture
def small(loop):
    with serving(loop, max_connections=MOST) as running:
        yield running


def connect(stack, served, sent=b""):
    """One more connection, once the service knows of it."""
    known = served.connections.held_bytes
    connection = stack.enter_context(served.connect())
    if sent:
        connection.sendall(sent)
        wait_until(lambda: served.connections.held_bytes > known)
    return connection


def test_the_one_that_waited_longest_makes_room(small):
    with ExitStack() as stack:
        first, second, *others = [connect(stack, small) for _ in range(MOST)]
        wait_until(lambda: len(small.connections) == MOST)
        small.advance(1)
        first.sendall(LIVE)
        assert statuses(read_one(first)) == [200]
        connect(stack, small)
        assert read_all(second) == b""
        for each in (first, *others):
            each.sendall(LIVE)
            assert statuses(read_one(each)) == [200]
        assert small.count("room") == 1


def test_a_head_that_does_not_end_makes_room_and_a_request_does_not(small):
    with ExitStack() as stack:
        busy = [connect(stack, small, BEGUN) for _ in range(MOST - 1)]
        slow = stack.enter_context(small.connect())
        slow.sendall(LIVE[:20])
        wait_until(lambda: len(small.connections) == MOST)
        for _ in range(20):
            assert statuses(small.exchange(LIVE[:-2] + b"Connection: close\r\n\r\n")) == [200]
        assert read_all(slow) == b""
        for each in busy:
            each.sendall(b"x" * 999)
            assert codes(read_one(each)) == ["invalid_json"]


def test_where_all_have_requests_only_probes_are_answered(small, caplog):
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:
        for _ in range(MOST):
            connect(stack, small, BEGUN)
        for path in ("/livez", "/readyz", "/metrics", "/livez?x=1"):
            received = small.exchange(head(f"GET {path}"))
            assert statuses(received) == [200]
            assert b"connection: close" in received
        received = small.exchange(head("GET /streams"))
        assert (statuses(received), codes(received)) == ([503], ["too_many_connections"])
        assert b"Retry-After: 1" in received
        assert json.loads(received.rpartition(b"\r\n\r\n")[2])["value"] == MOST
        for _ in range(10):
            small.exchange(head("GET /streams"))
        assert small.count("full") == 11
        told = [record for record in caplog.records if "ITAN_MAX_CONNECTIONS" in record.message]
        assert [record.levelno for record in told] == [logging.WARNING]
        small.advance(61)
        assert len([record for record in caplog.records if "closed 10 connections" in record.message]) == 1
    wait_until(lambda: len(small.connections) == 0)
    assert statuses(small.exchange(head("GET /streams", "Connection: close"))) == [200]


def test_a_crowd_does_not_keep_probes_out(small):
    with ExitStack() as stack:
        for _ in range(MOST):
            connect(stack, small, BEGUN)
        for _ in range(SPARES + 20):
            connect(stack, small)
            assert len(small.connections) <= MOST + SPARES + 1
        assert statuses(small.exchange(LIVE)) == [200]
        wait_until(lambda: len(small.connections) <= MOST + SPARES)
        assert small.count("full") >= 20


def test_bodies_share_their_memory(loop, caplog):
    caplog.set_level(logging.INFO)
    with serving(loop, body_budget_mb=1) as served, ExitStack() as stack:
        lines = ("Content-Type: application/json", "Content-Length: 500000", "Connection: close")
        request = head("POST /observe?stream=s", *lines)
        slow = connect(stack, served, request + b" " * 300_000)
        served.advance(1)
        wait_until(lambda: served.connections.held_bytes == 300_000)
        others = []
        for n in (1, 2):
            others.append(stack.enter_context(served.connect()))
            others[-1].sendall(request + b" " * 300_000)
            wait_until(lambda n=n: served.connections.held_bytes == 300_000 * (n + 1))
            served.advance(1)
        last = stack.enter_context(served.connect())
        last.sendall(request + b" " * 300_000)
        received = read_all(slow)
        assert (statuses(received), codes(received)) == ([503], ["too_many_bodies"])
        assert b"Retry-After: 1" in received
        wait_until(lambda: served.connections.held_bytes == 900_000)
        for each in (others[0], others[1], last):
            each.sendall(b"x" * 200_000)
            assert codes(read_all(each)) in (["invalid_json"], ["too_many_bodies"])
        wait_until(lambda: served.connections.held_bytes == 0)
        assert [r.levelno for r in caplog.records if "ITAN_BODY_BUDGET_MB" in r.message] == [logging.WARNING]


def test_a_body_beyond_the_budget_is_refused_by_itself(loop):
    with serving(loop, body_budget_mb=0.5) as served:
        request = head("POST /observe?stream=s", "Content-Type: application/json", "Content-Length: 1000000")
        received = served.exchange(request + b" " * 1_000_000)
        assert (statuses(received), codes(received)) == ([503], ["too_many_bodies"])
        wait_until(lambda: len(served.connections) == 0 or served.advance(3) is None)
        assert served.connections.held_bytes == 0


def test_files_that_cannot_be_opened_are_told_and_made(small, monkeypatch, caplog):
    def full(*_):
        raise OSError(24, "too many open files")

    with ExitStack() as stack:
        waiting = [connect(stack, small) for _ in range(3)]
        busy = connect(stack, small, BEGUN)
        with monkeypatch.context() as patched:
            patched.setattr("app.protocol.connections.os.open", full)
            small.advance(1)
            for each in waiting:
                assert read_all(each) == b""
            small.advance(1)
        busy.sendall(b"x" * 999)
        assert codes(read_one(busy)) == ["invalid_json"]
    assert small.count("files") == 3
    assert [r.levelno for r in caplog.records if "ulimit" in r.message] == [logging.WARNING]


@pytest.mark.parametrize(("files", "most"), [(None, 4096), (1_000_000, 4096), (1024, 832), (256, 64), (64, 16)])
def test_by_default_there_are_as_many_as_files_can_be_opened(monkeypatch, files, most):
    monkeypatch.setattr(limits_module, "most_files", lambda: files)
    limits = Limits.of(Settings())
    assert limits.connections == most
    assert bool(limits.warning()) == (files == 64)


def test_more_than_files_can_be_opened_are_warned_of(monkeypatch):
    monkeypatch.setattr(limits_module, "most_files", lambda: 1024)
    assert Limits.of(Settings(max_connections=832)).warning() == ""
    assert "ITAN_MAX_CONNECTIONS" in Limits.of(Settings(max_connections=833)).warning()


def test_what_a_body_decodes_to_counts_as_well(loop):
    with serving(loop, body_budget_mb=1) as served:
        for size, expected in ((3_000_000, (503, "too_many_bodies")), (500_000, (400, "invalid_json"))):
            body = gzip.compress(b" " * size)
            request = head(
                "POST /observe?stream=s",
                "Content-Type: application/json",
                "Content-Encoding: gzip",
                f"Content-Length: {len(body)}",
                "Connection: close",
            )
            received = served.exchange(request + body)
            assert (statuses(received), codes(received)) == ([expected[0]], [expected[1]])
            wait_until(lambda: served.connections.held_bytes == 0)
