"""The time, injected so that tests can set it."""

import asyncio
import time


class Clock:
    """Wall time for what users send, monotonic time for everything that waits."""

    def __init__(self) -> None:
        self._start = self.now() - self.monotonic()

    def now(self) -> float:
        """Give the wall time in epoch seconds; it may jump."""
        return time.time()

    def monotonic(self) -> float:
        """Give seconds that never go back."""
        return time.monotonic()

    def steady(self) -> float:
        """Give epoch seconds that do not jump when the clock is set: process start plus the time since."""
        return self._start + self.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
