"""Maintenance windows: times in which samples of some streams are scored and marked, but neither learned nor told."""

from collections.abc import Callable, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from app import patterns
from app.documents import Documents, UnknownDocument
from app.security import Forbidden
from app.storage import DocumentKind, Store, StoreUnavailable
from app.streams.errors import Refused
from app.streams.open.backoff import Backoff
from app.streams.open.clock import Clock
from app.streams.open.schedule import EMPTY, Schedule

LONGEST_SECONDS: Final = 366 * 86_400.0


class InvalidWindow(Refused):
    """A window that cannot be used."""


class UnknownWindow(UnknownDocument):
    """No such window."""

    kind = DocumentKind.WINDOW


class NameTaken(Forbidden):
    """The name of a window that the key may not change; it tells nothing of its streams."""

    def __init__(self, name: str) -> None:
        Exception.__init__(self, f"the key may not change the window that is named {name!r}")


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"begin": "from", "end": "to"}):
    """A window, in epoch seconds: a sample at its begin lies in it, one at its end does not."""

    streams: Annotated[str, Meta(max_length=129, description="a stream, or a prefix and *")]
    begin: Annotated[float, Meta(description="epoch seconds")]
    end: Annotated[float, Meta(description="epoch seconds, at most 366 days later; it lies outside")]
    reason: Annotated[str, Meta(max_length=500, description="for people")] = ""


Windows = Documents[Window]


def windows_in(store: Store, clock: Clock, most: int) -> Windows:
    """Give the windows of a store."""
    return Windows(store, clock, most, UnknownWindow, read_window)


def read_window(body: bytes) -> Window:
    """Give a window that is kept."""
    return msgspec.json.decode(body, type=Window)


def check(window: Window) -> None:
    """Raise InvalidWindow for a window that cannot be used."""
    if not patterns.PATTERN.fullmatch(window.streams):
        raise InvalidWindow("streams", window.streams, patterns.WANTED)
    if window.end <= window.begin:
        raise InvalidWindow("to", window.end, "after from")
    if window.end - window.begin > LONGEST_SECONDS:
        raise InvalidWindow("to", window.end, "at most 366 days after from")


async def keep(
    windows: Windows, name: str, window: Window, may_change: Callable[[Window], bool], over_before: float
) -> bool:
    """Keep a window; tell whether it is new. Raises NameTaken or TooMany.

    If there is no room, the one that was over first goes, among those that may be changed and were over before a time.
    """

    def check_old(old: Window) -> None:
        if not may_change(old):
            raise NameTaken(name)

    def spare(kept: Mapping[str, Window]) -> list[str]:
        over = [(one.end, other) for other, one in kept.items() if one.end <= over_before and may_change(one)]
        return [other for _, other in sorted(over)]

    return await windows.put(name, msgspec.json.encode(window), check_old, spare)


class Planned:
    """The schedule of the windows as this worker last read them.

    While the store is down only now and then a caller waits for it: reads go on without.
    """

    def __init__(self, windows: Windows, clock: Clock) -> None:
        self._windows, self._backoff = windows, Backoff(clock)
        self._known: object = None
        self._schedule = EMPTY

    async def __call__(self) -> Schedule:
        """Give the schedule, perhaps as it was FRESH_SECONDS ago; of windows that can be read."""
        self._backoff.check()
        try:
            known = await self._windows.readable()
        except StoreUnavailable as error:
            self._backoff.note_refusal(error)
            raise
        self._backoff.note_success()
        if known is not self._known:
            self._schedule = Schedule((one.streams, one.begin, one.end) for one in known.values())
            self._known = known
        return self._schedule
