"""Moves the older part of one stream's log to the archive.

A move announces a file in the store's index, writes it, completes its row in the index, and only then trims the log. It
may stop anywhere: the next writer finds what was announced, and writes the same again under the same name.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec.structs import replace

from app.storage import START, Entry, Position
from app.streams.batches.features import feature_names
from app.streams.errors import UnknownStream
from app.streams.log.archive.archive import Archive
from app.streams.log.archive.files import ArchivedFile, announced
from app.streams.log.archive.names import new_name
from app.streams.log.events import read_all_records
from app.streams.log.log import Log, first_seq
from app.streams.maintenance.copies import before
from app.streams.open.registry import Registry
from app.streams.open.retention import AFTER_MOVE
from app.streams.open.session import Session
from app.streams.state.state import StreamState

FILE_SAMPLES: Final = 20_000
FILE_BYTES: Final = 16 << 20
position_of: Final = attrgetter("position")


class Plan(NamedTuple):
    """What is to be moved next: the entries after a position that end before a sample, or a file announced earlier."""

    after: Position
    before_seq: int
    file: ArchivedFile | None
    features: Sequence[str]


class Move:
    """Moves what is due of one stream, file by file. The stream goes on while a file is being written."""

    def __init__(self, registry: Registry, archive: Archive, stream: str) -> None:
        self._registry, self._archive, self._stream = registry, archive, stream
        self._store, self._metrics = registry.worker.store, registry.worker.metrics
        self._kept = registry.worker.log(stream).kept

    async def run(self) -> None:
        """Move all that is due. Raises ArchiveUnavailable; LeaseHeld if another worker writes the stream."""
        while (plan := await self._plan()) is not None and await self._carry_out(plan):
            pass

    async def _plan(self) -> Plan | None:
        """Find what to move next; None if nothing is due."""
        async with self._opened() as (session, state):
            files, features = await self._files(session), feature_names(state.detector.config)
            if files and not files[-1].is_written:
                return Plan(before(files[-1].first), files[-1].last.seq + 1, files[-1], features)
            if not await session.retention.is_due(state):
                return None
            before_seq = await session.retention.wanted_from(state, AFTER_MOVE)
        return Plan(files[-1].last if files else START, before_seq, None, features)

    async def _carry_out(self, plan: Plan) -> bool:
        """Move one file; False if that cannot be done now."""
        file = plan.file
        if file is None:
            entries, is_followed = await oldest(self._kept, plan.after, plan.before_seq, FILE_SAMPLES, FILE_BYTES)
            file = await self._announce(plan, entries, is_followed=is_followed) if entries else None
        else:
            entries, _ = await oldest(self._kept, plan.after, plan.before_seq)
            entries = entries[: bisect_right(entries, file.last, key=position_of)]
        if file is None:
            return False
        if not entries:  # trimmed by a worker without an archive
            return await self._complete(replace(file, n_samples=0, blocks=()), b"")
        labels = await self._labels(entries)
        written = await self._archive.write(self._stream, file, entries, plan.features, labels)
        return await self._complete(written.file, written.ids)

    async def _announce(self, plan: Plan, entries: Sequence[Entry], *, is_followed: bool) -> ArchivedFile | None:
        """Put a file into the index; None if the log has begun anew since the entries were read."""
        async with self._opened() as (session, _):
            if await self._kept.entries(plan.after, 1) != entries[:1]:
                return None
            file = announced(new_name(first_seq(entries[0])), entries, is_followed=is_followed)
            await self._put(session, file)
        return file

    async def _complete(self, file: ArchivedFile, ids: bytes) -> bool:
        """Note that a file was written, and trim the log; False if the log has begun anew meanwhile."""
        try:
            async with self._opened() as (session, state):
                is_known = file.name in {known.name for known in await self._files(session)}
                if is_known:
                    await self._put(session, file, ids)
                    self._metrics.archived_samples.inc(file.n_samples)
                    await session.store_if_valid(state)
        except UnknownStream:
            is_known = False
        if not is_known:
            await self._archive.erase(self._stream, [file.name])
        return is_known

    async def _labels(self, entries: Sequence[Entry]) -> dict[int, int]:
        """Give the present labels of samples by seq: 1 anomalous, -1 normal."""
        seqs = range(first_seq(entries[0]), entries[-1].position.seq + 1)
        bodies = list((await self._kept.find_labels(seqs)).values())
        labelled = read_all_records(bodies) if bodies else None
        return dict(zip(labelled.seq.tolist(), labelled.label.tolist(), strict=True)) if labelled else {}

    async def _files(self, session: Session) -> list[ArchivedFile]:
        """Read the index as it is now."""
        assert session.log.archived is not None
        session.log.archived.forget()
        return await session.log.archived.announced()

    async def _put(self, session: Session, file: ArchivedFile, ids: bytes = b"") -> None:
        assert session.log.archived is not None
        await self._store.put_file(self._stream, file.row(ids), session.leases.token(self._stream))
        session.log.archived.forget()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[Session, StreamState]]:
        """Open the stream for a change unless another worker writes it; close it then if it was not open."""
        async with self._registry.changing(self._stream) as session:
            was_open = session.is_open
            await session.take_free()
            try:
                yield session, await session.state()
            finally:
                if not was_open and session.users == 1:
                    await self._registry.summaries.write([session])
                    session.forget()


async def oldest(
    log: Log, after: Position, before_seq: int, most_samples: float = inf, most_bytes: float = inf
) -> tuple[list[Entry], bool]:
    """Read the entries after a position that end before a sample, as many as a file takes; say if a batch follows."""
    found, samples, size_bytes = list[Entry](), 0, 0
    async for page in log.pages(after):
        for entry in page:
            is_full = samples + entry.n_samples > most_samples or size_bytes + len(entry.body) > most_bytes
            if entry.n_samples and (entry.position.seq >= before_seq or (samples and is_full)):
                return found, True
            found.append(entry)
            samples, size_bytes = samples + entry.n_samples, size_bytes + len(entry.body)
    return found if samples else [], False
