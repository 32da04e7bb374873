"""Copies streams from one store into another, each as of one moment, even while a worker writes it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec

from app.storage import (
    NO_LABELS,
    START,
    DocumentKind,
    Entry,
    FileRow,
    Position,
    Snapshot,
    Store,
    StoreCorrupt,
    is_full,
)
from app.streams.log.compaction import compact
from app.streams.log.events import LabelEvent, read_event, read_records
from app.streams.log.incidents import read_incident
from app.streams.log.log import Log
from app.streams.log.log import Source as LogSource

PAGE_ENTRIES = 256
PAGE_NAMES = 1000
UNFINISHED = b"the copy of this stream is not finished: go on with itan restore"
"""The snapshot of a stream until its copy is complete: it cannot be read, so no service opens the stream."""


class Source(LogSource, Protocol):
    """What a copy is made from: a store, or a reader of one."""

    async def open(self) -> None:
        """Open it."""

    async def close(self) -> None:
        """Close it."""

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order."""

    async def files(self, stream: str) -> list[FileRow]:
        """Read the index of archived files."""

    async def file_ids(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the ids of files."""

    async def labels_until(self, stream: str, seq: int) -> dict[int, bytes]:
        """Give the records of labelled samples, in order."""

    async def documents(self, kind: DocumentKind) -> dict[str, bytes]:
        """Read all documents of a kind."""


class Copied(NamedTuple):
    """What a copy holds, as of a position."""

    position: Position
    samples: int = 0
    size_bytes: int = 0


class SourceChanged(Exception):
    """The stream was trimmed, reset or replaced during the copy, which must begin anew."""


async def names_in(source: Source) -> AsyncIterator[str]:
    """Give the names of all streams, page by page."""
    after = ""
    while page := await source.streams(after, PAGE_NAMES):
        for name in page:
            yield name
        after = page[-1]


async def copy(source: Source, target: Store, stream: str, token: int = 0) -> Copied | None:
    """Copy a stream into a store that has none of that name; None if the source has none."""
    while (loaded := await source.load(stream)) is not None:
        try:
            return await Copy(source, target, stream, token, *loaded).run()
        except SourceChanged:
            await target.delete(stream, token)
    return None


async def copy_documents(source: Source, target: Store) -> None:
    """Copy the documents that the target lacks."""
    for kind in set(DocumentKind) - {DocumentKind.ERASURE}:  # what a restore brings back must stay
        present = await target.documents(kind)
        for name, body in (await source.documents(kind)).items():
            if name not in present:
                await target.put_document(kind, name, body)


class Copy:
    """One try to copy a stream.

    The log is copied from its oldest entry to its present end. The store keeps only the newest record of a labelled
    sample, so all label events up to that record must be in the copy: a last page without label events shows that.
    """

    def __init__(
        self, source: Source, target: Store, stream: str, token: int, snapshot: Snapshot, head: Position
    ) -> None:
        self._source, self._target, self._stream, self._token = source, target, stream, token
        self._log = Log(source, stream)
        self._snapshot, self._position = snapshot, head
        self._samples = 0
        self._size_bytes = len(snapshot.body)

    async def run(self) -> Copied:
        """Copy, or raise SourceChanged."""
        base = await base_of(self._source, self._stream)
        page = await self._log.entries(START, PAGE_ENTRIES)
        if not page and self._position != self._snapshot.position:
            raise SourceChanged
        begin = page[0].after if page else self._position
        if begin > self._snapshot.position:
            raise SourceChanged
        # after the oldest entries: what is trimmed by now is in the index by then
        files = await read_files(self._source, self._stream)
        await self._target.create(self._stream, Snapshot(begin, UNFINISHED), self._token)
        for row, labels in files:
            await self._target.put_file(self._stream, row, self._token, labels)
        if page:
            await self._copy_log(page)
        if base is not None and begin <= base.position <= self._snapshot.position:
            await self._target.save_snapshot(self._stream, base, 0, self._token, as_base=True)
        await self._copy_incidents()
        await self._target.save_snapshot(self._stream, self._snapshot, 0, self._token)
        return Copied(self._position, self._samples, self._size_bytes)

    async def _copy_log(self, page: list[Entry]) -> None:
        self._position = begin = page[0].after
        has_blocks = await self._source.packed_to(self._stream) is not None
        while True:
            await self._append(page)
            while has_blocks and await compact(self._target, self._stream, self._position, begin.seq + 1, self._token):
                pass
            if is_last(page) and await self._is_complete():
                return
            page = await self._log.entries(self._position, PAGE_ENTRIES)
            await asyncio.sleep(0)

    async def _copy_incidents(self) -> None:
        """Copy the index; it must not know of events that came after the copy of the log."""
        rows = await self._source.incidents(self._stream)
        if any(read_incident(row).position > self._position for row in rows):
            raise SourceChanged
        if rows:
            await self._target.put_incidents(self._stream, rows, self._token)

    async def _append(self, page: list[Entry]) -> None:
        labels = await self._labels(page)
        appends = []
        for entry in page:
            if not entry.follows(self._position):
                raise SourceChanged
            given = (entry, labels.get(entry.position, NO_LABELS), self._token)
            appends.append(self._target.append(self._stream, self._position, *given))
            self._position = entry.position
            self._samples += entry.n_samples
            self._size_bytes += len(entry.body)
        for outcome in await asyncio.gather(*appends, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _labels(self, page: list[Entry]) -> dict[Position, dict[int, bytes]]:
        """Give the newest records of the samples that each label event names."""
        seqs = {entry.position: labelled_seqs(entry) for entry in page if entry.first_seq is None}
        known = await self._log.find_labels(sorted(set().union(*seqs.values()))) if seqs else {}
        return {position: {seq: known[seq] for seq in named if seq in known} for position, named in seqs.items()}

    async def _is_complete(self) -> bool:
        """Tell whether the copy is complete; False if the log has grown meanwhile."""
        newest = await self._source.load(self._stream)
        if newest is None:
            raise SourceChanged
        snapshot, head = newest
        if snapshot == self._snapshot:
            return True
        if snapshot.position > self._position and head > self._position:
            if not await self._log.entries(self._position, 1):
                raise SourceChanged
            return False
        if snapshot.position <= self._snapshot.position or not await self._holds(snapshot.position):
            raise SourceChanged  # a reset or an import stands where no event does
        return True

    async def _holds(self, position: Position) -> bool:
        found = await Log(self._target, self._stream).entries(before(position), 1)
        return bool(found) and found[0].position == position


def labelled_seqs(entry: Entry) -> list[int]:
    """Give the samples that an event names; only labels name some."""
    event = read_event(entry.body)
    return [int(seq) for seq in read_records(event.records).seq] if isinstance(event, LabelEvent) else []


def is_last(page: list[Entry]) -> bool:
    """Tell whether the log ends with this page, and no label in it can have a newer record than its event."""
    return len(page) < PAGE_ENTRIES and not is_full(page) and all(entry.first_seq is not None for entry in page)


def before(position: Position) -> Position:
    """Give the last place before an event."""
    return Position(position.seq, position.sub - 1) if position.sub else Position.before(position.seq)


async def base_of(source: Source, stream: str) -> Snapshot | None:
    """Give the older snapshot of a stream, if there is one."""
    remains = await source.inspect(stream)
    return None if remains is None else remains.base


async def read_files(source: Source, stream: str) -> list[tuple[FileRow, Mapping[int, bytes]]]:
    """Read the index of archived files, each file with its ids and the labels of its samples."""
    rows = await source.files(stream)
    if not rows:
        return []
    ids = await source.file_ids(stream, [row.seq for row in rows])
    labels = await source.labels_until(stream, rows[-1].seq)
    found: list[tuple[FileRow, Mapping[int, bytes]]] = []
    for row in rows:
        own = {seq: labels.pop(seq) for seq in list(labels) if seq <= row.seq}
        found.append((row._replace(ids=ids.get(row.seq, b"")), own))
    return found


async def digest(source: Source, stream: str) -> bytes:
    """Give what tells one content of a stream from any other."""
    summed = sha256()
    loaded = await source.load(stream)
    if loaded is None:
        raise StoreCorrupt(stream, "it is missing")
    snapshot, after = loaded[0], START
    take(summed, tuple(snapshot.position), snapshot.body, tuple(loaded[1]))
    if (base := await base_of(source, stream)) is not None:
        take(summed, tuple(base.position), base.body)
    log = Log(source, stream)
    while page := await log.entries(after, PAGE_ENTRIES):
        for entry in page:
            take(summed, tuple(entry.position), entry.first_seq, entry.ids, entry.body)
        seqs = [seq for entry in page for seq in range(entry.first_seq or 1, (entry.first_seq or 1) + entry.n_samples)]
        take(summed, sorted((await log.find_labels(seqs)).items()))
        after = page[-1].position
        await asyncio.sleep(0)
    for row, labels in await read_files(source, stream):
        take(summed, row, sorted(labels.items()))
    if rows := await source.incidents(stream):  # earlier versions kept none
        take(summed, [(row.seq, row.opened, row.body) for row in rows])
    return summed.digest()


def take(summed: "Any", *values: object) -> None:
    """Take values into a digest, so that no two lists of them look alike."""
    summed.update(msgspec.msgpack.encode(values))
