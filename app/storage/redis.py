"""A store in Redis or Valkey, for many processes and machines."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any
from uuid import uuid4

import msgspec

from app.storage.base import (
    BASE_SAMPLES,
    NO_BOUNDS,
    NO_LABELS,
    PAGE_BYTES,
    START,
    Bound,
    Durability,
    Entry,
    Fenced,
    LeaseHeld,
    Position,
    Remains,
    Silence,
    Snapshot,
    StaleWriter,
    StoreCorrupt,
    StoreUnavailable,
    StreamNotFound,
    StreamSize,
    TooManyStreams,
    check_append,
    check_position,
    check_replace,
    find_gap,
    is_full,
    last_trimmable,
    possible_seqs,
)
from app.storage.keys import STREAMS, TYPES, StreamKeys, stream_keys, wanted_key
from app.storage.noting import adds, replaces
from app.storage.redis_pipe import Exchange, RedisPipe, Script, read_script, wrap_error, wrap_refusal
from app.storage.redis_promise import find_faults, fullest, waits_for
from app.storage.redis_servers import Words, servers_of
from app.storage.redis_windows import RedisWindows
from app.storage.room import RefusedWrites, Room

# A single lane makes waiting appends share a pipeline; others may be long, so they pass each other.
APPEND_LANES, APPEND_GROUP = 1, 128
OTHER_LANES, OTHER_GROUP = 6, 16
CHANGE_LANES, CHANGE_GROUP = 4, 16
LEASE_LANES, LEASE_GROUP = 1, 4096
# The server does nothing else while it answers one command, so big questions are put in parts.
SEQS_PER_STEP = 256
FIELDS_PER_STEP = 10_000
# So long after the end of a lease its holder may still renew it, if nobody came since.
OUTLIVES_SECONDS = 60.0
# Wishes that the holder has not looked at by then are forgotten: who still wants the stream asks again.
WISH_SECONDS = 60
WISHES_AT_ONCE = 1000


class RedisStore:
    """Keeps streams in Redis: one script a verb, one round trip a script."""

    is_exclusive = False

    def __init__(self, url: str, durability: Durability = Durability.PROCESS) -> None:
        self._servers, self._durability = servers_of(url), durability
        self._unopened: str | None = "Redis: not opened yet"
        self._appends = RedisPipe(self._once_open(self._servers.exchange_short), APPEND_LANES, APPEND_GROUP)
        exchange = self._once_open(self._servers.exchange)
        self._changes = RedisPipe(exchange, CHANGE_LANES, CHANGE_GROUP)
        self._leases = RedisPipe(exchange, LEASE_LANES, LEASE_GROUP)
        self._others = RedisPipe(exchange, OTHER_LANES, OTHER_GROUP)
        self._scripts: dict[str, Script] = {}
        self.windows = RedisWindows(self._others)
        self.refused = RefusedWrites()

    @property
    def retries(self) -> int:
        """How often a server was asked again after a failure."""
        return self._servers.backoff.retries

    async def open(self) -> None:
        """Make sure that the servers answer, and learn how they can be made to keep what is written.

        StoreUnavailable while they cannot serve yet, another StoreError for what stays so until somebody mends it.
        """
        try:
            await self._servers.open()
            waits = await waits_for(self._servers, self._durability)
        except Exception as error:
            refusal = wrap_refusal(error)
            self._unopened = str(refusal)
            raise refusal from error
        self._appends.waits = self._changes.waits = waits
        self._unopened = None

    def _once_open(self, exchange: Exchange) -> Exchange:
        """Send nothing before it is known how the servers keep what is written."""

        async def send(commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
            if self._unopened is not None:
                raise StoreUnavailable(self._unopened)
            return await exchange(commands, waits)

        return send

    async def close(self) -> None:
        """Wait for answers and close the connections."""
        for pipe in (self._appends, self._changes, self._leases, self._others):
            await pipe.close()
        await self._servers.close()

    async def room(self) -> Room:
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
        """Lease a stream. Its token is waited for like an append, and with it what an earlier writer left unsure."""
        spans = map(_milliseconds, (seconds, OUTLIVES_SECONDS, keep_seconds))
        reply = await self._change("acquire", stream, owner, *spans)
        if _status(reply) == "held":
            raise LeaseHeld(stream, reply[1] / 1000, reply[2].decode(), reply[3] / 1000)
        return int(reply[1])

    async def ask(self, stream: str, owner: str) -> None:
        """Ask the holder for a stream: the wish is kept in a set, so it is not lost on its way, nor there twice."""
        await self._others.send("SADD", wanted_key(owner), stream)
        await self._others.send("EXPIRE", wanted_key(owner), WISH_SECONDS)

    async def wanted(self, owner: str) -> set[str]:
        """Give the streams that others have asked for."""
        wishes = await self._others.send("SPOP", wanted_key(owner), WISHES_AT_ONCE)
        return {stream.decode() for stream in wishes}

    async def renew(self, owner: str, tokens: Mapping[str, int], seconds: float) -> set[str]:
        """Let leases end later, in one pipeline."""
        script, given = self._script("renew"), (owner, _milliseconds(seconds + OUTLIVES_SECONDS))
        parts = list(_parts(tokens.items(), self._servers.leases_together))
        calls = [
            self._leases.start(script, tuple(chain.from_iterable(map(_fence_keys, part))), *given, *_tokens(part))
            for part in parts
        ]
        lost: set[str] = set()
        for part, call in zip(parts, calls, strict=True):
            _, places = await call
            lost.update(part[place - 1][0] for place in places)
        return lost

    async def release(self, tokens: Mapping[str, int]) -> None:
        """End leases, in one pipeline."""
        script = self._script("release")
        calls = [
            self._leases.start(script, tuple(stream_keys(stream).lease for stream, _ in part), *_tokens(part))
            for part in _parts(tokens.items(), self._servers.leases_together)
        ]
        for call in calls:
            await call

    @adds
    async def create(
        self, stream: str, snapshot: Snapshot, token: int = 0, bounds: Sequence[Bound] = NO_BOUNDS
    ) -> bool:
        """Begin a stream; it is listed before it exists, and again after, in case it was being deleted meanwhile."""
        check_position(snapshot.position)
        await self._list(stream, bounds)
        reply = await self._change("create", stream, token, uuid4().hex, str(snapshot.position), snapshot.body)
        await self._list(stream)
        _accept(reply, stream, snapshot.position, token)
        return _status(reply) == "ok"

    @adds
    async def append(
        self, stream: str, after: Position, entry: Entry, labels: Mapping[int, bytes] = NO_LABELS, token: int = 0
    ) -> None:
        """Add an entry at the head."""
        check_append(after, entry, labels)
        packed = msgspec.msgpack.encode(entry.ids) if entry.ids else b""
        first = "" if entry.first_seq is None else int(entry.first_seq)
        fields = chain.from_iterable((int(seq), body) for seq, body in labels.items())
        arguments = (token, str(after), str(entry.position), entry.body, first, packed, *fields)
        reply = await self._ask(self._appends, "append", stream, *arguments)
        _accept(reply, stream, after, token)

    @replaces
    async def save_snapshot(
        self, stream: str, snapshot: Snapshot, keep_from_seq: int, token: int = 0, *, as_base: bool = False
    ) -> None:
        """Replace the snapshot and trim, step by step."""
        check_position(snapshot.position)
        last = last_trimmable(snapshot.position, keep_from_seq)
        trimmed = str(max(last, START))
        given = (token, str(snapshot.position), snapshot.body, trimmed, BASE_SAMPLES, int(as_base))
        reply = await self._run("save", stream, *given)
        _accept(reply, stream, snapshot.position, token)
        while last.seq >= 0 and _status(await self._run("trim", stream, str(last))) == "more":
            pass

    @replaces
    async def replace(self, stream: str, after: Position, snapshot: Snapshot, token: int = 0) -> None:
        """Go on from a foreign state."""
        check_replace(after, snapshot)
        reply = await self._change("replace", stream, token, str(after), str(snapshot.position), snapshot.body)
        _accept(reply, stream, after, token)

    @replaces
    async def restore(self, stream: str, snapshot: Snapshot, token: int = 0) -> None:
        """Stand at a snapshot, whatever is there."""
        check_position(snapshot.position)
        reply = await self._change("restore", stream, token, str(snapshot.position), snapshot.body)
        _accept(reply, stream, snapshot.position, token)
        await self._list(stream)

    async def load(self, stream: str) -> tuple[Snapshot, Position] | None:
        """Read the snapshot and the head, and make sure that nothing is gone."""
        reply = await self._run("load", stream)
        if _status(reply) == "missing":
            return None
        _accept(reply, stream, START)
        return _verify(stream, *reply[1:])

    async def inspect(self, stream: str) -> Remains | None:
        """Read what is there, and what should be."""
        return _remains(stream, *(await self._run("inspect", stream, *TYPES))[1:])

    async def entries(self, stream: str, after: Position, limit: int) -> list[Entry]:
        """Read a page of the log."""
        if limit <= 0:
            return []
        _, rows = await self._run("entries", stream, str(after), limit, PAGE_BYTES)
        return [_as_entry(row) for row in rows]

    async def entries_holding(self, stream: str, seqs: Sequence[int]) -> list[Entry]:
        """Read the batches that hold these samples."""
        found: dict[Position, Entry] = {}
        for part in _parts(possible_seqs(seqs), SEQS_PER_STEP):
            _, rows = await self._run("holding", stream, PAGE_BYTES, *part)
            found.update((entry.position, entry) for entry in map(_as_entry, rows))
            if is_full(found.values()):
                break
        return list(found.values())

    async def find_ids(self, stream: str, ids: Sequence[str]) -> dict[str, int]:
        """Give the seqs of known ids."""
        known = await self._look_up(stream, stream_keys(stream).ids, ids)
        return {name: int(seq) for name, seq in known}

    async def find_labels(self, stream: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Give the records of labelled samples."""
        return dict(await self._look_up(stream, stream_keys(stream).labels, possible_seqs(seqs)))

    async def delete(self, stream: str, token: int = 0) -> bool:
        """Forget a stream; if another was created meanwhile, that one stays listed."""
        reply = await self._change("delete", stream, token)
        if _status(reply) == "fenced":
            raise Fenced(stream, token, int(reply[1]))
        await self._others.send("ZREM", STREAMS, stream)
        if await self._is_there(stream):
            await self._list(stream)
        return _status(reply) == "ok"

    async def streams(self, after: str, limit: int) -> list[str]:
        """List names in order, without those whose creation or deletion was cut short."""
        found: list[str] = []
        while len(found) < limit:
            wanted = limit - len(found)
            page = await self._list_page(after, wanted)
            there = await asyncio.gather(*map(self._is_there, page))
            found += [name for name, is_there in zip(page, there, strict=True) if is_there]
            if len(page) < wanted:
                break
            after = page[-1]
        return found

    async def silences(self, streams: Sequence[str]) -> dict[str, Silence]:
        """Say how long streams are silent."""
        found = await asyncio.gather(*map(self._silence, streams))
        return {stream: silence for stream, silence in zip(streams, found, strict=True) if silence is not None}

    async def _silence(self, stream: str) -> Silence | None:
        try:
            reply = await self._run("silence", stream)
        except StoreCorrupt:
            return None
        return None if _status(reply) == "missing" else Silence(reply[1] / 1000, int(reply[2]))

    async def size(self, stream: str) -> StreamSize:
        """Measure a stream."""
        reply = await self._run("size", stream)
        _accept(reply, stream, START)
        return StreamSize(*(int(number) for number in reply[1:]))

    async def _is_there(self, stream: str) -> bool:
        """Tell whether anything is kept of a stream but its lease."""
        keys = stream_keys(stream)
        return bool(await self._others.send("EXISTS", *(key for key in keys if key != keys.lease)))

    async def _run(self, verb: str, stream: str, *arguments: Any) -> list[Any]:
        return await self._ask(self._others, verb, stream, *arguments)

    async def _change(self, verb: str, stream: str, *arguments: Any) -> list[Any]:
        """Run what is acknowledged to somebody, so that it must be kept as promised."""
        return await self._ask(self._changes, verb, stream, *arguments)

    async def _ask(self, pipe: RedisPipe, verb: str, stream: str, *arguments: Any) -> list[Any]:
        try:
            reply: list[Any] = await pipe.start(self._script(verb), stream_keys(stream), *arguments)
        except StoreCorrupt as error:
            raise await self._explained(stream, error) from error
        return reply

    async def _explained(self, stream: str, error: StoreCorrupt) -> StoreCorrupt:
        """Say of which stream a key is that has another type than it must, and which key."""
        types = [str(await self._others.send("TYPE", key), "ascii") for key in stream_keys(stream)]
        return StoreCorrupt(stream, "; ".join(_foreign_keys(stream, types)) or error.gap)

    def _script(self, verb: str) -> Script:
        if verb not in self._scripts:
            self._scripts[verb] = read_script(verb)
        return self._scripts[verb]

    async def _look_up(self, stream: str, key: str, fields: Sequence[Any]) -> list[tuple[Any, bytes]]:
        known: list[tuple[Any, bytes]] = []
        for part in _parts(fields, FIELDS_PER_STEP):
            try:
                values = await self._others.send("HMGET", key, *part)
            except StoreCorrupt as error:
                raise await self._explained(stream, error) from error
            known += [pair for pair in zip(part, values, strict=True) if pair[1] is not None]
        return known

    async def _list(self, stream: str, bounds: Sequence[Bound] = NO_BOUNDS) -> None:
        """List a stream, all its bounds counted in the same step, so that none is passed by many at once."""
        counted = chain.from_iterable((*_names_of(bound.prefix), bound.most) for bound in bounds)
        reply = await self._others.start(self._script("list"), (STREAMS,), stream, *counted)
        if _status(reply) == "full":
            raise TooManyStreams(stream, bounds[int(reply[1]) - 1], int(reply[2]))

    async def _list_page(self, after: str, limit: int) -> list[str]:
        least = f"({after}" if after else "-"
        page = await self._others.send("ZRANGEBYLEX", STREAMS, least, "+", "LIMIT", 0, limit)
        return [name.decode() for name in page]


def _status(reply: list[Any]) -> str:
    status: str = reply[0].decode()
    return status


def _accept(reply: list[Any], stream: str, expected: Position, token: int = 0) -> None:
    """Raise what a script refused."""
    match _status(reply):
        case "missing":
            raise StreamNotFound(stream)
        case "stale":
            raise StaleWriter(stream, expected, Position.parse(reply[1]))
        case "fenced":
            raise Fenced(stream, token, int(reply[1]))
        case "corrupt":
            raise StoreCorrupt(stream, "its head is missing, though other parts of it are there")


def _as_entry(row: list[Any]) -> Entry:
    _, body, _, first, _, packed = row[1]
    ids = msgspec.msgpack.decode(packed, type=tuple[str, ...]) if packed else ()
    return Entry(Position.parse(row[0]), body, int(first) if first else None, ids)


def _verify(
    stream: str, head: bytes, position: bytes, body: bytes | None, first: Any, last: bytes | None, *counts: Any
) -> tuple[Snapshot, Position]:
    if body is None:
        raise StoreCorrupt(stream, f"the snapshot at {position.decode()} is missing, its log is at {head.decode()}")
    snapshot = Snapshot(Position.parse(position), body)
    newest = None if last is None else Position.parse(last)
    gap = find_gap(snapshot.position, Position.parse(head), first and _as_entry(first), newest)
    if gap or (gap := _find_loss(counts)):
        raise StoreCorrupt(stream, gap)
    return snapshot, Position.parse(head)


def _find_loss(counts: Sequence[Any]) -> str | None:
    """Compare what should be there with what is: an evicted key is empty, and a later write fills it in part."""
    for name, expected, actual in zip(("log", "id index", "label index"), counts[::2], counts[1::2], strict=True):
        if int(expected or 0) != int(actual or 0):
            return f"the {name} has {int(actual or 0)} entries where {int(expected or 0)} were written"
    return None


def _foreign_keys(stream: str, types: Sequence[str]) -> list[str]:
    """Say which keys of a stream are of another type than they must be."""
    of_keys = zip(stream_keys(stream), types, TYPES, strict=True)
    return [
        f"its key {key} is of the type {found}, not {wanted}"
        for key, found, wanted in of_keys
        if found not in (wanted, "none")
    ]


def _remains(
    stream: str, found: list[bytes], meta: Any, body: Any, base: Any, last: bytes | None, *actual: Any
) -> Remains | None:
    types = StreamKeys(*(str(kind, "ascii") for kind in found))
    if set(types._replace(lease="none")) == {"none"}:
        return None
    head, at, based, *expected = meta or [None, b"0-0", b"0-0", None, None, None]
    faults = _foreign_keys(stream, types)
    if head is None:
        faults.append("its head is missing")
    elif loss := _find_loss([*chain.from_iterable(zip(expected, actual, strict=True))]):
        faults.append(loss)
    known = head or last
    return Remains(Position.parse(known) if known else None, _snapshot(at, body), _snapshot(based, base), tuple(faults))


def _snapshot(position: bytes | None, body: bytes | None) -> Snapshot | None:
    return None if position is None or body is None else Snapshot(Position.parse(position), body)


def _names_of(prefix: str) -> tuple[str, str]:
    """Give the ends of the range of names, which are ASCII, that begin like this."""
    return (f"[{prefix}", f"({prefix}\x7f") if prefix else ("-", "+")


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _fence_keys(lease: tuple[str, int]) -> tuple[str, str]:
    """Give the keys that tell whether a lease stands."""
    keys = stream_keys(lease[0])
    return keys.meta, keys.lease


def _tokens(leases: Iterable[tuple[str, int]]) -> list[int]:
    return [token for _, token in leases]


def _parts(items: Iterable[Any], size: int) -> Iterable[list[Any]]:
    remaining = iter(items)
    while part := list(islice(remaining, size)):
        yield part
