"""Ingests records here, or sends them to the workers that hold their streams."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from app.metrics import Metrics
from app.sources.source import Source
from app.streams.allowance import Allowance
from app.streams.batches.records import Record
from app.streams.changes.ingest import Outcomes, Refusal, ingest
from app.streams.errors import LeaseHeld, Stopping
from app.streams.open.owners import address_of
from app.streams.open.registry import Registry
from app.workers.errors import RefusedByHolder
from app.workers.holders import Holders
from app.workers.messages import Reply, packed, read_reply
from app.workers.peers import Peers

ROUNDS: Final = 3
"""A first try, another at the holder that it named, and a last one if the stream has moved meanwhile."""

ByStream = Mapping[str, Sequence[Record]]
Allowances = Mapping[str, Allowance]


class Forwarder:
    """Takes streams that nobody holds for this worker, and sends records of the others to their holders.

    A holder does not pass them on. Only if it takes no records, the stream is asked for, as by POST /observe.
    """

    def __init__(self, registry: Registry, peers: Peers, metrics: Metrics, address: str) -> None:
        self._registry, self._peers, self._address = registry, peers, address
        self._counted = metrics.forwarded_records
        worker = registry.worker
        self._leases = worker.leases
        self._holders = Holders(worker.clock, worker.settings.lease_seconds)

    async def ingest(
        self, by_stream: ByStream, allowances: Allowances, to: Outcomes, source: Source | None = None
    ) -> None:
        """Observe the records of the streams that are allowed, each at the worker that holds its stream."""
        if not self._address:
            await ingest(self._registry, by_stream, allowances, to)
            return
        left: ByStream = {stream: by_stream[stream] for stream in allowances}
        stopping = set[str]()
        for number in range(ROUNDS):
            here, elsewhere = self._split(left, stopping)
            async with asyncio.TaskGroup() as group:
                is_last = number == ROUNDS - 1
                allowed = {stream: allowances[stream] for stream in here}
                group.create_task(ingest(self._registry, here, allowed, to, asks=is_last))
                for address, there in elsewhere.items():
                    group.create_task(self._forward(address, there, allowances, to, source, stopping))
            if is_last or not (left := self._moved(to)):
                return

    def _split(self, by_stream: ByStream, stopping: set[str]) -> tuple[ByStream, Mapping[str, ByStream]]:
        """Give the records that are for this worker, and the others by the address of their stream's holder."""
        here, elsewhere = dict[str, Sequence[Record]](), defaultdict[str, dict[str, Sequence[Record]]](dict)
        holds = self._leases.holding()
        for stream, records in by_stream.items():
            address = "" if holds(stream) else self._holders.address(stream)
            if address and address not in stopping:
                elsewhere[address][stream] = records
            else:
                here[stream] = records
        return here, elsewhere

    def _moved(self, to: Outcomes) -> ByStream:
        """Take back the records of streams that turned out to be held elsewhere, and note where."""
        found = defaultdict[str, dict[int, Record]](dict)
        for refusal in to.take_back(is_elsewhere):
            record = refusal.record
            assert record is not None  # it could be read, for it was tried
            found[record.stream][record.place] = record
            address = address_of(refusal.error.owner) if isinstance(refusal.error, LeaseHeld) else ""
            if address and address != self._address:
                self._holders.note(record.stream, address)
            else:
                self._holders.forget(record.stream)
        return {stream: list(records.values()) for stream, records in found.items()}

    async def _forward(
        self,
        address: str,
        by_stream: ByStream,
        allowances: Allowances,
        to: Outcomes,
        source: Source | None,
        stopping: set[str],
    ) -> None:
        """Send records to the holder of their streams; if it fails, refuse what has not been answered."""
        left = dict(by_stream)
        try:
            async for streams, message in packed(by_stream, allowances, source):
                reply = read_reply(await self._peers.send(address, message))
                for stream in streams:
                    self._holders.note(stream, address)
                for stream in reply.released:
                    self._holders.forget(stream)
                self._take(reply, [record for stream in streams for record in left.pop(stream)], to)
        # whatever it is, the records of other streams are none the worse
        except Exception as error:
            if isinstance(error, Stopping):
                stopping.add(address)
            for stream, records in left.items():
                self._holders.forget(stream)
                self._counted["failed"].inc(len(records))
                to.refuse(records, error)

    def _take(self, reply: Reply, sent: Sequence[Record], to: Outcomes) -> None:
        """Take what a holder has said of each record."""
        self._counted["answered"].inc(len(sent))
        records = {record.place: record for record in sent}
        if reply.places:
            to.taken.append(([records[place] for place in reply.places], reply.answer()))
        for one in reply.refused:
            to.refuse([records[one.place]], RefusedByHolder(one.code, one.problem))

    async def close(self) -> None:
        """Close the connections to other workers."""
        await self._peers.close()


def is_elsewhere(refusal: Refusal) -> bool:
    """Tell whether a record was refused because another worker holds its stream, or just gives it up."""
    error = refusal.error
    if isinstance(error, RefusedByHolder):
        return error.code in ("stream_elsewhere", "stopping")
    return isinstance(error, LeaseHeld | Stopping)
