"""Stores the summaries of the streams that this worker writes, many in one call of the store."""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from app.storage import StoreError, StoreUnavailable, SummaryRow
from app.streams.open.session import Session
from app.streams.open.worker import Worker

AT_ONCE: Final = 100
"""Streams whose summaries are made before others have their turn: a millisecond or two."""

logger = logging.getLogger(__name__)


class SummaryWriter:
    """Stores what has changed; what the store does not take is stored with the next change."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._store = worker, worker.store
        self._is_failing = False

    async def write(self, sessions: Iterable[Session]) -> None:
        """Store the summaries of those of these streams that have changed; no failure is raised, one is logged."""
        due = [session for session in sessions if session.summary_is_due and session.current_state is not None]
        failure = None
        for begin in range(0, len(due), AT_ONCE):
            failure = await self._write(due[begin : begin + AT_ONCE]) or failure
            if isinstance(failure, StoreUnavailable):
                break  # the next ones would wait as long for the same answer
        if failure is not None and not self._is_failing:
            unexpected = None if isinstance(failure, StoreError) else failure
            logger.warning("summaries of streams not stored: %s", failure, exc_info=unexpected)
        if due:
            self._is_failing = failure is not None

    async def _write(self, due: Sequence[Session]) -> Exception | None:
        """Store summaries and give what went wrong; they stay due then, also if this is cancelled."""
        try:
            await self._learn_when_written(due)
            await self._store.put_summaries(self._rows(due))
            return None
        except BaseException as error:
            for session in due:
                session.summary_is_due = True
            if not isinstance(error, Exception):
                raise
            return error

    async def _learn_when_written(self, sessions: Sequence[Session]) -> None:
        """Ask the store when those streams were last written that were not written since they were loaded."""
        unknown = [session for session in sessions if session.written_at is None]
        if unknown:
            now = self._worker.clock.now()
            silences = await self._store.silences([session.stream for session in unknown])
            for session in unknown:
                if session.written_at is None and (silence := silences.get(session.stream)) is not None:
                    session.written_at = now - silence.seconds

    def _rows(self, sessions: Sequence[Session]) -> list[SummaryRow]:
        """Give the summaries as they are now; later changes are due again."""
        rows = []
        for session in sessions:
            if (summary := session.summary()) is not None:
                session.summary_is_due = False
                token = self._worker.leases.token(session.stream)
                rows.append(SummaryRow(session.stream, summary.to_bytes(), token))
        return rows
