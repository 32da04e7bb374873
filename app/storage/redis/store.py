"""A store in Redis or Valkey, for many processes and machines."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import uuid4

from app.storage.blocks import NO_BUCKETS, StoredBlock, check_compact
from app.storage.bounds import NO_BOUNDS, Bound
from app.storage.errors import Fenced, LeaseHeld, StoreError, TooManyStreams
from app.storage.files import FileRow, check_file
from app.storage.incidents import (
    INCIDENTS_KEPT,
    NO_INCIDENTS,
    IncidentRow,
    Mark,
    check_incidents,
)
from app.storage.interface import NO_LABELS, Append, DocumentKind, Durability
from app.storage.log import (
    BASE_SAMPLES,
    START,
    Entry,
    Position,
    Snapshot,
    check_append,
    check_position,
    check_replace,
    last_trimmable,
)
from app.storage.redis.arguments import append_arguments, incident_fields, milliseconds, prefix_range
from app.storage.redis.calls import parts
from app.storage.redis.durability import find_faults, fullest
from app.storage.redis.errors import wrap_error
from app.storage.redis.incident_lists import IncidentLists
from app.storage.redis.keys import (
    STREAMS,
    SUMMARIES,
    documents_key,
    fence_keys,
    stream_keys,
    wanted_key,
)
from app.storage.redis.rate_windows import RateWindows
from app.storage.redis.reader import SUMMARIES_PER_STEP, RedisReader
from app.storage.redis.replies import accept, status
from app.storage.redis.scripts import read_script
from app.storage.redis.urls import servers_of
from app.storage.summaries import SummaryRow
from app.storage.usage import Usage
from app.storage.write_refusals import WriteRefusals, records_outcomes, records_refusals

# For this long after the end of a lease its holder may still renew it, if nobody has taken it since.
OUTLIVES_SECONDS = 60.0
# A hand-over request expires after this time; a worker that still wants the stream asks again.
REQUEST_SECONDS = 60
REQUESTS_AT_ONCE = 1000


class RedisStore(RedisReader):
    """Keeps streams in Redis, and leases that make one worker the writer of each."""

    is_exclusive = False

    def __init__(self, url: str, durability: Durability = Durability.PROCESS) -> None:
        super().__init__(servers_of(url))
        self._durability = durability
        self._incident_lists = IncidentLists(self._calls)
        self.windows = RateWindows(self._calls.others)
        self.write_refusals = WriteRefusals()

    @property
    def retries(self) -> int:
        """How often a command was sent again after a failure."""
        return self._servers.backoff.retries

    async def open(self) -> None:
        """Check that the servers answer, and how they keep what is written."""
        await self._calls.open(self._durability)

    async def close(self) -> None:
        """Wait for answers and close the connections."""
        await self._calls.close()

    async def usage(self) -> Usage:
        """Measure the fullest primary."""
        try:
            return fullest(await self._servers.info("memory"))
        except Exception as error:
            raise wrap_error(error) from error

    async def check(self) -> list[str]:
        """Ask the servers how they are set up."""
        try:
            return await find_faults(self._servers, self._durability)
        except Exception as error:
            raise wrap_error(error) from error

    async def acquire(self, stream: str, owner: str, seconds: float, keep_seconds: float = 0.0) -> int:
        """Lease a stream, and wait until the servers keep the token, and with it all earlier writes."""
        spans = map(milliseconds, (seconds, OUTLIVES_SECONDS, keep_seconds))
        reply = await self._calls.change("acquire", stream, owner, *spans)
        if status(reply) == "held":
            raise LeaseHeld(stream, reply[1] / 1000, reply[2].decode(), reply[3] / 1000)
        return int(reply[1])

    async def ask(self, stream: str, owner: str) -> None:
        """Ask the holder for a stream. A set keeps the request, so it is neither lost nor counted twice."""
        await self._calls.send("SADD", wanted_key(owner), stream)
        await self._calls.send("EXPIRE", wanted_key(owner), REQUEST_SECONDS)

    async def wanted(self, owner: str) -> set[str]:
        """Give the streams that others have asked for."""
        requested = await self._calls.send("SPOP", wanted_key(owner), REQUESTS_AT_ONCE)
        return {stream.decode() for stream in requested}

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Extend leases, in one pipeline."""
        script, given = read_script("renew"), (owner, milliseconds(seconds + OUTLIVES_SECONDS))
        groups = list(parts(tokens.items(), self._servers.leases_together))
        calls = [
            self._calls.leases.start(
                script, tuple(chain.from_iterable(fence_keys(stream) for stream, _ in group)), *given, *_tokens(group)
            )
            for group in groups
        ]
        lost: set[str] = set()
        for group, call in zip(groups, calls, strict=True):
            _, places = await call
            lost.update(group[place - 1][0] for place in places)
        return lost

    async def release(self, tokens: Mapping[str, int]) -> None:
        """End leases, in one pipeline."""
        script = read_script("release")
        calls = [
            self._calls.leases.start(script, tuple(stream_keys(stream).lease for stream, _ in group), *_tokens(group))
            for group in parts(tokens.items(), self._servers.leases_together)
        ]
        for call in calls:
            await call

    @records_outcomes
    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Create a stream. It is listed before and after, in case another worker was just deleting it."""
        check_position(snapshot.position)
        await self._list(stream, bounds)
        await self._drop_summary(stream)  # of an earlier stream of this name
        reply = await self._calls.change("create", stream, token, uuid4().hex, str(snapshot.position), snapshot.body)
        await self._list(stream)
        accept(reply, stream, snapshot.position, token)
        return status(reply) == "ok"

    @records_outcomes
    async def append(
        self,
        stream: str,
        after: Position,
        entry: Entry,
        labels: Mapping[int, bytes] = NO_LABELS,
        token: int = 0,
        incidents: Sequence[IncidentRow] = NO_INCIDENTS,
    ) -> None:
        """Add an entry at the head."""
        one = Append(stream, after, entry, labels, token, incidents)
        await self._begin_appends([one])
        await self._end_append(one, await self._calls.append(stream, *append_arguments(one)))

    @records_refusals
    async def append_each(self, appends: Sequence[Append]) -> list[StoreError | None]:
        """Append to many logs, in as few pipelines as may be."""
        await self._begin_appends(appends)
        replies = await self._calls.append_each([(one.stream, append_arguments(one)) for one in appends])
        outcomes = [await self._outcome(one, reply) for one, reply in zip(appends, replies, strict=True)]
        self.write_refusals.note(outcomes)
        return outcomes

    async def _begin_appends(self, appends: Sequence[Append]) -> None:
        """Check what is to be appended, and announce its incidents."""
        for one in appends:
            check_append(one.after, one.entry, one.labels)
            check_incidents(one.incidents)
        await self._incident_lists.announce(appends)

    async def _end_append(self, one: Append, reply: list[Any]) -> None:
        """Raise the error of the script if it refused; keep no more incidents than the index takes."""
        accept(reply, one.stream, one.after, one.token)
        if len(reply) > 2 and reply[2] > INCIDENTS_KEPT:
            await self._calls.read("incidents", one.stream, one.token, INCIDENTS_KEPT)

    async def _outcome(self, one: Append, reply: list[Any] | StoreError) -> StoreError | None:
        """Give the error of an append, or None."""
        if isinstance(reply, StoreError):
            return reply
        try:
            await self._end_append(one, reply)
        except StoreError as error:
            return error
        return None

    @records_refusals
    async def save_snapshot(
        self,
        stream: str,
        snapshot: Snapshot,
        keep_from_seq: int,
        token: int = 0,
        *,
        as_base: bool = False,
        keep_labels: bool = False,
    ) -> None:
        """Replace the snapshot and trim, step by step."""
        check_position(snapshot.position)
        last = last_trimmable(snapshot.position, keep_from_seq)
        trimmed = str(max(last, START))
        given = (token, str(snapshot.position), snapshot.body, trimmed, BASE_SAMPLES, int(as_base))
        reply = await self._calls.read("save", stream, *given)
        accept(reply, stream, snapshot.position, token)
        while last.seq >= 0 and status(await self._calls.read("trim", stream, str(last), int(keep_labels))) == "more":
            pass

    @records_refusals
    async def compact(
        self, stream: str, block: StoredBlock, buckets: Mapping[int, bytes] = NO_BUCKETS, token: int = 0
    ) -> None:
        """Put a block in the place of its entries, which are removed step by step."""
        check_compact(block, buckets)
        given = (token, str(block.after), str(block.position), block.n_entries, block.body)
        reply = await self._calls.change("compact", stream, *given, *chain.from_iterable(buckets.items()))
        accept(reply, stream, block.after, token)
        while status(await self._calls.read("trim", stream, "")) == "more":
            pass

    @records_refusals
    async def put_incidents(self, stream: str, rows: Sequence[IncidentRow], token: int = 0) -> None:
        """Put incidents into the index."""
        check_incidents(rows)
        await self._incident_lists.add(stream, rows)
        reply = await self._calls.change("incidents", stream, token, INCIDENTS_KEPT, *incident_fields(rows))
        accept(reply, stream, START, token)

    @records_refusals
    async def put_file(
        self, stream: str, row: FileRow, token: int = 0, labels: Mapping[int, bytes] = NO_LABELS
    ) -> None:
        """Put a file into the index."""
        check_file(row)
        given = chain.from_iterable((int(seq), body) for seq, body in labels.items())
        accept(await self._calls.change("put_file", stream, token, *row, *given), stream, START, token)

    @records_refusals
    async def drop_files(self, stream: str, last_seq: int, token: int = 0) -> None:
        """Take files out of the index, and drop labels, step by step."""
        cursor = 0
        while True:
            cursor, found = await self._scan_labels(stream, cursor)
            old = [seq for seq in found if seq <= last_seq]
            reply = await self._calls.read("drop_files", stream, token, last_seq, *old)
            accept(reply, stream, START, token)
            if not cursor:
                return

    async def move_changes(self, gone: Sequence[Mark], come: Sequence[Mark] = ()) -> None:
        """Move marks: what comes is kept before anything goes."""
        await self._incident_lists.move_changes(gone, come)

    async def put_summaries(self, rows: Sequence[SummaryRow]) -> None:
        """Keep the summaries of streams, a few at a time."""
        for part in parts(rows, SUMMARIES_PER_STEP):
            given = chain.from_iterable(
                (row.stream, "" if row.only_if_missing else row.token, row.body) for row in part
            )
            await self._calls.others.start(read_script("summaries"), (SUMMARIES,), *given)

    async def _drop_summary(self, stream: str) -> None:
        await self._calls.send("HDEL", SUMMARIES, stream)

    @records_refusals
    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Replace the stream's state."""
        check_replace(after, snapshot)
        await self._drop_summary(stream)
        reply = await self._calls.change("replace", stream, token, str(after), str(snapshot.position), snapshot.body)
        accept(reply, stream, after, token)

    @records_refusals
    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Start at a snapshot, whatever is there."""
        check_position(snapshot.position)
        await self._drop_summary(stream)
        reply = await self._calls.change("restore", stream, token, str(snapshot.position), snapshot.body)
        accept(reply, stream, snapshot.position, token)
        await self._list(stream)

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Delete a stream; one that was created again meanwhile stays listed."""
        await self._drop_summary(stream)  # what is listed without one, if this is interrupted, counts as deleted
        reply = await self._calls.change("delete", stream, token)
        if status(reply) == "fenced":
            raise Fenced(stream, token, int(reply[1]))
        await self._calls.send("ZREM", STREAMS, stream)
        await self._drop_summary(stream)
        if await self._is_there(stream):
            await self._list(stream)
        return status(reply) == "ok"

    @records_refusals
    async def put_document(self, kind: DocumentKind, name: str, body: bytes, expected: bytes | None = None) -> bool:
        """Keep a document in the place of the expected one."""
        bodies = (body,) if expected is None else (body, expected)
        return await self._change_document("put_document", kind, name, *bodies)

    async def delete_document(self, kind: DocumentKind, name: str, expected: bytes) -> bool:
        """Delete the expected document."""
        return await self._change_document("delete_document", kind, name, expected)

    async def _change_document(self, script: str, kind: DocumentKind, name: str, *bodies: bytes) -> bool:
        """Run a script on the documents of a kind; False if it found another than the expected one."""
        reply = await self._calls.changes.start(read_script(script), (documents_key(kind),), name, *bodies)
        return status(reply) == "ok"

    async def _list(self, stream: str, bounds: Sequence[Bound] = NO_BOUNDS) -> None:
        """List a stream, and check its bounds in the same step, so that many at once cannot pass them."""
        counted = chain.from_iterable((*prefix_range(bound.prefix), bound.most) for bound in bounds)
        reply = await self._calls.others.start(read_script("list"), (STREAMS,), stream, *counted)
        if status(reply) == "full":
            raise TooManyStreams(stream, bounds[int(reply[1]) - 1], int(reply[2]))


def _tokens(leases: Iterable[tuple[str, int]]) -> list[int]:
    return [token for _, token in leases]
