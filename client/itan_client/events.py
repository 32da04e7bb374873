"""Reads server-sent events, line by line."""

from typing import Final

import msgspec

from itan_client.answers.events import EVENTS, Event

LEAST_TIMEOUT_SECONDS: Final = 60.0
"""The service sends something every 15 seconds."""


class EventReader:
    """Makes events of lines, and knows the position in the log to continue from."""

    def __init__(self, position: str) -> None:
        self.position = position
        self._name, self._data = "", list[str]()

    def read(self, line: str) -> Event | None:
        """Take a line, and give the event that it ends. Kinds of events that a later service has are passed over."""
        if not line:
            return self._finish()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id":
            self.position = value
        return None

    def _finish(self) -> Event | None:
        name, text = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        kind = EVENTS.get(name)
        if kind is None or not text:
            return None
        return msgspec.convert(msgspec.json.decode(text) | {"position": self.position}, kind)
