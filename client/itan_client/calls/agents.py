"""Sources: how the records of agents become samples."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from itan_client.answers.sources import Source, SourceNames
from itan_client.request import JSON, Request, encode, nothing


def sources() -> Request[list[str]]:
    """List the names of all sources, presets too."""
    return Request("GET", "/sources", lambda content: _NAMES(content).sources)


def get_source(source: str) -> Request[Source]:
    """Get a source."""
    return Request("GET", _path(source), _SOURCE)


def put_source(source: str, fields: Mapping[str, Any]) -> Request[Source]:
    """Create or replace a source; with the field `preset`, the others are what differs from that."""
    return Request("PUT", _path(source), _SOURCE, {}, encode(fields), JSON)


def delete_source(source: str) -> Request[None]:
    """Delete a source; if a preset has its name, that is there again."""
    return Request("DELETE", _path(source), nothing, repeatable=False)


def _path(source: str) -> str:
    return f"/sources/{quote(source, safe='')}"


_SOURCE = msgspec.json.Decoder(Source).decode
_NAMES = msgspec.json.Decoder(SourceNames).decode
