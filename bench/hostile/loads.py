"""Loads of hostile, broken or thoughtless clients; each is a generator that is ready at its first yield."""

import os
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, cycle
from typing import Final

from bench.hostile.wire import JSON, Address, ask, connect, head, post, samples

SCORED: Final = "scored"
FED: Final = "fed"
MEGABYTE: Final = 2**20
BODY_BYTES: Final = 16 * MEGABYTE - 1000

Steps = Iterator[None]


@dataclass(frozen=True, slots=True)
class Load:
    """A load of so many clients at once, and how the server is prepared for it."""

    title: str
    steps: Callable[[Address], Steps]
    clients: int = 1
    prepare: Callable[[int], None] | None = None
    refuses_writes: bool = False


def huge_heads(address: Address) -> Steps:
    """Send 100 MB of an address or of a header."""
    filling = b"x" * MEGABYTE
    yield
    for start in cycle((b"GET /", b"GET /livez HTTP/1.1\r\nX: ")):
        with suppress(OSError), connect(address) as connection:
            connection.sendall(start)
            for _ in range(100):
                connection.sendall(filling)
                yield
        yield


def half_open(address: Address) -> Steps:
    """Keep 3,000 connections open with unfinished requests."""
    begun = (b"GET /livez HTTP/1.1\r\nX: ", b"", head("POST /observe?stream=slow", *JSON, "Content-Length: 1000000"))
    return drip(address, [begun[i % 3] for i in range(3000)], b"x", pause=3)


def slow_bodies(address: Address) -> Steps:
    """Send 300 bodies of 16 MB, slowly but without a pause."""
    request = head("POST /observe?stream=slow", *JSON, f"Content-Length: {BODY_BYTES}")
    return drip(address, [request] * 300, b" " * 300, pause=1)


def drip(address: Address, begun: Sequence[bytes], drop: bytes, pause: int) -> Steps:
    """Open connections, again if they are closed; send a few bytes on every `pause`-th of them, in turn."""
    allow_files()
    connections = [begin(address, start) for start in begun]
    yield
    for i in cycle(range(0, len(begun), pause)):
        try:
            connections[i].sendall(drop)
        except OSError:
            connections[i].close()
            connections[i] = begin(address, begun[i])
        time.sleep(0.003)
        yield


def begin(address: Address, start: bytes) -> socket.socket:
    """Open a connection, if possible, and send the beginning of a request."""
    connection = socket.socket()
    connection.settimeout(5)
    with suppress(OSError):
        connection.connect(address)
        connection.sendall(start)
    return connection


def allow_files() -> None:
    """Raise this process' limit of open files as far as allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def odd_json(address: Address) -> Steps:
    """Send 16 MB of JSON that is expensive to decode."""
    requests = list(odd_requests())
    yield
    for request in cycle(requests):
        yield from ask_once(address, request)


def odd_requests() -> Iterator[bytes]:
    """Write a body of each shape."""
    names = b",".join(b'"n%07d":1' % i for i in range(1_300_000))
    empty = b"{}," * 1_800_000 + b"{}"
    ids = b",".join(b'"%d"' % i for i in range(1_500_000))
    stamps = b"1," * 7_900_000 + b"1"
    yield post("/streams/estimate", b'{"n_features":2,"scaling":{' + names + b"}}")
    yield post("/streams/odd", b'{"features":[' + b'{"name":"a"},' * 1_200_000 + b'{"name":"a"}]}', "PUT")
    yield post("/observe?stream=odd", b'{"samples":[{' + names + b"}]}")
    yield post("/observe?stream=odd", b'{"samples":[[1,2]],"more":[' + empty + b"]}")
    yield post("/observe?stream=odd", b'{"samples":[[1,2]],"ids":[' + ids + b"]}")
    yield post("/observe?stream=odd", b'{"samples":[[1,2]],"timestamps":[' + stamps + b"]}")
    yield post("/feedback?stream=odd", b'{"labels":[' + b"[" * 8_000_000 + b"]" * 8_000_000 + b"]}")


def grids(address: Address) -> Steps:
    """Ask for the largest grid, again and again."""
    return repeat(address, lambda _: head(f"GET /density/grid?stream={SCORED}&x=0&y=1&size=256"))


def watchers(address: Address) -> Steps:
    """Watch a stream 1,500 times while it is fed."""
    allow_files()
    request = head(f"GET /streams/{FED}/events")
    watching = [begin(address, request) for _ in range(1500)]
    yield
    yield from repeat(address, lambda _: post(f"/observe?stream={FED}", samples([[0.5, 0.5]] * 10)))
    assert watching


def new_streams(address: Address) -> Steps:
    """Create a stream with each request."""
    mine = os.urandom(6).hex()
    return repeat(address, lambda i: post(f"/observe?stream=new-{mine}-{i}", samples([[1.0, 2.0]])))


def writes(address: Address) -> Steps:
    """Send samples."""
    return repeat(address, lambda i: post(f"/observe?stream=written-{i % 50}", samples([[1.0, 2.0]])))


def reads(address: Address) -> Steps:
    """Read streams that do not exist."""
    return repeat(address, lambda i: head(f"GET /streams/none-{i}/history"))


def repeat(address: Address, request: Callable[[int], bytes]) -> Steps:
    """Send one request after the other."""
    yield
    for number in count():
        yield from ask_once(address, request(number))


def ask_once(address: Address, request: bytes) -> Steps:
    """Send a request on a connection of its own, and ignore the answer."""
    with suppress(OSError), connect(address) as connection:
        ask(connection, request)
    yield


def fill_up(pid: int) -> None:
    """Keep the process from writing to files, as on a full disk."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, 1))


LOADS: Final = {
    "heads": Load("heads of 100 MB", huge_heads),
    "half-open": Load("3,000 half-open connections", half_open),
    "slow-bodies": Load("300 slow bodies", slow_bodies),
    "json": Load("16 MB of odd JSON", odd_json, clients=2),
    "grids": Load("grids of 256 x 256", grids, clients=4),
    "watchers": Load("1,500 watchers of a busy stream", watchers),
    "new-streams": Load("new streams", new_streams, clients=8),
    "refused-writes": Load("writes that a full store refuses", writes, clients=8, prepare=fill_up, refuses_writes=True),
    "refused-reads": Load("reads of what is not there", reads, clients=8),
}


def run(name: str, address: Address, is_over: Callable[[], bool], begun: Callable[[], None]) -> None:
    """Run a load's part for one client until it is over."""
    os.nice(5)  # honest requests should not wait for the load's own CPU
    steps = LOADS[name].steps(address)
    next(steps)
    begun()
    for _ in steps:
        if is_over():
            return
