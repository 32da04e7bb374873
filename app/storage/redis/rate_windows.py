"""Rate limits that all workers share, counted in Redis."""

from limits.aio.storage import MemoryStorage
from limits.aio.storage.redis.bridge import RedisBridge

from app.storage.redis.keys import PREFIX
from app.storage.redis.pipeline import Pipeline
from app.storage.redis.scripts import script_of


class RateWindows(MemoryStorage):
    """The sliding windows of `limits`, in Redis, over the store's own connections.

    The scripts are those of `limits`. Its own Redis storage would open further connections and reads other URLs. The
    inherited methods are not used.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self._pipeline = pipeline
        self._acquire = script_of(RedisBridge.SCRIPT_ACQUIRE_SLIDING_WINDOW)
        self._read = script_of(RedisBridge.SCRIPT_SLIDING_WINDOW)

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count if the limit allows it."""
        return bool(await self._pipeline.start(self._acquire, window_keys(key), limit, expiry, amount))

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Give the count and the seconds left of the window before, and of this one."""
        before, before_ms, now, now_ms = await self._pipeline.start(self._read, window_keys(key), expiry)
        return int(before or 0), max(0, before_ms) / 1000, int(now or 0), max(0, now_ms) / 1000


def window_keys(key: str) -> tuple[str, str]:
    """Name the previous and the current window of a rate. The braces put both in one slot of a Cluster."""
    return f"{PREFIX}{{rate/{key}}}:before", f"{PREFIX}{{rate/{key}}}:now"
