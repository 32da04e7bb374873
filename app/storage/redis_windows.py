"""Rates that all workers share, counted in Redis."""

from limits.aio.storage import MemoryStorage
from limits.aio.storage.redis.bridge import RedisBridge

from app.storage.keys import PREFIX
from app.storage.redis_pipe import RedisPipe, script_of


class RedisWindows(MemoryStorage):
    """The sliding windows of `limits`, kept in Redis over the store's own connections.

    The scripts are those of its storage for Redis, which would open connections of its own and knows other URLs; what
    is inherited is not asked for.
    """

    def __init__(self, pipe: RedisPipe) -> None:
        super().__init__()
        self._pipe = pipe
        self._acquire = script_of(RedisBridge.SCRIPT_ACQUIRE_SLIDING_WINDOW)
        self._read = script_of(RedisBridge.SCRIPT_SLIDING_WINDOW)

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count if there is room."""
        return bool(await self._pipe.start(self._acquire, window_keys(key), limit, expiry, amount))

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Give the count and the seconds left of the window before, and of this one."""
        before, before_ms, now, now_ms = await self._pipe.start(self._read, window_keys(key), expiry)
        return int(before or 0), max(0, before_ms) / 1000, int(now or 0), max(0, now_ms) / 1000


def window_keys(key: str) -> tuple[str, str]:
    """Name the windows of a rate: the one before, and this one. The braces put both in one slot of a cluster."""
    return f"{PREFIX}{{rate/{key}}}:before", f"{PREFIX}{{rate/{key}}}:now"
