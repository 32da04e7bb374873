"""Plain sockets, to send what no client library would."""

import json
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

JSON: Final = ("Content-Type: application/json",)
LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
TIMEOUT_SECONDS: Final = 30.0

Address = tuple[str, int]


def connect(address: Address) -> socket.socket:
    """Open a connection that sends everything at once."""
    connection = socket.create_connection(address, timeout=TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def head(start: str, *lines: str) -> bytes:
    """Write the head of a request."""
    return "\r\n".join([f"{start} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def post(path: str, body: bytes, method: str = "POST") -> bytes:
    """Write a request with a body of JSON."""
    return head(f"{method} {path}", *JSON, f"Content-Length: {len(body)}") + body


def samples(rows: Sequence[Sequence[float]]) -> bytes:
    """Write the body of samples."""
    return json.dumps({"samples": rows}).encode()


def ask(connection: socket.socket, request: bytes) -> tuple[int, bytes]:
    """Send a request and give the status and the body of its answer; OSError if there is none."""
    with suppress(BrokenPipeError, ConnectionResetError):  # it may be refused before it is sent whole
        connection.sendall(request)
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    lines, _, body = received.partition(b"\r\n\r\n")
    length = LENGTH.search(lines)
    while length and len(body) < int(length[1]):
        body += _more(connection)
    return int(lines[9:12]), body


def _more(connection: socket.socket) -> bytes:
    chunk = connection.recv(65536)
    if not chunk:
        raise ConnectionError("closed")
    return chunk
