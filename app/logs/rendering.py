"""Writes the fields of a line as bytes: always one line, whatever clients send."""

import json
from contextlib import suppress

import msgspec
from structlog.typing import EventDict, WrappedLogger

_ENCODER = msgspec.json.Encoder(enc_hook=repr)
INDENT = "    "


def render_json(_: WrappedLogger, __: str, fields: EventDict) -> bytes:
    """Write a JSON object in ASCII: JSON would leave some control characters that terminals obey."""
    with suppress(ValueError, OverflowError):  # half a surrogate pair; a whole number of more than 64 bits
        line = _ENCODER.encode(fields)
        if line.isascii():
            return line
    return json.dumps(fields, default=repr).encode()


def render_console(_: WrappedLogger, level: str, fields: EventDict) -> bytes:
    """Write for people; a traceback follows below, indented, so that no text can look like a line of its own."""
    exception = fields.pop("exception", "")
    time, event = fields.pop("timestamp"), fields.pop("event")
    fields.pop("level")
    words = [time, f"{level:7}", printable(event), *(f"{name}={quoted(value)}" for name, value in fields.items())]
    lines = [" ".join(words), *(INDENT + printable(line) for line in exception.splitlines())]
    return "\n".join(lines).encode()


def printable(text: str) -> str:
    """Escape characters that would move the cursor, end the line or be invisible."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def quoted(value: object) -> str:
    """Write a value, in quotes if it is not one plain word."""
    text = str(value)
    plain = text.isprintable() and not set(text) & set(' "=')
    return text if plain and text else json.dumps(text)
