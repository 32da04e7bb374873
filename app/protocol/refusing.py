"""Problem documents as bytes, for requests that never reach the app."""

from http import HTTPStatus

import msgspec

from app.api.problems import headers_of, problem_of
from app.api.routing import PROBLEM
from app.streams.errors import Refused

Header = tuple[bytes, bytes]


def written(error: Refused, headers: list[Header]) -> bytes:
    """Write the answer that ends a connection, with these headers added."""
    document = problem_of(error)
    body = msgspec.json.encode(document)
    own = headers_of(document.status, error) | {
        "content-type": PROBLEM,
        "content-length": str(len(body)),
        "connection": "close",
    }
    lines = [b"HTTP/1.1 %d %s" % (document.status, HTTPStatus(document.status).phrase.encode())]
    lines += [b"%s: %s" % header for header in headers]
    lines += [f"{name}: {value}".encode() for name, value in own.items()]
    return b"\r\n".join([*lines, b"", body])
