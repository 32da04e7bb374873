"""What a sample takes in the log, as it is appended and in blocks, and what blocks cost: python -m bench.log_size."""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median
from time import process_time
from typing import Final

import numpy as np

from app.storage import Entry, Position, Snapshot, Store, open_store
from app.streams.log.compaction import compact
from app.streams.log.events import batch_body
from app.streams.log.log import Log
from bench.fleet.stores import REDIS, SQLITE, FleetStore, keeping
from bench.servers import NO_REDIS, redis_program
from bench.speed import clusters
from bench.tables import Cell, Column, Table, versions
from core import Detector, DetectorConfig, Records

FEATURES: Final = 8
SAMPLES: Final = 20_000
WARM: Final = 5_000
"""So many come first: what a store needs once is no cost of a sample, nor are those that wait for their block."""
POSTS: Final = (1, 10, 100, 1000)
PER_SNAPSHOT: Final = 1_000
"""After so many samples the log is moved into blocks."""
LABELS: Final = 50
SEED: Final = 0
STREAM: Final = "s"
COLUMNS: Final = (
    Column("store", "store"),
    Column("post", "samples a post", "d"),
    Column("appended", "bytes a sample, as appended", ".0f"),
    Column("packed", "in blocks", ".0f"),
    Column("pack_us", "CPU us a sample, of packing", ".1f"),
    Column("store_us", "of Redis, for that", ".1f"),
    Column("label_ms", "CPU ms of a late label's batch, as appended", ".2f"),
    Column("packed_label_ms", "in a block", ".2f"),
)


@dataclass
class Run:
    """Samples after the first WARM of a store: bytes, the CPU of packing, and that of each read for a late label."""

    samples: int = 0
    used_bytes: int = 0
    pack_seconds: float = 0.0
    store_seconds: float = 0.0
    label_seconds: list[float] = field(default_factory=list)


def measure(samples: int = SAMPLES, posts: Sequence[int] = POSTS) -> Table:
    """Write the same samples by posts of different sizes into each store, with blocks and without."""
    records = observed(samples)
    rows: list[dict[str, Cell]] = []
    for kind in (REDIS, SQLITE) if redis_program() else (SQLITE,):
        for size in posts:
            entries = list(posted(records, size))
            appended, packed = (written(kind, entries, in_blocks=in_blocks) for in_blocks in (False, True))
            rows.append(row_of(kind, size, appended, packed))
    notes = [
        f"the last {samples - WARM} of {samples} samples of {FEATURES} noisy doubles, with ids of 25 characters that"
        f" count up; the log is moved into blocks after each {PER_SNAPSHOT}",
        f"Redis: memory in use; SQLite: growth of the file. {versions('numpy', 'backports-zstd', 'redis')}",
    ]
    return Table("The log", COLUMNS, rows, notes if redis_program() else [*notes, NO_REDIS])


def observed(samples: int) -> Records:
    """Score samples of a stream that has seen as many before."""
    detector = Detector(DetectorConfig(FEATURES))
    parts = np.array_split(clusters(SEED, 2 * samples, FEATURES), max(1, samples // 250))
    records = Records.joined([detector.observe(X).records for X in parts], FEATURES)
    return records[samples:]


def posted(records: Records, size: int) -> Iterator[Entry]:
    """Cut samples into posts, one a minute."""
    chance, at = np.random.default_rng(SEED), 1.8e9
    for start in range(0, len(records), size):
        part, at = records[start : start + size].compact(), at + 60.0 + chance.normal() / 100
        first, last = int(part.seq[0]), int(part.seq[-1])
        ids = tuple(f"order-2026-11-29-{seq:08d}" for seq in range(first, last + 1))
        yield Entry(Position(last, 0), batch_body(part, None, at), first, ids)


def written(kind: str, entries: Sequence[Entry], *, in_blocks: bool) -> Run:
    """Write a log into a store that has nothing else."""
    begin = entries[0].after.seq
    first = [entry for entry in entries if entry.position.seq - begin <= WARM]
    with keeping(kind) as kept:
        asyncio.run(_write(kept, first, begin, in_blocks=in_blocks))
        before = kept.figures()
        run = asyncio.run(_write(kept, entries[len(first) :], begin, in_blocks=in_blocks))
        after = kept.figures()
    run.samples = sum(entry.n_samples for entry in entries[len(first) :])
    run.used_bytes = after.used_bytes - before.used_bytes
    run.store_seconds = after.cpu_seconds - before.cpu_seconds
    return run


async def _write(kept: FleetStore, entries: Sequence[Entry], begin: int, *, in_blocks: bool) -> Run:
    run, store, head = Run(), open_store(kept.url), entries[0].after
    await store.open()
    try:
        await store.create(STREAM, Snapshot(head, b""))
        for _, together in groupby(entries, lambda entry: (entry.position.seq - begin - 1) // PER_SNAPSHOT):
            for entry in together:
                await store.append(STREAM, head, entry)
                head = entry.position
            run.pack_seconds += await _pack(store, head, begin + 1) if in_blocks else 0.0
        run.label_seconds = [await _read(store, seq) for seq in _labelled(begin + 1, head.seq)]
    finally:
        await store.close()
    return run


async def _pack(store: Store, until: Position, oldest: int) -> float:
    began = process_time()
    while await compact(store, STREAM, until, oldest):
        pass
    return process_time() - began


def _labelled(oldest: int, newest: int) -> list[int]:
    chosen: list[int] = np.random.default_rng(SEED).integers(oldest, (oldest + newest) // 2, LABELS).tolist()
    return chosen


async def _read(store: Store, seq: int) -> float:
    """Read the batch of a sample, as a label does."""
    began = process_time()
    await Log(store, STREAM).entries_holding([seq])
    return process_time() - began


def row_of(kind: str, size: int, appended: Run, packed: Run) -> dict[str, Cell]:
    """Put the figures of one store and one size of posts together."""
    store_seconds = packed.store_seconds - appended.store_seconds
    return {
        "store": kind,
        "post": size,
        "appended": appended.used_bytes / appended.samples,
        "packed": packed.used_bytes / packed.samples,
        "pack_us": 1e6 * packed.pack_seconds / packed.samples,
        "store_us": 1e6 * store_seconds / packed.samples if kind == REDIS else None,
        "label_ms": 1e3 * median(appended.label_seconds),
        "packed_label_ms": 1e3 * median(packed.label_seconds),
    }


def main(argv: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench.log_size", description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    print(measure(parser.parse_args(argv).samples).to_markdown())


if __name__ == "__main__":
    main(sys.argv[1:])
