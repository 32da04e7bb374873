"""Maintenance windows: when samples are scored, but neither learned nor told."""

from datetime import datetime
from urllib.parse import quote

import msgspec

from itan_client.answers.windows import Window, WindowPage
from itan_client.inputs import moment_of
from itan_client.request import JSON, Request, encode, nothing


def windows() -> Request[list[Window]]:
    """List the windows whose streams the key may read."""
    return Request("GET", "/windows", lambda content: _PAGE(content).windows)


def get_window(window: str) -> Request[Window]:
    """Get a window."""
    return Request("GET", _path(window), _WINDOW)


def put_window(
    window: str, streams: str, begin: float | str | datetime, end: float | str | datetime, reason: str = ""
) -> Request[Window]:
    """Create or replace a window for a stream, or for a prefix and *.

    begin and end are epoch seconds, RFC 3339, or a datetime with a zone; a sample at begin lies in it, one at end not.
    """
    fields = {"streams": streams, "from": moment_of(begin), "to": moment_of(end), "reason": reason}
    return Request("PUT", _path(window), _WINDOW, {}, encode(fields), JSON)


def delete_window(window: str) -> Request[None]:
    """Delete a window; samples that came while it was there stay as they were answered."""
    return Request("DELETE", _path(window), nothing, repeatable=False)


def _path(window: str) -> str:
    return f"/windows/{quote(window, safe='')}"


_WINDOW = msgspec.json.Decoder(Window).decode
_PAGE = msgspec.json.Decoder(WindowPage).decode
