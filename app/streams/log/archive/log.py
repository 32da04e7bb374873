"""The log of a stream that begins in the archive and goes on in the store."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.storage import MAX_SEQ, Entry, Position, is_full
from app.streams.log.archive.tier import Archived
from app.streams.log.log import Log


@dataclass(frozen=True, kw_only=True)
class ArchivedLog(Log):
    """What the store keeps of a log, after what was moved to the archive. Both may hold some entries."""

    archived: Archived

    @property
    def kept(self) -> Log:
        """Give the part that the store keeps."""
        return Log(self.store, self.stream)

    async def oldest_seq(self, head: Position) -> int:
        """Give the oldest sample in the log, or the next one to come after the head."""
        files = await self.archived.files()
        return files[0].first_seq if files else await super().oldest_seq(head)

    async def entries(self, after: Position, limit: int) -> list[Entry]:
        """Read a page, from the archive if the store does not hold the entry that follows."""
        page = await super().entries(after, limit)
        if page and await self._goes_on_in_store(after, page[0]):
            return page
        return await self.archived.entries(after, page[0].position if page else None, limit) or page

    async def part(self, after: Position, limit: int) -> Sequence[Entry]:
        """Read a part, from the archive if the store does not hold the entry that follows."""
        part = await super().part(after, limit)
        goes_on = bool(part) and await self._goes_on_in_store(after, part[0])
        return part if goes_on else await self.entries(after, limit)

    async def _goes_on_in_store(self, after: Position, entry: Entry) -> bool:
        """Tell whether an entry in the store is the next one: a batch follows labels too, and those may be archived."""
        if not (entry.follows(after) or entry.holds(after.seq + 1)):
            return False
        ends = [] if entry.first_seq is None else [file.last for file in await self.archived.files()]
        return not any(end.seq == after.seq and end > after for end in ends)

    async def entries_holding(self, seqs: Sequence[int]) -> list[Entry]:
        """Read batches, those from the archive that are older than the oldest in the store."""
        found = await super().entries_holding(seqs)
        before = (found[0].first_seq or 1) if found else MAX_SEQ + 1
        older = sorted({seq for seq in seqs if 1 <= seq < before})
        archived = await self.archived.entries_holding(older) if older else []
        return archived if is_full(archived) else [*archived, *found]

    async def find_ids(self, ids: Sequence[str]) -> dict[str, int]:
        """Give the newest seq of each known client id; a new id seldom makes a read of the archive."""
        found = await super().find_ids(ids)
        others = [client_id for client_id in ids if client_id not in found]
        return {**await self.archived.find_ids(others), **found} if others else found
