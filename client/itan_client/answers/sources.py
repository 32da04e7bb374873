"""Sources: how the records of agents become samples."""

from typing import Any

import msgspec


class Arrays(msgspec.Struct, frozen=True):
    """Two arrays of a record, at these paths: names of features, and their values."""

    names: str
    values: str


class Source(msgspec.Struct, frozen=True):
    """A source. is_preset: it is as the service brings it, and nobody has replaced it."""

    source: str
    is_preset: bool
    stream: str
    features: list[str]
    ignore: list[str]
    arrays: Arrays | None
    records: str
    timestamp: str
    timestamp_unit: str
    id: str
    missing: str
    new: str
    config: dict[str, Any]
    format: str = "json"
    feature: str = ""
    join_seconds: float | None = None


class SourceNames(msgspec.Struct, frozen=True):
    """The names of all sources in order, presets too."""

    sources: list[str]
