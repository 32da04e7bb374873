"""What a source says, and the checks of it."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.sources.templates import STREAM_LITERAL, Template
from app.streams.errors import Refused
from core import DetectorConfig

Unit = Literal["s", "ms", "us", "ns"]
Format = Literal["json", "influx", "otlp", "prometheus"]
UNITS: Final[dict[Unit, float]] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
Path = Annotated[str, Meta(min_length=1, max_length=256)]
TextTemplate = Annotated[str, Meta(max_length=512)]
LITERAL: Final = "letters, digits, dots, underscores, colons, hyphens, and {paths}"
TIME_TO_JOIN: Final = "the path of a time, by which records are joined"
MOST_JOIN_SECONDS: Final = 3600.0
BRACES: Final = "a text in which each { has its }, with a path in between"


class InvalidSource(Refused):
    """A source that cannot be used."""


class Arrays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two arrays of a record, at these paths: names of features, and their values."""

    names: Path
    values: Path


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How records become samples. Paths join the names of nested objects by dots; in globs * stands for anything.

    missing: what it means if a record lacks a feature of its stream. new: what it means if it has others.
    join_seconds: the records of a stream in one request whose times lie in the same window become one sample.
    """

    format: Annotated[Format, Meta(description="of the body; influx: line protocol")] = "json"
    stream: Annotated[str, Meta(min_length=1, max_length=512, description="template of the stream's id")]
    features: Annotated[list[Path], Meta(max_length=100, description="globs of the keys that are features")] = []
    ignore: Annotated[list[Path], Meta(max_length=100, description="globs of keys that are none")] = []
    arrays: Arrays | None = None
    feature: Annotated[
        TextTemplate, Meta(description="template of the names of features; {feature} is what a key or array calls one")
    ] = ""
    records: Annotated[str, Meta(max_length=256, description="the key of a body that holds its records; else all")] = ""
    timestamp: Annotated[str, Meta(max_length=256, description="path of the time; RFC 3339, or a number")] = ""
    timestamp_unit: Unit = "s"
    id: Annotated[TextTemplate, Meta(description="template of the sample's id")] = ""
    join_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=MOST_JOIN_SECONDS)] | None,
        Meta(description="length of the window; 0 joins equal times, null nothing"),
    ] = None
    missing: Literal["null", "refuse"] = "null"
    new: Annotated[
        Literal["ignore", "version"],
        Meta(description="ignore: they are left out and counted; version: each set of features is a stream of its own"),
    ] = "ignore"
    config: Annotated[
        dict[str, Any], Meta(description="the config of new streams; without features, these are found")
    ] = {}


def check(source: Source) -> None:
    """Raise InvalidSource or InvalidConfig for a source that cannot be used."""
    if not (source.features or source.arrays):
        raise InvalidSource("features", source.features, "at least one glob, unless there are arrays")
    for name in ("stream", "id", "feature"):
        refuse_braces(name, getattr(source, name))
    if not all(STREAM_LITERAL.fullmatch(literal) for literal in Template(source.stream).literals):
        raise InvalidSource("stream", source.stream, LITERAL)
    if source.join_seconds is not None and not source.timestamp:
        raise InvalidSource("timestamp", source.timestamp, TIME_TO_JOIN)
    DetectorConfig.from_dict(fields_of(source, ["x"]))


def refuse_braces(name: str, text: str) -> None:
    """Raise InvalidSource for a template with a brace too many, or without a path between two."""
    template = Template(text)
    if not all(template.paths) or any(brace in literal for literal in template.literals for brace in "{}"):
        raise InvalidSource(name, text, BRACES)


def fields_of(source: Source, names: list[str]) -> dict[str, Any]:
    """Give what a source says of the config of a new stream with these features, unless it declares its own."""
    return {"features": [{"name": name} for name in names]} | source.config
