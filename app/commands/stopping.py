"""Stop at the next good moment when asked to, and at once when asked again."""

import signal
import time
from types import TracebackType
from typing import Any, Final, Self

INTERRUPTED: Final = 130
"""The exit code of who was stopped by Ctrl-C."""

LONGEST_PAUSE_SECONDS = 0.2


class StopRequests:
    """While entered, notes SIGINT and SIGTERM instead of dying of them; the second one raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self._came = False
        self._handlers: dict[int, Any] = {}

    def came(self) -> bool:
        """Tell whether anybody has asked."""
        return self._came

    def came_within(self, seconds: float) -> bool:
        """Wait so long, or until somebody asks; tell whether anybody has."""
        ends = time.monotonic() + seconds
        while not self._came:
            left = ends - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, LONGEST_PAUSE_SECONDS))
        return True

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, *_: object) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
