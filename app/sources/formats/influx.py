"""Influx line protocol: a measurement, its tags, its fields and their time on each line."""

import re
from collections.abc import Iterator
from typing import Any, Final

from line_protocol_parser import LineFormatError, parse_line

from app.sources.errors import InvalidRecord

MOST_NAMES: Final = 1_000
"""The parser compares each tag with all others."""
EXCERPT_CHARACTERS: Final = 80
FORM: Final = "name,tag=text,... field=number,... time in whole units"
ONCE: Final = "a line in which no field comes twice"

# plain runs stand outside the groups: lines of backslashes take half the time
KEY: Final = rb"[^ \n\\]*+(?:\\.?[^ \n\\]*+)*+"
# only a value can be a text, which may hold line ends; a quote without its other one is no text
QUOTED: Final = rb'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"'
FIELDS: Final = rb"[^=\n\\]*+(?:(?:\\.?|=" + QUOTED + rb"|=)[^=\n\\]*+)*+"
LINE: Final = re.compile(rb"\s*+(?:(#[^\n]*+)|(" + KEY + FIELDS + rb"))")


def lines_in(body: bytes) -> Iterator[bytes | None]:
    """Give the lines with something in them; None for a comment."""
    for found in LINE.finditer(body):
        if found[1]:
            yield None
        elif line := found[2].rstrip():
            yield line


def tree_of(line: bytes, field: str) -> dict[str, Any]:
    """Read a line. Raises InvalidRecord for this field."""
    if line.count(b"=") > MOST_NAMES:
        raise InvalidRecord(field, f"a line of {len(line)} bytes", f"at most {MOST_NAMES} tags and fields")
    try:
        text = line.decode()
        read = parse_line(text)
    except UnicodeDecodeError:
        raise InvalidRecord(field, shown(line), "UTF-8") from None
    except LineFormatError as error:
        raise InvalidRecord(field, shown(line), f"{FORM}: {str(error).rstrip('.').lower()}") from None
    tags, fields = read["tags"], read["fields"]
    if text.count("=") != signs_in(read["measurement"], tags, fields):
        raise InvalidRecord(field, shown(line), ONCE)
    # the parser gives fields from the last to the first
    ordered = {name: fields[name] for name in reversed(fields)}
    return {"name": read["measurement"], "tags": tags, "fields": ordered, "timestamp": read["time"]}


def signs_in(measurement: str, tags: dict[str, str], fields: dict[str, Any]) -> int:
    """Count the equals signs of a line, if the parser has left out nothing."""
    texts = [
        measurement,
        *tags,
        *tags.values(),
        *fields,
        *(value for value in fields.values() if isinstance(value, str)),
    ]
    return len(tags) + len(fields) + "".join(texts).count("=")


def shown(line: bytes) -> str:
    """Give the beginning of a line."""
    return line[:EXCERPT_CHARACTERS].decode(errors="replace")
