"""Maintenance windows."""

import msgspec


class Window(msgspec.Struct, frozen=True, rename={"begin": "from", "end": "to"}):
    """When samples of some streams are scored, but neither learned nor told; begin and end are in epoch seconds."""

    window: str
    streams: str
    begin: float
    end: float
    reason: str


class WindowPage(msgspec.Struct, frozen=True):
    """All windows whose streams a key may read, in order of their names."""

    windows: list[Window]
