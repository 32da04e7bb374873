"""Moves the older parts of logs to the archive, and erases the archived files of deleted streams."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from app.storage import ArchiveUnavailable, DocumentKind, LeaseHeld, StoreError
from app.streams.errors import UnknownStream
from app.streams.log.archive.archive import Archive
from app.streams.log.archive.files import read_files
from app.streams.log.archive.names import name_in
from app.streams.log.events import UnreadableEvent
from app.streams.maintenance.background import Background
from app.streams.maintenance.move import Move
from app.streams.open.registry import Registry

PAUSE_SECONDS: Final = 0.5
MOVED_TOGETHER: Final = 4
MOST_PAUSE_SECONDS: Final = 60.0
ERASE_EVERY_SECONDS: Final = 600.0
SETTLED_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


class Archiver(Background):
    """Works off the streams that a snapshot found too long, and the files to erase."""

    def __init__(self, registry: Registry, archive: Archive) -> None:
        worker = registry.worker
        self._registry, self._worker, self._archive = registry, worker, archive
        self._store, self._clock = worker.store, worker.clock
        self._failing_since: float | None = None
        self._pause_seconds = PAUSE_SECONDS
        self._erased_at: float | None = None
        worker.metrics.watch_archive(self.failing_seconds)

    def failing_seconds(self) -> float:
        """Give how long the archive has been failing; 0 if all is well."""
        return 0.0 if self._failing_since is None else self._clock.monotonic() - self._failing_since

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(self._pause_seconds)
            await self.work()

    async def work(self) -> None:
        """Erase what is to be erased, and move what is due, a few streams at a time; pause longer after a failure."""
        try:
            await self._erase_now_and_then()
            while self._worker.to_archive:
                streams = list(self._worker.to_archive)[:MOVED_TOGETHER]
                await self._move_together(streams)
        except ArchiveUnavailable as error:
            self._note_failure(error)
        except StoreError as error:
            logger.warning("nothing can be moved to the archive: %s", error)
            self._wait_longer()
        else:
            self._failing_since, self._pause_seconds = None, PAUSE_SECONDS

    def _note_failure(self, error: ArchiveUnavailable) -> None:
        self._worker.metrics.archive_failures.inc()
        if self._failing_since is None:
            self._failing_since = self._clock.monotonic()
            logger.warning("logs stay in the store for now: %s", error)
        self._wait_longer()

    def _wait_longer(self) -> None:
        self._pause_seconds = min(2 * self._pause_seconds, MOST_PAUSE_SECONDS)

    async def _move_together(self, streams: Sequence[str]) -> None:
        """Move what is due of some streams at once; raise the first error after all have ended."""
        outcomes = await asyncio.gather(*map(self._move, streams), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _move(self, stream: str) -> None:
        """Move what is due of a stream; the failure of one must not end the moves of others."""
        try:
            await Move(self._registry, self._archive, stream).run()
        except ArchiveUnavailable:
            raise
        except (LeaseHeld, UnknownStream):
            pass  # its writer moves it
        except Exception as error:
            unexpected = not isinstance(error, StoreError | UnreadableEvent)
            text, about = "stream %s: not moved to the archive: %s", {"stream": stream}
            logger.warning(text, stream, error, exc_info=unexpected, extra=about)
        self._worker.to_archive.pop(stream, None)

    async def _erase_now_and_then(self) -> None:
        now = self._clock.monotonic()
        is_due = self._erased_at is None or now - self._erased_at >= ERASE_EVERY_SECONDS
        if is_due or self._worker.to_erase.is_set():
            self._worker.to_erase.clear()
            await self.erase()
            self._erased_at = now

    async def erase(self) -> None:
        """Erase the files of deleted streams; those of a stream that bears the name now stay."""
        for stream, body in (await self._store.documents(DocumentKind.ERASURE)).items():
            paths = await self._archive.paths(stream)
            # the index is read last: a file is in it before it is in the archive
            kept = {file.name for file in read_files(stream, await self._store.files(stream))}
            if kept and self._clock.now() - float(body) < SETTLED_SECONDS:
                continue  # it may be about to be deleted
            await self._archive.erase_paths([path for path in paths if name_in(path) not in kept])
            await self._store.delete_document(DocumentKind.ERASURE, stream, body)
