"""Reads the streams of a store in Redis or Valkey."""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

from app.storage.blocks import KnownIds, StoredBlock
from app.storage.errors import StoreCorrupt
from app.storage.files import FileRow
from app.storage.incidents import NEW, IncidentChange, IncidentKey, IncidentRow, lane_bounds, parse_mark
from app.storage.interface import DocumentKind, Remains, Silence, StreamSize
from app.storage.log import START, Entry, Position, Snapshot
from app.storage.pages import PAGE_BYTES, is_full, possible_seqs
from app.storage.redis.calls import Calls, parts
from app.storage.redis.keys import CHANGES, INCIDENTS, STREAMS, SUMMARIES, TYPES, documents_key, stream_keys
from app.storage.redis.replies import accept, as_block, as_entry, as_part, checked_snapshot, remains_of, status
from app.storage.redis.servers import Servers

# The server does nothing else while it answers one command, so big questions are split.
SEQS_PER_STEP = 256
FIELDS_PER_STEP = 10_000
SUMMARIES_PER_STEP = LABELS_PER_STEP = 1_000
IDS_PER_STEP = 2_000
# When an incident opened stands before its body.
OPENED = struct.Struct("<q")


class RedisReader:
    """Reads streams: one script per method, one round trip per script."""

    def __init__(self, servers: Servers) -> None:
        self._servers, self._calls = servers, Calls(servers)

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head, and check that nothing is missing."""
        reply = await self._calls.read("load", stream)
        if status(reply) == "missing":
            return None
        accept(reply, stream, START)
        return checked_snapshot(stream, *reply[1:])

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is left of a stream, and how much should be."""
        return remains_of(stream, *(await self._calls.read("inspect", stream, *TYPES))[1:])

    async def packed_to(self, stream: str) -> Position | None:
        """Say where the newest block ends."""
        _, position = await self._calls.read("packed_to", stream)
        return position and Position.parse(position)

    async def entries(self, stream: str, after: Position, limit: int) -> StoredBlock | list[Entry]:
        """Read a block, or a page of the log."""
        if limit <= 0:
            return []
        reply = await self._calls.read("entries", stream, str(after), limit, PAGE_BYTES)
        return as_block(reply[1]) if status(reply) == "block" else [as_entry(row) for row in reply[1]]

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[StoredBlock | Entry]:
        """Read the blocks and batches that hold these samples."""
        found: dict[Position, StoredBlock | Entry] = {}
        for part in parts(possible_seqs(seqs), SEQS_PER_STEP):
            _, rows = await self._calls.read("holding", stream, PAGE_BYTES, *part)
            found.update((part.position, part) for part in (as_part(*row) for row in rows))
            if is_full(found.values()):
                break
        return list(found.values())

    async def find_ids(self, stream: str, ids: Sequence[str], hashes: Sequence[int] = ()) -> KnownIds:
        """Give the seqs of known ids, and buckets."""
        while (known := await self._find_ids(stream, ids, hashes)) is None:
            pass
        return known

    async def _find_ids(self, stream: str, ids: Sequence[str], hashes: Sequence[int]) -> KnownIds | None:
        """Look ids up step by step; None if the number of buckets has changed in between: hashes are in others then."""
        seqs, sizes, buckets = dict[str, int](), set[int](), dict[int, bytes]()
        for begin in range(0, max(len(ids), len(hashes)), IDS_PER_STEP):
            part, values = ids[begin : begin + IDS_PER_STEP], hashes[begin : begin + IDS_PER_STEP]
            _, found, n_buckets, numbers, bodies = await self._calls.read("find_ids", stream, len(part), *part, *values)
            seqs.update((name, int(seq)) for name, seq in zip(part, found, strict=True) if seq is not None)
            buckets.update(zip(map(int, numbers), bodies, strict=True))
            sizes.add(n_buckets)
        return KnownIds(seqs, max(sizes, default=0), buckets) if len(sizes) < 2 else None

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        return dict(await self._look_up(stream, stream_keys(stream).labels, possible_seqs(seqs)))

    async def labels_until(self, stream: str, seq: int) -> dict[int, bytes]:
        """Give the records of labelled samples, in order."""
        found, cursor = dict[int, bytes](), 0
        while True:
            cursor, page = await self._scan_labels(stream, cursor)
            found.update((labelled, body) for labelled, body in page.items() if labelled <= seq)
            if not cursor:
                return dict(sorted(found.items()))

    async def _scan_labels(self, stream: str, cursor: int) -> tuple[int, dict[int, bytes]]:
        """Read some of the labels, and give the cursor to go on with; 0 at the end."""
        labels = stream_keys(stream).labels
        after, page = await self._calls.send("HSCAN", labels, cursor, "COUNT", LABELS_PER_STEP)
        return int(after), {int(seq): body for seq, body in page.items()}

    async def incidents(self, stream: str) -> list[IncidentRow]:
        """Read incidents in order."""
        key = stream_keys(stream).incidents
        found: dict[bytes, bytes] = await self._calls.send("HGETALL", key)
        return sorted(as_incident(int(seq), value) for seq, value in found.items())

    async def find_incidents(self, stream: str, seqs: Sequence[int]) -> dict[int, IncidentRow]:
        """Give the known ones of these incidents."""
        known = await self._look_up(stream, stream_keys(stream).incidents, possible_seqs(seqs))
        return {seq: as_incident(seq, value) for seq, value in known}

    async def files(self, stream: str) -> list[FileRow]:
        """Read the index of files in order."""
        found: dict[bytes, bytes] = await self._calls.send("HGETALL", stream_keys(stream).files)
        return sorted(FileRow(int(seq), body) for seq, body in found.items())

    async def file_ids(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the ids of files."""
        return dict(await self._look_up(stream, stream_keys(stream).file_ids, possible_seqs(seqs)))

    async def newest_incidents(self, before: IncidentKey | None, limit: int) -> list[IncidentKey]:
        """List incidents of all streams."""
        most = "+" if before is None else f"({before}"
        page = await self._calls.send("ZREVRANGEBYLEX", INCIDENTS, most, "-", "LIMIT", 0, limit)
        return [IncidentKey.parse(place) for place in page]

    async def changed_incidents(
        self, limit: int, lane: str = NEW, after: IncidentChange | None = None
    ) -> list[IncidentChange]:
        """Read the oldest marks of a lane."""
        least, most = lane_bounds(lane, after)
        page = await self._calls.send("ZRANGEBYLEX", CHANGES, f"({least}", f"({most}", "LIMIT", 0, limit)
        return [parse_mark(mark) for mark in page]

    async def count_changes(self, lane: str = NEW) -> int:
        """Count the marks of a lane."""
        least, most = lane_bounds(lane)
        return int(await self._calls.send("ZLEXCOUNT", CHANGES, f"({least}", f"({most}"))

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order, without those whose creation or deletion was interrupted."""
        found: list[str] = []
        while len(found) < limit:
            wanted = limit - len(found)
            page = await self._list_page(after, wanted)
            found += await self._existing(page)
            if len(page) < wanted:
                break
            after = page[-1]
        return found

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long streams have been silent."""
        found = await asyncio.gather(*map(self._silence, streams))
        return {stream: silence for stream, silence in zip(streams, found, strict=True) if silence is not None}

    async def _silence(self, stream: str) -> Silence | None:
        try:
            reply = await self._calls.read("silence", stream)
        except StoreCorrupt:
            return None
        return None if status(reply) == "missing" else Silence(reply[1] / 1000, int(reply[2]))

    async def find_summaries(self, streams: Sequence[str]) -> dict[str, bytes]:
        """Give known summaries."""
        found: dict[str, bytes] = {}
        for part in parts(streams, SUMMARIES_PER_STEP):
            values = await self._calls.send("HMGET", SUMMARIES, *part)
            known = zip(part, values, strict=True)
            found.update((name, as_summary(value)) for name, value in known if value is not None)
        return found

    async def summaries(self, after: str, limit: int) -> list[tuple[str, bytes | None]]:
        """List streams in order with their summaries; only of those without one it is asked whether they exist."""
        while names := await self._list_page(after, limit):
            known = await self.find_summaries(names)
            there = {*known, *await self._existing([name for name in names if name not in known])}
            if there:
                return [(name, known.get(name)) for name in names if name in there]
            after = names[-1]
        return []

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        reply = await self._calls.read("size", stream)
        accept(reply, stream, START)
        return StreamSize(*(int(number) for number in reply[1:]))

    async def document(self, kind: DocumentKind, name: str) -> bytes | None:
        """Read a document."""
        body: bytes | None = await self._calls.send("HGET", documents_key(kind), name)
        return body

    async def documents(self, kind: DocumentKind) -> dict[str, bytes]:
        """Read documents in order."""
        found: dict[bytes, bytes] = await self._calls.send("HGETALL", documents_key(kind))
        return {name.decode(): body for name, body in sorted(found.items())}

    async def _existing(self, streams: Sequence[str]) -> list[str]:
        """Give those of these streams that exist."""
        there = await asyncio.gather(*map(self._is_there, streams))
        return [stream for stream, is_there in zip(streams, there, strict=True) if is_there]

    async def _is_there(self, stream: str) -> bool:
        """Tell whether a stream has any key but its lease, its indexes of incidents and files, and its blocks."""
        keys = stream_keys(stream)
        others = (keys.lease, keys.incidents, keys.files, keys.file_ids, keys.blocks, keys.buckets)
        return bool(await self._calls.send("EXISTS", *(key for key in keys if key not in others)))

    async def _look_up(self, stream: str, key: str, fields: Sequence[Any]) -> list[tuple[Any, bytes]]:
        known: list[tuple[Any, bytes]] = []
        for part in parts(fields, FIELDS_PER_STEP):
            try:
                values = await self._calls.send("HMGET", key, *part)
            except StoreCorrupt as error:
                raise await self._calls.explained(stream, error) from error
            known += [pair for pair in zip(part, values, strict=True) if pair[1] is not None]
        return known

    async def _list_page(self, after: str, limit: int) -> list[str]:
        least = f"({after}" if after else "-"
        page = await self._calls.send("ZRANGEBYLEX", STREAMS, least, "+", "LIMIT", 0, limit)
        return [name.decode() for name in page]


def as_incident(seq: int, value: bytes) -> IncidentRow:
    """Make a row of the index of what its hash holds."""
    return IncidentRow(seq, OPENED.unpack_from(value)[0], value[OPENED.size :])


def as_summary(value: bytes) -> bytes:
    """Give the summary in a value, without the token before it."""
    return value.partition(b" ")[2]
