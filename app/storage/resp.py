"""Redis' protocol, RESP2: commands to bytes, and bytes to answers."""

from collections.abc import Iterable, Sequence
from typing import Any

from redis.exceptions import NoScriptError, ReadOnlyError, ResponseError

ERRORS: dict[str, type[ResponseError]] = {"NOSCRIPT": NoScriptError, "READONLY": ReadOnlyError}


class IncompleteReply(Exception):
    """More bytes of an answer are still to come."""


def pack(commands: Iterable[Sequence[Any]]) -> bytes:
    r"""Write commands as they go over the wire.

    >>> pack([("HGET", "key", 1)])
    b'*3\r\n$4\r\nHGET\r\n$3\r\nkey\r\n$1\r\n1\r\n'
    """
    parts: list[bytes] = []
    for words in commands:
        parts.append(b"*%d\r\n" % len(words))
        for word in words:
            written = word if isinstance(word, bytes) else str(word).encode()
            parts += (b"$%d\r\n" % len(written), written, b"\r\n")
    return b"".join(parts)


def read_replies(data: bytes, count: int) -> list[Any]:
    r"""Read so many answers, or raise IncompleteReply; errors are answers too.

    >>> read_replies(b"*2\r\n$2\r\nok\r\n:7\r\n$-1\r\n", 2)
    [[b'ok', 7], None]
    """
    replies, at = [], 0
    for _ in range(count):
        reply, at = _read(data, at)
        replies.append(reply)
    return replies


def _read(data: bytes, at: int) -> tuple[Any, int]:
    """Read the answer that begins at a place, and give the place after it."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise IncompleteReply
    kind, text, at = data[at : at + 1], data[at + 1 : end], end + 2
    match kind:
        case b"$":
            return _read_bulk(data, at, int(text))
        case b"*":
            return _read_array(data, at, int(text))
        case b":":
            return int(text), at
        case b"+":
            return text, at
        case b"-":
            return error_of(text.decode(errors="replace")), at
    raise ResponseError(f"an answer that begins with {kind!r}")


def _read_bulk(data: bytes, at: int, size: int) -> tuple[bytes | None, int]:
    if size < 0:
        return None, at
    if len(data) < at + size + 2:
        raise IncompleteReply
    return data[at : at + size], at + size + 2


def _read_array(data: bytes, at: int, size: int) -> tuple[list[Any] | None, int]:
    if size < 0:
        return None, at
    items = []
    for _ in range(size):
        item, at = _read(data, at)
        items.append(item)
    return items, at


def error_of(text: str) -> ResponseError:
    """Give an error by its first word."""
    code = text.partition(" ")[0]
    return ERRORS.get(code, ResponseError)(text)
