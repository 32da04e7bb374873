"""Sources: how the records of agents become samples."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.sources.source import Arrays, Format, Path, Source, Unit


class SourceBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a source; with a preset, those that differ from it."""

    preset: Annotated[str, Meta(description="the preset to begin with")] | UnsetType = UNSET
    format: Format | UnsetType = UNSET
    stream: str | UnsetType = UNSET
    features: list[Path] | UnsetType = UNSET
    ignore: list[Path] | UnsetType = UNSET
    arrays: Arrays | UnsetType | None = UNSET
    feature: str | UnsetType = UNSET
    records: str | UnsetType = UNSET
    timestamp: str | UnsetType = UNSET
    timestamp_unit: Unit | UnsetType = UNSET
    id: str | UnsetType = UNSET
    join_seconds: float | UnsetType | None = UNSET
    missing: Literal["null", "refuse"] | UnsetType = UNSET
    new: Literal["ignore", "version"] | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET


class SourceAnswer(Source, frozen=True, kw_only=True):
    """A source. is_preset: it is as the service brings it, and nobody has replaced it."""

    source: str
    is_preset: bool


class SourceList(msgspec.Struct):
    """The names of all sources in order, presets too."""

    sources: list[str]
