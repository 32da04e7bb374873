"""Writes archived files, and reads blocks of them; the newest blocks that were read stay in memory."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from app.storage import ArchiveUnavailable, Entry
from app.storage.archive import ArchiveFiles
from app.streams.log.archive.files import ArchivedFile, Block
from app.streams.log.archive.ids import ids_bytes
from app.streams.log.archive.names import LABELS, LOG, NO_STREAM, SAMPLES, folder_of, path_of, paths_of
from app.streams.log.archive.tables import labels_file, no_labels_file, samples_file
from app.streams.log.blocks import MOST_BLOCK_ENTRIES, pack_in_turns, unpack

BLOCK_SAMPLES: Final = 2_000
"""A late label on an archived sample reads one block."""

logger = logging.getLogger(__name__)


class Tally(Protocol):
    """Counts what is written and read."""

    def note_archived_bytes(self, size_bytes: int) -> None:
        """Count bytes that were written."""

    def note_archive_read(self, outcome: str) -> None:
        """Count a block that was read or cached, that is missing, or could not be read."""


class Written(NamedTuple):
    """A file that was written, and the ids in it for the index."""

    file: ArchivedFile
    ids: bytes


class Archive:
    """The archived files of all streams. What reads or writes may raise ArchiveUnavailable."""

    def __init__(self, files: ArchiveFiles, tally: Tally, cache_bytes: float) -> None:
        self._files, self._tally = files, tally
        self._blocks = BlockCache(cache_bytes)
        self._has_no_labels_file = False

    async def write(
        self,
        stream: str,
        file: ArchivedFile,
        entries: Sequence[Entry],
        features: Sequence[str],
        labels: Mapping[int, int],
    ) -> Written:
        """Write the entries of an announced file, for people and for the service, in place of an unfinished try."""
        blocks = list(blocks_of(entries))
        packed = [await pack_in_turns(block) for block in blocks]
        bodies = {
            SAMPLES: await asyncio.to_thread(samples_file, entries, features, labels),
            LABELS: await asyncio.to_thread(labels_file, entries),
            LOG: b"".join(packed),
        }
        await self._write_no_labels()
        for kind, body in bodies.items():
            if body is not None:
                await self._files.write(path_of(kind, stream, file.name), body)
                self._tally.note_archived_bytes(len(body))
        return Written(replace(file, blocks=placed_blocks(blocks, packed)), ids_bytes(blocks))

    async def _write_no_labels(self) -> None:
        """Write a file of labels without rows, so that queries find one from the beginning."""
        if not self._has_no_labels_file:
            await self._files.write(path_of(LABELS, NO_STREAM, "none"), no_labels_file())
            self._has_no_labels_file = True

    async def block(self, stream: str, file: ArchivedFile, number: int) -> list[Entry]:
        """Read the entries of a block; none if the file is gone from the archive. Raises UnreadableEvent."""
        key = (stream, file.name, number)
        if (known := self._blocks.get(key)) is not None:
            self._tally.note_archive_read("cached")
            return known
        assert file.blocks is not None
        block = file.blocks[number]
        try:
            body = await self._files.read(path_of(LOG, stream, file.name), block.start, block.size)
        except ArchiveUnavailable:
            self._tally.note_archive_read("failed")
            raise
        if body is None:
            self._tally.note_archive_read("missing")
            logger.warning("the archive lacks a file of stream %s: %s", stream, file.name, extra={"stream": stream})
            return []
        self._tally.note_archive_read("read")
        entries = await asyncio.to_thread(unpack, body)
        self._blocks.put(key, entries)
        return entries

    async def erase(self, stream: str, names: Sequence[str]) -> None:
        """Remove files by their names."""
        await self._files.erase([path for name in names for path in paths_of(stream, name)])

    async def paths(self, stream: str) -> list[str]:
        """List all files of a stream, and of earlier streams of its name."""
        listed = [await self._files.names(folder_of(kind, stream)) for kind in (LOG, SAMPLES, LABELS)]
        return [path for paths in listed for path in paths]

    async def erase_paths(self, paths: Sequence[str]) -> None:
        """Remove files by their paths."""
        await self._files.erase(paths)


class BlockCache:
    """The blocks that were read last, so many bytes of bodies."""

    def __init__(self, most_bytes: float) -> None:
        self._most_bytes, self._size_bytes = most_bytes, 0
        self._kept: OrderedDict[tuple[str, str, int], list[Entry]] = OrderedDict()

    def get(self, key: tuple[str, str, int]) -> list[Entry] | None:
        """Give a block that is kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: tuple[str, str, int], entries: list[Entry]) -> None:
        """Keep a block, and drop those that were not read for longest."""
        if key in self._kept:  # two have read it at once
            return
        self._kept[key] = entries
        self._size_bytes += size_of(entries)
        while self._size_bytes > self._most_bytes and len(self._kept) > 1:
            self._size_bytes -= size_of(self._kept.popitem(last=False)[1])


def size_of(entries: Sequence[Entry]) -> int:
    """Give the bytes of the bodies and ids of entries."""
    return sum(len(entry.body) + sum(map(len, entry.ids)) for entry in entries)


def blocks_of(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Cut entries into blocks of about BLOCK_SAMPLES samples."""
    block, samples = list[Entry](), 0
    for entry in entries:
        if block and (samples + entry.n_samples > BLOCK_SAMPLES or len(block) == MOST_BLOCK_ENTRIES):
            yield block
            block, samples = [], 0
        block.append(entry)
        samples += entry.n_samples
    if block:
        yield block


def placed_blocks(blocks: Sequence[Sequence[Entry]], packed: Sequence[bytes]) -> tuple[Block, ...]:
    """Say where blocks that stand one after another are."""
    placed, start = list[Block](), 0
    for block, body in zip(blocks, packed, strict=True):
        placed.append(Block(block[-1].position, start, len(body)))
        start += len(body)
    return tuple(placed)
