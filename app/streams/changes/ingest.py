"""Ingesting records of many streams: each is a request of its own, but those of a stream share batches."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from app.streams.allowance import Allowance
from app.streams.batches.answer import Answer
from app.streams.batches.loose import LooseSamples
from app.streams.batches.records import Record, batch_of, runs
from app.streams.changes.observe import observe
from app.streams.changes.together import observe_together
from app.streams.errors import MOST_NAMED, Refused
from app.streams.open.registry import Registry
from app.streams.open.session import Session
from core import InvalidConfig, InvalidObservation

REFUSALS = (Refused, InvalidConfig, InvalidObservation)
"""Errors for what is wrong with a record; they change nothing."""
STREAMS_AT_ONCE = 128
"""As many as a store appends in one call; what they take in memory cannot be freed meanwhile."""
STREAMS_TO_A_TURN = 16
STREAMS_TOGETHER = 64
"""More gain little, and other requests wait for them."""


class Refusal(NamedTuple):
    """Why the record at a place of the request was not taken; None if it could not even be read."""

    place: int
    error: Exception
    record: Record | None = None


class Outcomes:
    """What became of each record of a request; `ignored` counts those in which there was nothing for any stream."""

    def __init__(self, unreadable: Mapping[int, Exception], ignored: int = 0) -> None:
        self.taken: list[tuple[Sequence[Record], Answer]] = []
        self.refused = [Refusal(place, error) for place, error in unreadable.items()]
        self.ignored = ignored

    def refuse(self, records: Sequence[Record], error: Exception) -> None:
        """Note that records were refused for one reason."""
        self.refused += [Refusal(place, error, record) for record in records for place in record.places]

    def take_back(self, is_meant: Callable[[Refusal], bool]) -> list[Refusal]:
        """Give the refusals that are meant, and note that they are none: their records have another try."""
        found = [refusal for refusal in self.refused if is_meant(refusal)]
        if found:
            self.refused = [refusal for refusal in self.refused if not is_meant(refusal)]
        return found


async def ingest(
    registry: Registry,
    by_stream: Mapping[str, Sequence[Record]],
    allowances: Mapping[str, Allowance],
    to: Outcomes,
    *,
    asks: bool = True,
) -> None:
    """Observe the records of the streams that are allowed, side by side: their appends share the calls to the store.

    Ask other workers to hand over their streams, or refuse the records of these with LeaseHeld.
    """
    singles = {stream: by_stream[stream][0] for stream in allowances if len(by_stream[stream]) == 1}
    done = await ingest_singles(registry, singles, to)
    free = asyncio.Semaphore(STREAMS_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        left = ((stream, allowance) for stream, allowance in allowances.items() if stream not in done)
        for number, (stream, allowance) in enumerate(left):
            if number % STREAMS_TO_A_TURN == 0:
                # let other requests run
                await asyncio.sleep(0)
            await free.acquire()
            task = group.create_task(ingest_stream(registry, stream, by_stream[stream], allowance, to, asks=asks))
            task.add_done_callback(lambda _: free.release())


async def ingest_singles(registry: Registry, records: Mapping[str, Record], to: Outcomes) -> set[str]:
    """Observe the records, each the only one of its stream, that can be observed together; give their streams."""
    done, waiting = set[str](), iter(records.items())
    while group := dict(islice(waiting, STREAMS_TOGETHER)):
        told = await observe_together(registry, group)
        to.taken += told.answers
        for record, error in told.failed:
            to.refuse([record], error)
        done |= told.streams
        # a store in memory never waits
        await asyncio.sleep(0)
    return done


async def ingest_stream(
    registry: Registry, stream: str, records: Sequence[Record], allowance: Allowance, to: Outcomes, *, asks: bool = True
) -> None:
    """Observe the records of a stream in order; after a failure the rest fails too, so the order stays."""
    left = deque(runs(records))
    try:
        async with registry.changing(stream) as session:
            if not asks:
                await session.take_free()
            while left:
                await observe_next(session, left, allowance, to)
                # a store in memory never waits
                await asyncio.sleep(0)
    except Exception as error:
        for part in left:
            to.refuse(part, error)


async def observe_next(session: Session, left: deque[Sequence[Record]], allowance: Allowance, to: Outcomes) -> None:
    """Observe the next batch, or take the wrong records out of it."""
    records = left[0]
    batch = batch_of(records)
    try:
        answer = await observe(session, batch, allowance)
    except REFUSALS as error:
        left.popleft()
        wrong = rows_of(error, session)
        if len(records) == 1:
            to.refuse(records, error)
        elif len(wrong) == len(records) <= MOST_NAMED:
            for record, one in zip(records, singly(error, len(wrong)), strict=True):
                to.refuse([record], one)
        else:
            left.extendleft(reversed(parts(records, wrong)))
    else:
        left.popleft()
        to.taken.append((records, answer))
        if isinstance(batch.samples, LooseSamples):
            session.metrics.ignored_values.inc(batch.samples.ignored)


def rows_of(error: Exception, session: Session) -> Sequence[int]:
    """Give the rows that an error names; none if another first row would make another stream."""
    return error.rows if isinstance(error, Refused) and session.current_state is not None else ()


def singly(error: Exception, n: int) -> Sequence[Refused]:
    """Give an error for each of the n rows that an error names; the same for all if they have one fault together."""
    assert isinstance(error, Refused)  # only such an error names rows
    if len(error.faults) < n:
        return [error] * n
    return [type(error)(fault.field, fault.value, fault.limit) for fault in error.faults]


def parts(records: Sequence[Record], wrong: Sequence[int]) -> list[Sequence[Record]]:
    """Give the right records together, then the wrong ones, as many at once as an error names.

    Halves if it is not known which are wrong.
    """
    if not wrong:
        middle = len(records) // 2
        return [records[:middle], records[middle:]]
    found = set(wrong)
    right: Sequence[Record] = [record for row, record in enumerate(records) if row not in found]
    groups = [[records[row] for row in wrong[i : i + MOST_NAMED]] for i in range(0, len(wrong), MOST_NAMED)]
    return [*([right] if right else []), *groups]
