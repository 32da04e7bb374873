"""Asks the store how it is, for readiness and metrics."""

import asyncio
from dataclasses import dataclass, field

from app.storage import Cause, Store, StoreUnavailable, Usage

CHECK_SECONDS = 2.0
MEASURE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """How the store is: available, refusing writes, or unavailable."""

    name: str
    reason: str | None = None
    warnings: list[str] = field(default_factory=list)
    is_replaced: bool = False
    """Its files are not those that were opened: an operator must act."""


class StoreProbe:
    """Asks the store, and does not wait long for an answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def status(self) -> StoreStatus:
        """Check the store."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                warnings = await self._store.check()
        except TimeoutError:
            return StoreStatus("unavailable", f"no answer within {CHECK_SECONDS:g} seconds")
        except StoreUnavailable as error:
            return StoreStatus("unavailable", error.reason, is_replaced=error.cause is Cause.REPLACED)
        refusal = self._store.write_refusals.recent()
        return StoreStatus("refusing" if refusal else "available", refusal, warnings)

    async def usage(self) -> Usage | None:
        """Measure how full the store is; None if it does not answer."""
        try:
            async with asyncio.timeout(MEASURE_SECONDS):
                return await self._store.usage()
        except (StoreUnavailable, TimeoutError):
            return None
