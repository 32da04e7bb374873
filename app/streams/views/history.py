"""A range of samples from a stream's log, downsampled; the stream is not opened for it."""

from dataclasses import dataclass, replace

from app.storage import Entry, Position, Snapshot
from app.streams.errors import ArchiveUnavailable, UnknownStream
from app.streams.log.events import read_all_records
from app.streams.log.log import Log
from app.streams.views.columns import Columns, batch_columns
from app.streams.views.downsampling import Downsampler

MAX_SCANNED = 20_000


@dataclass(frozen=True, slots=True)
class LogView:
    """A stream's log at one moment; oldest_seq is the oldest sample that it holds."""

    log: Log
    snapshot: Snapshot
    head: Position
    oldest_seq: int

    async def kept(self) -> "LogView":
        """Give the part of the log that the store keeps."""
        kept = self.log.kept
        return replace(self, log=kept, oldest_seq=await kept.oldest_seq(self.head))

    async def rows(self, first: int, last: int, downsampler: Downsampler) -> None:
        """Read the samples first to last into a downsampler."""
        async for entries in self.log.pages(Position.before(first)):
            rows = samples_in(entries, first, last)
            if rows is not None:
                downsampler.add(rows.labelled(await labels_of(self.log, rows.seq.tolist())))
            if entries[-1].position.seq >= last:
                return


@dataclass(frozen=True, slots=True)
class History:
    """Samples of a range, and the seq to go on from if the range holds more than one read gives."""

    rows: Columns | None
    next_seq: int | None
    is_downsampled: bool
    marked_downsampled: bool


async def open_log(log: Log) -> LogView:
    """Find the ends of a stream's log. Raises UnknownStream."""
    loaded = await log.store.load(log.stream)
    if loaded is None:
        raise UnknownStream(log.stream)
    snapshot, head = loaded
    return LogView(log, snapshot, head, await log.oldest_seq(head))


async def history(log: LogView, first: int | None, last: int | None, points: int) -> History:
    """Read the samples first to last, by default the newest; give at most `points` of at most MAX_SCANNED samples.

    Without a first one, samples in an archive that does not answer are left out.
    """
    try:
        return await history_of(log, first, last, points)
    except ArchiveUnavailable:
        if first is not None:
            raise
        return await history_of(await log.kept(), first, last, points)


async def history_of(log: LogView, first: int | None, last: int | None, points: int) -> History:
    """Read the samples first to last, by default the newest."""
    last = log.head.seq if last is None else min(last, log.head.seq)
    first = max(log.oldest_seq, last - points + 1 if first is None else first)
    end = min(last, first + MAX_SCANNED - 1)
    downsampler = Downsampler(first, end, points)
    if first <= end:
        await log.rows(first, end, downsampler)
    rows = downsampler.rows()
    return History(rows, end + 1 if end < last else None, downsampler.is_downsampled, downsampler.marked_downsampled)


def samples_in(entries: list[Entry], first: int, last: int) -> Columns | None:
    """Give the samples of a range in these entries; None if there are none."""
    batches = [entry for entry in entries if entry.first_seq is not None and entry.first_seq <= last]
    if not batches:
        return None
    rows = batch_columns(batches)
    return rows[(rows.seq >= first) & (rows.seq <= last)]


async def labels_of(log: Log, seqs: list[int]) -> dict[int, int]:
    """Give the present labels by seq; samples without one are left out."""
    bodies = list((await log.find_labels(seqs)).values())
    if not bodies:
        return {}
    labelled = read_all_records(bodies)
    return dict(zip(labelled.seq.tolist(), labelled.label.tolist(), strict=True))
