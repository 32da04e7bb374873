"""The archived part of one stream's log."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec

from app.storage import Entry, FileRow, Position, StoreCorrupt, collect_batches, is_full, take_page
from app.streams.log.archive.archive import Archive
from app.streams.log.archive.files import ArchivedFile, read_files
from app.streams.log.archive.ids import NO_IDS, Digests, FileIds, blocks_with, digests_in, may_hold, read_ids


def never() -> bool:
    """Say no."""
    return False


class FileIndex(Protocol):
    """Where the index of archived files is kept: a store."""

    async def files(self, stream: str) -> list[FileRow]:
        """Read the index of archived files, in order."""

    async def file_ids(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the ids of those of these files that are known."""


@dataclass(slots=True)
class Archived:
    """The archived entries of a stream; the only writer of the stream remembers which files there are.

    Anybody else must not: the stream may be deleted and made again at any time. Reads raise ArchiveUnavailable.
    """

    index: FileIndex
    archive: Archive
    stream: str
    is_writer: Callable[[], bool] = never
    _files: list[ArchivedFile] | None = field(default=None, init=False)
    _ids: Digests | None = field(default=None, init=False)

    def forget(self) -> None:
        """Read the index again before the next answer."""
        self._files = self._ids = None

    @property
    def size_bytes(self) -> int:
        """Give the bytes that the ids take in memory."""
        return 0 if self._ids is None else self._ids.nbytes

    async def announced(self) -> list[ArchivedFile]:
        """Give all files in the index, in order, also one that is not written yet."""
        if self._files is None or not self.is_writer():
            self._files = read_files(self.stream, await self.index.files(self.stream))
        return self._files

    async def files(self) -> list[ArchivedFile]:
        """Give the files that were written, in order."""
        return [file for file in await self.announced() if file.is_written]

    async def entries(self, after: Position, before: Position | None, limit: int) -> list[Entry]:
        """Read a page of entries between two positions."""
        page: list[Entry] = []
        async for entries in self._blocks(after):
            page += [entry for entry in entries if entry.position > after and (not before or entry.position < before)]
            if len(page) >= limit or (before and entries and entries[-1].position >= before):
                break
        return take_page(page[:limit])

    async def _blocks(self, after: Position) -> AsyncIterator[list[Entry]]:
        for file in await self.files():
            for number, block in enumerate(file.blocks or ()):
                if block.last > after:
                    yield await self.archive.block(self.stream, file, number)

    async def entries_holding(self, seqs: Sequence[int]) -> list[Entry]:
        """Read the distinct batches that hold these samples, rising, in order, or fewer once they fill a page."""
        files = await self.files()
        wanted = defaultdict[tuple[int, int], list[int]](list)
        for seq in seqs:
            if (place := _place_of(files, seq)) is not None:
                wanted[place].append(seq)
        found: list[Entry] = []
        for (file, number), held in wanted.items():
            block = await self.archive.block(self.stream, files[file], number)
            found += collect_batches(held, partial(_next_batch, [entry for entry in block if entry.n_samples]))
            if is_full(found):
                break
        return found

    async def find_ids(self, ids: Sequence[str]) -> dict[str, int]:
        """Give the newest seq of each known client id."""
        files, found = await self.files(), dict[str, int]()
        possible = may_hold(await self._known_ids(files), [name for name in ids if name]) if files else []
        if not possible:
            return found
        written, wanted = await self._written_ids(files), set(possible)
        for file in files:
            for number in blocks_with(written.get(file.last.seq, NO_IDS), possible):
                block = await self.archive.block(self.stream, file, number)
                found.update((name, seq) for entry in block for name, seq in entry.named_samples() if name in wanted)
        return found

    async def _known_ids(self, files: Sequence[ArchivedFile]) -> Digests:
        if self._ids is None or not self.is_writer():
            self._ids = digests_in((await self._written_ids(files)).values())
        return self._ids

    async def _written_ids(self, files: Sequence[ArchivedFile]) -> dict[int, FileIds]:
        """Read the ids of files. Raises StoreCorrupt."""
        found = await self.index.file_ids(self.stream, [file.last.seq for file in files])
        try:
            return {seq: read_ids(written) for seq, written in found.items()}
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreCorrupt(self.stream, f"the ids of its archived files: {error}") from error


def _place_of(files: Sequence[ArchivedFile], seq: int) -> tuple[int, int] | None:
    """Give the file and the block that hold a sample."""
    file = bisect_left(files, seq, key=lambda file: file.last.seq)
    if file == len(files) or files[file].first_seq > seq:
        return None
    blocks = files[file].blocks or ()
    block = bisect_left(blocks, seq, key=lambda block: block.last.seq)
    return None if block == len(blocks) else (file, block)


def _next_batch(batches: Sequence[Entry], seq: int) -> Entry | None:
    place = bisect_left(batches, seq, key=lambda entry: entry.position.seq)
    return batches[place] if place < len(batches) else None
