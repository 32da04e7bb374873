"""How the body of each format is split into records, and how each of these is read."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.api.bodies.json_tree import REPEATED, unheld_number
from app.api.bodies.reading import InvalidBody
from app.api.bodies.records import at_least_one, refuse_long, split_json, split_lines, tree_of, within_limit
from app.api.bodies.splitting import holds_lines
from app.api.bodies.wording import HELD
from app.api.routing import JSON, NDJSON, PROTOBUF, TEXT
from app.sources.formats import influx, otlp, prometheus
from app.sources.source import Format, Source
from app.streams.errors import InvalidSamples

_ANY = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Form:
    """The types of bodies of a format, how the record at a place is read, and its longest body."""

    media: tuple[str, ...]
    read: Callable[[int, Any], dict[str, Any]]
    most_bytes: int = sys.maxsize


async def split(media: str, body: bytes, limit: int, source: Source) -> Sequence[Any]:
    """Split a body into its records: texts, or messages, of which there may be none; other requests run in between."""
    match source.format:
        case "influx":
            return at_least_one(await within_limit(influx.lines_in(body), limit))
        case "otlp":
            return await within_limit(otlp.points_in(body, is_json=media == JSON), limit)
        case "prometheus":
            return await within_limit(prometheus.values_in(body), limit)
    is_of_lines = media == NDJSON or holds_lines(body)
    return at_least_one(split_lines(body, limit) if is_of_lines else split_json(body, limit, source.records))


def tree_of_json(place: int, text: bytes) -> dict[str, Any]:
    """Read a record in JSON. Raises Refused."""
    refuse_long(place, text)
    field = f"records[{place}]"
    try:
        tree = _ANY.decode(text)
        if may_repeat(tree, text):
            raise ValueError(REPEATED)
    except (ValueError, RecursionError) as error:
        tree = tree_of(place, text, error)
        refuse_unheld(tree, field)
    if not isinstance(tree, dict):
        raise InvalidBody(field, tree, "an object")
    return tree


def tree_of_line(place: int, text: bytes) -> dict[str, Any]:
    """Read a record in line protocol. Raises Refused."""
    refuse_long(place, text)
    return influx.tree_of(text, f"records[{place}]")


def tree_of_point(place: int, point: otlp.Point) -> dict[str, Any]:
    """Read a data point. Raises Refused."""
    return otlp.tree_of(point, f"records[{place}]")


def tree_of_value(place: int, value: prometheus.Value) -> dict[str, Any]:
    """Read a value of a series. Raises Refused."""
    return prometheus.tree_of(value, f"records[{place}]")


FORMS: Final[dict[Format, Form]] = {
    "json": Form((JSON, NDJSON), tree_of_json),
    "influx": Form((TEXT,), tree_of_line),
    "prometheus": Form((PROTOBUF,), tree_of_value, prometheus.MOST_BYTES),
    "otlp": Form((PROTOBUF, JSON), tree_of_point, otlp.MOST_BYTES),
}


def refuse_unheld(tree: Any, field: str) -> None:
    """Raise InvalidSamples for NaN, an infinity or a number too large: none of them is a text or a missing value."""
    if (unheld := unheld_number(tree)) is not None:
        path, value = unheld
        raise InvalidSamples(field + path, value, f"{HELD}, or null")


def may_repeat(tree: Any, text: bytes) -> bool:
    """Tell whether the text has other colons than those of the decoded names and texts: a name may come twice."""
    names, texts, waiting = 0, list[str](), [tree]
    while waiting:
        match waiting.pop():
            case dict() as node:
                names += len(node)
                texts += node
                waiting += node.values()
            case list() as node:
                waiting += node
            case str() as value:
                texts.append(value)
    return b"\\" in text or text.count(b":") != names + "".join(texts).count(":")
