"""What of one stream's log stays in the store, and how far back its samples can be labelled."""

from dataclasses import replace
from math import ceil
from typing import Final, NamedTuple

from app.storage import START, StoredBlock
from app.streams.log.archive.files import ArchivedFile
from app.streams.log.horizon import STEP, Horizon
from app.streams.log.log import Log, first_seq
from app.streams.open.worker import Worker
from app.streams.state.state import StreamState

TAIL: Final = 1 / 8
"""Samples that no snapshot holds cannot be trimmed: there are at most about so many of what the store keeps."""
FULL: Final = 7 / 8
"""Entries are moved when so much of a limit is used: so the log stays within it while they are on the way."""
AFTER_MOVE: Final = 5 / 8
"""So much of a limit is used after a move: files are a quarter of what the store keeps."""


class Trimming(NamedTuple):
    """What a snapshot may trim: entries that end before a sample; the labels of archived samples stay."""

    keep_from_seq: int
    keep_labels: bool


class Retention:
    """Follows the limits of one stream's log: in time, samples and bytes."""

    def __init__(self, worker: Worker, log: Log) -> None:
        self._stream, self._worker, self._archived, self._kept = log.stream, worker, log.archived, log.kept
        self._store, self._settings = worker.store, worker.settings

    def horizon(self, state: StreamState, step: int = STEP) -> Horizon:
        """Give the horizon of labels as it is now."""
        samples, seconds = self._settings.horizon_samples, self._settings.horizon_seconds
        return state.horizon.advanced(state.detector.next_seq, self._worker.clock.steady(), samples, seconds, step)

    def is_trim_due(self, unsaved: int) -> bool:
        """Tell whether so many samples after the last snapshot are much of what the store keeps."""
        return unsaved >= max(TAIL * self._settings.kept_samples, 1)

    async def trimming(self, horizon: Horizon) -> Trimming:
        """Say what a snapshot may trim."""
        if self._archived is None:
            return Trimming(horizon.oldest_seq, keep_labels=False)
        files = await self._archived.files()
        return Trimming(await self._after(files[-1]) if files else 0, keep_labels=True)

    async def _after(self, file: ArchivedFile) -> int:
        """Give the sample from which on entries are not in files up to this one; of its last seq labels may be left."""
        following = [] if file.is_followed else await self._kept.entries(file.last, 1)
        has_labels = bool(following) and following[0].first_seq is None
        return file.last.seq if has_labels else file.last.seq + 1

    async def fitted(self, horizon: Horizon, next_seq: int) -> Horizon:
        """Give a later horizon if the log takes too many bytes, and cannot be moved to an archive."""
        most = self._settings.log_bytes
        if self._archived is not None or most is None:
            return horizon
        held = (await self._store.size(self._stream)).log_bytes
        if held <= most:
            return horizon
        oldest = await self._whole_from(from_share(await self._first(next_seq), next_seq, FULL * most / held))
        return replace(horizon, oldest_seq=max(horizon.oldest_seq, oldest))

    async def _first(self, next_seq: int) -> int:
        """Give the oldest sample in the store."""
        part = await self._store.entries(self._stream, START, 1)
        if isinstance(part, StoredBlock):
            return part.after.seq + 1
        return first_seq(part[0]) if part else next_seq

    async def _whole_from(self, seq: int) -> int:
        """Give this sample, or the one after the block that holds it: a block is trimmed as a whole."""
        parts = await self._store.entries_holding(self._stream, [seq])
        return next((part.position.seq + 1 for part in parts if isinstance(part, StoredBlock)), seq)

    async def note_saved(self, state: StreamState) -> None:
        """Ask for a move to the archive if one is due, or was cut short."""
        if self._archived is None:
            return
        await self._drop_expired(state.horizon)
        announced = await self._archived.announced()
        is_cut_short = bool(announced) and not announced[-1].is_written
        if is_cut_short or await self.is_due(state):
            self._worker.to_archive[self._stream] = None

    async def is_due(self, state: StreamState) -> bool:
        """Tell whether the log in the store is nearly as long as it may be."""
        assert self._archived is not None
        return await self.wanted_from(state, FULL) > stored_from(await self._archived.announced(), state)

    async def wanted_from(self, state: StreamState, share: float) -> int:
        """Give the oldest sample that the store would keep if it used this share of each limit."""
        next_seq, settings = state.detector.next_seq, self._settings
        samples, seconds = settings.kept_samples, settings.kept_seconds
        by_age = state.horizon.observed_before(self._worker.clock.steady() - share * seconds)
        by_bytes = 0
        if settings.log_bytes is not None and self._archived is not None:
            first = stored_from(await self._archived.announced(), state)
            held = (await self._store.size(self._stream)).log_bytes
            by_bytes = from_share(first, next_seq, share * settings.log_bytes / max(1, held))
        return max(next_seq - ceil(share * samples), by_age, by_bytes)

    async def _drop_expired(self, horizon: Horizon) -> None:
        """Take files out of the index whose samples nobody can label any more; they stay in the archive."""
        assert self._archived is not None
        expired = [file.last.seq for file in await self._archived.files() if file.last.seq < horizon.oldest_seq]
        if expired:
            await self._store.drop_files(self._stream, expired[-1], self._worker.leases.token(self._stream))
            self._archived.forget()


def from_share(first: int, next_seq: int, share: float) -> int:
    """Give the sample from which on there is this share of the samples, 1 for all."""
    return first if share >= 1 else next_seq - int((next_seq - first) * share)


def stored_from(announced: list[ArchivedFile], state: StreamState) -> int:
    """Give the oldest sample that is not in a file."""
    return announced[-1].last.seq + 1 if announced else state.horizon.oldest_seq
