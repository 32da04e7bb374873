"""Bodies of requests: their kind, their length, their JSON."""

import json
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from app.streams.errors import Refused

T = TypeVar("T")

AT_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
NAMED_FIELD = re.compile(r"(?:unknown|missing required) field `(?P<name>.*)`", re.DOTALL)
AT_BYTE = re.compile(r"\(byte (\d+)\)")
STEP = re.compile(r"\[(\d+)\]|\.([^.\[]+)|\[\.\.\.\]")
EXCERPT_BYTES = 40


class BodyTooLarge(Refused):
    """A body longer than the service reads."""


class UnsupportedMedia(Refused):
    """A content type or encoding that the route does not read."""


class InvalidJson(Refused):
    """A body that is not JSON, is nested too deep, or names a key twice."""


class InvalidBody(Refused):
    """JSON of another form than the route's."""


def media_type(request: Request, *known: str) -> str:
    """Give the content type, one of those known; UnsupportedMedia for others, and for compressed bodies."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise UnsupportedMedia("content-encoding", encoding, "left out: bodies are sent uncompressed")
    given = request.headers.get("content-type", "")
    media = given.partition(";")[0].strip().lower()
    if media not in known:
        raise UnsupportedMedia("content-type", given, " or ".join(known))
    return media


async def read_body(request: Request, limit: int, setting: str = "ITAN_MAX_BODY_BYTES") -> bytes:
    """Read a body, giving up as soon as it is longer than the limit, whatever its header says."""
    declared = request.headers.get("content-length", "0")
    size = int(declared) if declared.isascii() and declared.isdigit() and len(declared) < 20 else 0
    if size > limit:
        raise too_large(size, limit, setting)
    body, is_whole = await next_chunk(request)
    chunks, size = [body], len(body)
    while not is_whole and size <= limit:
        chunk, is_whole = await next_chunk(request)
        chunks.append(chunk)
        size += len(chunk)
    if size > limit:
        raise too_large(size, limit, setting)
    return b"".join(chunks)


async def next_chunk(request: Request) -> tuple[bytes, bool]:
    """Give what came next of a body, and whether that was the last; ClientDisconnect if the client went away."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), not message.get("more_body", False)


def too_large(size: int, limit: int, setting: str) -> BodyTooLarge:
    """Say that a body is too long."""
    return BodyTooLarge("body", f"{size} bytes or more", f"at most {limit} bytes ({setting})")


def decode(decoder: msgspec.json.Decoder[T], body: bytes, field: str = "") -> T:
    """Decode JSON into the decoder's type; InvalidJson or InvalidBody says what was wrong where."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid_body(str(error), body, field) from error
    except (ValueError, RecursionError) as error:
        raise invalid_json(error, body, field) from error


def invalid_json(error: Exception, body: bytes, field: str) -> InvalidJson:
    """Say that a body is not JSON, and show the place."""
    found = AT_BYTE.search(str(error))
    start = int(found[1]) if found else max(0, len(body) - EXCERPT_BYTES)
    excerpt = body[start : start + EXCERPT_BYTES].decode(errors="replace")
    reason = "nested less deep" if isinstance(error, RecursionError) else f"JSON: {error}"
    return InvalidJson(field or "body", excerpt, reason)


def invalid_body(message: str, body: bytes, field: str) -> InvalidBody:
    """Say which field has another form than it must."""
    found = AT_PATH.fullmatch(message)
    assert found is not None  # the pattern takes any text
    path, what = found["path"] or "", found["what"]
    named = NAMED_FIELD.search(what)
    inner = path + f".{named['name']}" if named else path
    return InvalidBody((field + inner).lstrip(".") or "body", value_at(body, inner), what)


def value_at(body: bytes, path: str) -> Any:
    """Give the value at a path such as .samples[0][1], or the innermost one on the way to it."""
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        # numbers that no double holds, and what follows an error, cannot be shown
        return None
    for index, name in STEP.findall(path):
        try:
            value = value[int(index)] if index else value[name]
        except (LookupError, TypeError):
            return None if name else value
    return value


def refuse_repeated_names(body: bytes, names: int, texts: Iterable[str] = ()) -> None:
    """Raise InvalidJson for a name that an object of the body holds twice; the decoder would take the last.

    Every name is followed by a colon. With as many colons in the body as decoded names (and colons in decoded texts),
    none was dropped; only otherwise, or where an escape may stand for a colon, the body is read again.
    """
    if b"\\" in body or body.count(b":") != names + "".join(texts).count(":"):
        read_names(body)


def read_names(body: bytes) -> None:
    """Read a body only to find a name that stands twice in one object."""
    try:
        json.loads(body, object_pairs_hook=refuse_repeated, parse_int=len, parse_float=len)
    except RecursionError as error:
        raise invalid_json(error, body, "") from error
    except UnicodeDecodeError as error:
        raise invalid_json(error, body, "") from error


def refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    """Raise InvalidJson if a name stands twice."""
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            raise InvalidJson(name, value, "given once in its object")
        seen.add(name)
