"""Reads the body of a request: its media type, its encoding, its length, its JSON."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from starlette.requests import ClientDisconnect, Request

from app.api.bodies.encodings import ENCODINGS, IDENTITY, Undecodable, declared_size, decoded_pieces
from app.api.bodies.json_tree import REPEATED, read_tree, repeated_name
from app.api.bodies.wording import plain
from app.streams.errors import Refused

T = TypeVar("T")
Choices = Mapping[str, tuple[str, ...]]
NO_CHOICES: Choices = {}

SMALL_BODY_BYTES = 65_536
SMALL_BODY = "on this path"
QUICK_BYTES = 524_288
"""Up to this length a body is decoded in one piece, which takes at most 20 ms."""

BOM = b"\xef\xbb\xbf"
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]*)', re.IGNORECASE)
UTF_8 = {"utf-8", "utf8", "us-ascii"}
NDJSON_ALIASES = {
    "application/jsonl": "application/x-ndjson",
    "application/ndjson": "application/x-ndjson",
    "application/x-jsonlines": "application/x-ndjson",
    "application/jsonlines": "application/x-ndjson",
}
AT_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
NAMED_FIELD = re.compile(r"(?:unknown|missing required) field `(?P<name>.*)`", re.DOTALL)
AT_BYTE = re.compile(r"\(byte (\d+)\)")
NO_CHOICE = "Invalid enum value"
STEP = re.compile(r"\[(\d+)\]|\.([^.\[]+)|\[\.\.\.\]")
LITERALS = ("NaN", "Infinity", "-Infinity")
EXCERPT_BYTES = 40
HOLD = "itan.hold"
"""Extension of the ASGI scope: a function that counts the bytes by which a body grows when it is decoded."""


class BodyTooLarge(Refused):
    """A body longer than the service reads."""


class UnsupportedMedia(Refused):
    """A content type or encoding that the route does not read."""


class InvalidJson(Refused):
    """A body that is not JSON, is nested too deep, or names a key twice."""


class InvalidBody(Refused):
    """JSON of another form than the route reads."""


def media_type(request: Request, *known: str) -> str:
    """Give the content type, one of those known; UnsupportedMedia for others."""
    given = request.headers.get("content-type", "")
    media = given.partition(";")[0].strip().lower()
    media = NDJSON_ALIASES.get(media, media)
    if media not in known:
        raise UnsupportedMedia("content-type", given or None, " or ".join(known))
    charset = CHARSET.search(given)
    if charset and charset[1].lower() not in UTF_8:
        raise UnsupportedMedia(
            "content-type", given, "a type with the charset utf-8, or without a charset; the body must be UTF-8"
        )
    return media


async def read_small(request: Request) -> bytes:
    """Read a short JSON body."""
    media_type(request, "application/json")
    return without_bom(await read_body(request, SMALL_BODY_BYTES, SMALL_BODY))


async def read_body(request: Request, limit: int, setting: str = "ITAN_MAX_BODY_BYTES") -> bytes:
    """Read a body and decode it; stop as soon as it exceeds the limit, whatever its header says."""
    encoding = content_encoding(request)
    body = await read_encoded(request, limit, setting)
    return body if encoding in IDENTITY else await decoded(request, body, encoding, limit, setting)


def content_encoding(request: Request) -> str:
    """Give the content encoding; UnsupportedMedia for one that the service does not read."""
    given = request.headers.get("content-encoding", "")
    encoding = given.strip().lower()
    if encoding not in IDENTITY and encoding not in ENCODINGS:
        raise UnsupportedMedia("content-encoding", given, "gzip, zstd, snappy, or left out")
    return encoding


async def decoded(request: Request, body: bytes, encoding: str, limit: int, setting: str) -> bytes:
    """Decode a compressed body; other requests run in between."""
    hold = request.scope.get("extensions", {}).get(HOLD, {}).get(HOLD)
    pieces, size = list[bytes](), 0
    try:
        if (whole := declared_size(body, encoding)) > limit:
            raise too_large(whole, limit, setting)
        for piece in decoded_pieces(body, encoding):
            size += len(piece)
            if size > limit:
                raise too_large(size, limit, setting)
            if hold is not None:
                hold(len(piece))
            pieces.append(piece)
            await asyncio.sleep(0)
    except Undecodable as error:
        raise InvalidBody("body", f"{len(body)} bytes", f"valid {encoding}: {error}") from error
    return b"".join(pieces)


async def read_encoded(request: Request, limit: int, setting: str) -> bytes:
    """Read a body as it was sent."""
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
    """Give the next part of a body, and whether it is the last; ClientDisconnect if the client went away."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), not message.get("more_body", False)


def too_large(size: int, limit: int, setting: str) -> BodyTooLarge:
    """Say that a body is too long."""
    return BodyTooLarge("body", f"{size} bytes or more", f"at most {limit} bytes ({setting})")


def without_bom(body: bytes) -> bytes:
    """Give a body without the byte order mark that some editors and libraries put in front."""
    return body.removeprefix(BOM)


def decode(decoder: msgspec.json.Decoder[T], body: bytes, field: str = "") -> T:
    """Decode JSON into the decoder's type. Raises InvalidJson or InvalidBody, with the place of the error."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid_body(str(error), body, field, fields_of(decoder)) from error
    except (ValueError, RecursionError) as error:
        raise invalid_json(error, body, field) from error


def fields_of(decoder: msgspec.json.Decoder[Any]) -> tuple[str, ...]:
    """Give the fields of the struct that a decoder reads, if it reads one."""
    return getattr(decoder.type, "__struct_fields__", ())


def invalid_json(error: Exception, body: bytes, field: str = "") -> InvalidJson:
    """Say that a body is not JSON, and show the place."""
    found = AT_BYTE.search(str(error))
    start = int(found[1]) if found else max(0, len(body) - EXCERPT_BYTES)
    excerpt = body[start : start + EXCERPT_BYTES].decode(errors="replace")
    return InvalidJson(field or "body", excerpt or None, json_reason(error, body, excerpt))


def json_reason(error: Exception, body: bytes, excerpt: str) -> str:
    """Say what is wrong with JSON."""
    if isinstance(error, RecursionError):
        return "less deeply nested"
    if isinstance(error, UnicodeDecodeError) or body.startswith(WIDE_BOMS):
        return "JSON in UTF-8"
    if excerpt.startswith(LITERALS):
        return "valid JSON, which has no NaN and no Infinity: write null where a value is missing"
    return "valid JSON: " + str(error).removeprefix("JSON is malformed: ")


def invalid_body(message: str, body: bytes, field: str, known: tuple[str, ...] = ()) -> InvalidBody:
    """Say which field has the wrong form; `known` are the fields of the body itself."""
    try:
        tree = read_tree(body) if len(body) <= QUICK_BYTES else f"part of a body of {len(body)} bytes"
    except (ValueError, RecursionError):
        tree = None  # what follows the error need not be JSON
    return invalid_form(message, tree, field, known)


def invalid_form(
    message: str, tree: Any, field: str, known: tuple[str, ...] = (), choices: Choices = NO_CHOICES
) -> InvalidBody:
    """Say which field of a tree has the wrong form; choices are the texts that some of its fields may have."""
    found = AT_PATH.fullmatch(message)
    assert found is not None  # the pattern takes any text
    path, what = found["path"] or "", found["what"]
    named = NAMED_FIELD.search(what)
    inner = path + f".{named['name']}" if named else path
    limit = plain(what, () if path else known)
    if what.startswith(NO_CHOICE) and (steps := STEP.findall(path)) and (texts := choices.get(steps[0][1])):
        limit = f"one of {', '.join(texts)}"
    return InvalidBody((field + inner).lstrip(".") or "body", value_at(tree, inner), limit)


def choices_of(struct: type[msgspec.Struct]) -> Choices:
    """Give the texts that the fields of a struct may have, for those that have only some."""
    found = {}
    for field in msgspec.structs.fields(struct):
        kind = field.type
        while get_origin(kind) in (Annotated, tuple):
            kind = get_args(kind)[0]
        if get_origin(kind) is Literal:
            found[field.name] = get_args(kind)
    return found


def value_at(tree: Any, path: str) -> Any:
    """Give the value at a path such as .samples[0][1]; None if there is none."""
    for index, name in STEP.findall(path):
        if isinstance(tree, str):
            return tree  # a long body is shown by its length only
        try:
            tree = tree[int(index)] if index else tree[name]
        except (LookupError, TypeError):
            return None
    return tree


def refuse_repeated_names(body: bytes, names: int, texts: Iterable[str] = ()) -> None:
    """Raise InvalidJson if an object of the body holds a name twice; the decoder would take the last value.

    Each name is followed by a colon. If the body has as many colons as decoded names and texts, no name was dropped.
    Otherwise, or if an escape may stand for a colon, the body is read again.
    """
    if b"\\" in body or body.count(b":") != names + "".join(texts).count(":"):
        checked_tree(body)


def checked_tree(body: bytes) -> Any:
    """Read a body as it is written. Raises InvalidJson for invalid JSON, and for a name given twice in an object."""
    try:
        msgspec.json.decode(body)
    except msgspec.ValidationError:
        pass  # a number too large for a double
    except (ValueError, RecursionError) as error:
        raise invalid_json(error, body) from error
    try:
        tree = read_tree(body)
    except (ValueError, RecursionError) as error:
        raise invalid_json(error, body) from error
    if (repeated := repeated_name(tree)) is not None:
        path, value = repeated
        raise InvalidJson(path.lstrip("."), value, REPEATED)
    return tree
