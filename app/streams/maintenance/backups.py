"""Makes backups of a store of any kind, and restores them into a store of any kind."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TypeVar

from app.build import BUILD
from app.storage import LeaseHeld, Store, StoreCorrupt, StoreUnavailable
from app.storage.sqlite import SqliteReader
from app.storage.sqlite.backup import BackupReader, BackupWriter, seal, sync
from app.storage.sqlite.lock import FileLock
from app.streams.log.events import UnreadableEvent
from app.streams.maintenance.copies import (
    PAGE_NAMES,
    UNFINISHED,
    Copied,
    Source,
    copy,
    copy_documents,
    digest,
    names_in,
)

S = TypeVar("S", bound=Source)
FORMAT = 1
OWNER = "itan restore"
LEASE_SECONDS = 600.0
"""The longest time that a worker waits for a stream whose restore was cut short."""
UNFINISHED_SUFFIX = ".unfinished"


class BackupRefused(Exception):
    """A backup or a restore that would destroy something or cannot be done; nothing was changed."""


@dataclass(slots=True)
class Tally:
    """What was copied, and the streams that could not be, with the reason."""

    streams: int = 0
    samples: int = 0
    size_bytes: int = 0
    damaged: dict[str, str] = field(default_factory=dict)

    def take(self, copied: Copied) -> None:
        """Count a stream."""
        self.streams += 1
        self.samples += copied.samples
        self.size_bytes += copied.size_bytes


async def back_up(source: Source, target: Path, of: str) -> Tally:
    """Write all streams of an open store to a new file, which appears once it is complete and on the disk.

    A damaged stream is left out and named. Raises BackupRefused if the file exists.
    """
    refuse_existing(target)
    with unfinished_beside(target) as path:
        tally, digests = await copy_all(source, path)
        about = {"format": FORMAT, "made_at": time.time(), "of": of, "build": BUILD, "samples": tally.samples}
        seal(path, digests, about)
        try:
            os.link(path, target)  # never replaces a file that has appeared meanwhile
        except FileExistsError:
            refuse_existing(target)
        except OSError:  # a disk without hard links
            refuse_existing(target)
            path.rename(target)
        sync(target.parent)
    return tally


async def copy_all(source: Source, path: Path) -> tuple[Tally, dict[str, bytes]]:
    """Copy all streams into a new SQLite store, and take their digests."""
    tally, digests = Tally(), {}
    store = BackupWriter(path)
    await store.open()
    try:
        async for name in names_in(source):
            try:
                copied = await copy(source, store, name)
            except (StoreCorrupt, UnreadableEvent) as error:
                tally.damaged[name] = str(error)
                await store.delete(name)
                continue
            if copied is not None:
                tally.take(copied)
                digests[name] = await digest(store, name)
        await copy_documents(source, store)
    finally:
        await store.close()
    return tally, digests


def refuse_existing(target: Path) -> None:
    """Raise BackupRefused if the target exists, or its folder does not."""
    if target.exists():
        raise BackupRefused(f"{target} exists: a backup never replaces a file")
    if not target.parent.is_dir():
        raise BackupRefused(f"there is no folder {target.parent}")


@contextmanager
def unfinished_beside(target: Path) -> Iterator[Path]:
    """Give a path in a new folder beside the target, on the same disk; remove what killed processes left."""
    prefix = f".{target.name}."
    for left in target.parent.glob(f"{prefix}*{UNFINISHED_SUFFIX}"):
        remove_unfinished(left)
    folder = Path(mkdtemp(prefix=prefix, suffix=UNFINISHED_SUFFIX, dir=target.parent))
    try:
        yield folder / "itan.db"
    finally:
        rmtree(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove an unfinished backup, unless a process is writing it."""
    lock = FileLock(folder / "itan.db")
    with suppress(StoreUnavailable):
        lock.acquire()
        rmtree(folder)
        lock.release()


@asynccontextmanager
async def opened(source: S) -> AsyncIterator[S]:
    """Open a store until the block is left."""
    await source.open()
    try:
        yield source
    finally:
        await source.close()


async def verify(source: SqliteReader) -> AsyncIterator[str]:
    """Read a backup as it was written, and give the name of each stream after it. Raises StoreCorrupt."""
    if not isinstance(source, BackupReader):
        async for name in names_in(source):
            await digest(source, name)
            yield name
        return
    if (known := (await source.about()).get("format")) != FORMAT:
        raise BackupRefused(f"the backup has format {known}, but this build reads only {FORMAT}")
    after = ""
    while page := await source.digests(after, PAGE_NAMES):
        for name, expected in page:
            if await digest(source, name) != expected:
                raise StoreCorrupt(name, "it has changed since the backup was made")
            yield name
        after = page[-1][0]


@dataclass(slots=True)
class Plan:
    """What a restore would do, by the names of streams."""

    missing: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    in_the_way: list[str] = field(default_factory=list)

    @property
    def to_copy(self) -> list[str]:
        """Give the streams that the target lacks."""
        return [*self.missing, *self.unfinished]


async def plan(names: list[str], backup: Source, target: Source) -> Plan:
    """Compare a backup with an open target."""
    made, wanted = Plan(), set(names)
    async for name in names_in(target):
        state = await state_of(name, backup, target) if name in wanted else "in_the_way"
        getattr(made, state).append(name)
    existing = {*made.present, *made.unfinished}  # streams in the way are deleted first
    made.missing = [name for name in names if name not in existing]
    return made


async def state_of(name: str, backup: Source, target: Source) -> str:
    """Compare a stream that both have."""
    try:
        there = await target.load(name)
    except StoreCorrupt:
        return "in_the_way"
    if there is not None and there[0].body == UNFINISHED:
        return "unfinished"
    return "present" if there == await backup.load(name) else "in_the_way"


async def restore(backup: Source, target: Store, made: Plan) -> Tally:
    """Carry out a plan: each stream appears once it is complete, and a restore that was cut short can be run again.

    Raises LeaseHeld, before anything is changed, if a worker is serving a stream that is in the way.
    """
    tally = Tally()
    async with AsyncExitStack() as stack:
        tokens = {name: await leased(stack, target, name) for name in made.in_the_way}
        for name, token in tokens.items():
            await target.delete(name, token)
    for name in made.to_copy:
        async with AsyncExitStack() as stack:
            token = await leased(stack, target, name)
            if name in made.unfinished:
                await target.delete(name, token)
            copied = await copy(backup, target, name, token)
            assert copied is not None
            tally.take(copied)
    await free(made.present, target)
    await copy_documents(backup, target)
    return tally


async def free(names: list[str], target: Store) -> None:
    """End the leases of streams that a restore had completed when it was killed."""
    for name in names:
        with suppress(LeaseHeld):
            async with AsyncExitStack() as stack:
                await leased(stack, target, name)


async def leased(stack: AsyncExitStack, target: Store, name: str) -> int:
    """Hold the lease of a stream until the stack is left."""
    token = await target.acquire(name, OWNER, LEASE_SECONDS)
    stack.push_async_callback(target.release, {name: token})
    return token
