"""Moves the older part of logs into blocks in the background."""

import asyncio
import logging
from time import perf_counter
from typing import Final

from app.storage import Fenced, Position, StaleWriter, StoreError, StreamNotFound
from app.streams.log.compaction import compact
from app.streams.maintenance.background import Background
from app.streams.open.worker import Worker

PAUSE_SECONDS: Final = 0.05
SHARE: Final = 0.25
"""The work takes no more of the time, also if many streams have long logs of an earlier version."""
MOST_BLOCKS: Final = 8
"""So many blocks of a stream are made after a snapshot: a long log of an earlier version is moved bit by bit."""

logger = logging.getLogger(__name__)


class Compactor(Background):
    """Moves what is older than a stored snapshot into blocks, one stream after another; no request waits for it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def _run(self) -> None:
        while True:
            began = perf_counter()
            await self._compact_next()
            await self._worker.clock.sleep(max(PAUSE_SECONDS, (perf_counter() - began) / SHARE))

    async def compact_due(self) -> None:
        """Go through the streams that have a new snapshot."""
        while self._worker.to_compact:
            await self._compact_next()
            await asyncio.sleep(0)

    async def _compact_next(self) -> None:
        """Make blocks of the stream that has waited longest, if this worker writes it."""
        due = self._worker.to_compact
        stream = next(iter(due), None)
        if stream is not None:
            until, oldest_seq = due.pop(stream)
            if self._worker.leases.holds(stream):
                await self._compact(stream, until, oldest_seq)

    async def _compact(self, stream: str, until: Position, oldest_seq: int) -> None:
        """Make the blocks of a stream; the failure of one stream must not end those of all others."""
        try:
            for _ in range(MOST_BLOCKS):
                token = self._worker.leases.token(stream)
                n_samples = await compact(self._worker.store, stream, until, oldest_seq, token)
                if not n_samples:
                    return
                self._worker.metrics.compacted_samples.inc(n_samples)
        except (Fenced, StaleWriter, StreamNotFound):
            pass  # another worker's by now, begun anew, or deleted
        except Exception as error:
            self._worker.metrics.compaction_failures.inc()
            unexpected = not isinstance(error, StoreError)
            logger.warning(
                "the log of stream %s stays as it is: %s", stream, error, exc_info=unexpected, extra={"stream": stream}
            )
