"""`itan backup` and `itan restore`: copy all streams out of a store of any kind, and into one of any kind."""

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from app.commands.connection import FAILED, MISUSED, fail
from app.commands.settings import reason

if TYPE_CHECKING:
    from app.storage.sqlite import SqliteReader
    from app.streams.maintenance.backups import Plan, Tally
    from app.streams.maintenance.copies import Source

T = TypeVar("T")
Store = Annotated[
    str | None,
    typer.Option(help="URL of the store, as for itan serve.", show_default="ITAN_STORE or sqlite:///itan.db"),
]


def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file, or a folder in which to make one.")],
    store: Store = None,
) -> None:
    """Copy all streams of a store into a file, even while services use it."""
    began = time.monotonic()
    if target.is_dir():
        target /= f"itan-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"
    tally = run(back_up(target, store_url(store)))
    print(f"{target}: {counted(tally)} in {time.monotonic() - began:.1f} s")
    if tally.damaged:
        left_out = "; ".join(f"{name}: {what}" for name, what in tally.damaged.items())
        raise fail(f"{len(tally.damaged)} damaged streams are not in the backup: {left_out}", FAILED)


def restore(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A backup, or the file of an SQLite store.")],
    store: Store = None,
    *,
    replace: Annotated[bool, typer.Option("--replace", help="First delete streams that are not in SOURCE.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Verify SOURCE, and only say what would be done.")] = False,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Accept an SQLite store without its -wal: the last writes are lost.")
    ] = False,
) -> None:
    """Copy all streams of a backup into an empty store; after an interruption it continues where it stopped."""
    began = time.monotonic()
    tally = run(put_back(source, store_url(store), is_forced=replace, is_trial=dry_run, is_incomplete=incomplete))
    if tally is not None:
        print(f"{source}: {counted(tally)} restored in {time.monotonic() - began:.1f} s")


def store_url(given: str | None) -> str:
    """Give the URL of the store: the one of the command, or that of the settings."""
    from app.settings import Settings

    if given:
        return given
    try:
        return Settings().store
    except ValueError as error:
        raise fail(reason(error), MISUSED) from None


async def back_up(target: Path, url: str) -> "Tally":
    """Back up the store of a URL."""
    from app.storage import open_reader
    from app.streams.maintenance import backups

    async with backups.opened(open_reader(url)) as reader:
        return await backups.back_up(reader, target, url.partition(":")[0])


async def put_back(source: Path, url: str, *, is_forced: bool, is_trial: bool, is_incomplete: bool) -> "Tally | None":
    """Verify a backup and compare it with the store of a URL; then restore it, unless this is a trial."""
    from app.storage import open_store
    from app.streams.maintenance import backups

    reader = reader_of(source, is_incomplete=is_incomplete)
    async with backups.opened(reader):
        names = [name async for name in backups.verify(reader)]
        store = open_store(url)
        async with backups.opened(present(url) if is_trial else store) as target:
            plan = await backups.plan(names, reader, target)
            if is_trial:
                await show(source, reader, plan)
                return None
            if plan.in_the_way and not is_forced:
                raise backups.BackupRefused(in_the_way(plan))
            return await backups.restore(reader, store, plan)


def reader_of(source: Path, *, is_incomplete: bool) -> "SqliteReader":
    """Tell a backup from the file of a store."""
    from app.storage.sqlite import SqliteReader
    from app.storage.sqlite.backup import BackupReader, BareReader, is_backup

    if is_backup(source):
        return BackupReader(source)
    return BareReader(source) if is_incomplete else SqliteReader(source)


def present(url: str) -> "Source":
    """Give what reads a store, which need not be there yet."""
    from app.storage import open_reader
    from app.storage.memory import MemoryStore
    from app.storage.sqlite import SqliteReader

    reader = open_reader(url)
    return MemoryStore() if isinstance(reader, SqliteReader) and not reader.exists() else reader


async def show(source: Path, reader: "SqliteReader", plan: "Plan") -> None:
    """Say what a restore would do, a stream a line."""
    for what, names in (("restore", plan.to_copy), ("keep", plan.present), ("delete", plan.in_the_way)):
        for name in sorted(names):
            print(what, name, await described(reader, name) if what != "delete" else "")
    print(f"{source} is whole: {len(plan.to_copy)} streams to restore, {len(plan.present)} exist already")
    if plan.in_the_way:
        print(in_the_way(plan))


async def described(reader: "SqliteReader", name: str) -> str:
    """Say what a backup has of a stream."""
    loaded = await reader.load(name)
    assert loaded is not None
    size = await reader.size(name)
    return f"to sample {loaded[1].seq}, {size.log_entries} events, {size.log_bytes + size.snapshot_bytes} bytes"


def in_the_way(plan: "Plan") -> str:
    """Say why a store cannot take a backup as it is."""
    names = sorted(plan.in_the_way)
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"the store has {len(names)} streams that differ from the backup ({shown}): --replace deletes them"


def counted(tally: "Tally") -> str:
    """Say how much was copied."""
    return f"{tally.streams} streams, {tally.samples} samples, {tally.size_bytes / 1e6:.1f} MB"


def run(work: "Coroutine[Any, Any, T]") -> T:
    """Run to the end, or say in one line why not."""
    from app.storage import StoreError
    from app.streams.maintenance.backups import BackupRefused

    try:
        return asyncio.run(work)
    except (BackupRefused, StoreError, OSError) as error:
        raise fail(str(error), FAILED) from None
    except ValueError as error:
        raise fail(str(error), MISUSED) from None
