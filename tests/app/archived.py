"""A service with an archive in a folder, and what is in that folder."""

import asyncio
from pathlib import Path
from typing import Any

import duckdb

from app.storage import START
from app.streams.log.log import Log
from tests.app.harness import Service, blobs

SAMPLES = 120
X = blobs(SAMPLES, seed=3)
IDS = [f"id-{i}" for i in range(1, SAMPLES + 1)]
IN_STORE = {"label_horizon_samples": 10_000}


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    """Give settings that keep some 25 to 35 samples in the store."""
    return {**IN_STORE, "archive": str(folder), "log_samples": 40, **more}


async def feed(service: Service, first: int = 0, last: int = SAMPLES, stream: str = "s") -> None:
    """Post samples, four at a time."""
    for start in range(first, last, 4):
        rows = slice(start, min(start + 4, last))
        await service.observe(X[rows], ids=IDS[rows], stream=stream)


async def move(service: Service) -> None:
    """Store snapshots, and move what they find too long."""
    for session in list(service.registry.sessions.values()):
        await service.registry.save(session)
    await service.app.state.archiver.work()


async def oldest_in_store(service: Service, stream: str = "s") -> int:
    """Give the oldest sample that the store holds."""
    entries = await Log(service.store, stream).entries(START, 1)
    return entries[0].first_seq if entries else 0


def rows(folder: Path, kind: str = "samples", columns: str = "seq") -> list[tuple]:
    """Query the Parquet files of all streams, in order."""
    files = f"read_parquet('{folder}/{kind}/*/*.parquet', hive_partitioning=true, union_by_name=true)"
    return duckdb.sql(f"SELECT {columns} FROM {files} ORDER BY ALL").fetchall()


def files_in(folder: Path) -> list[str]:
    """List the files of streams in the archive."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and "=~" not in str(path)
    )


class Killed(BaseException):
    """The end of a process, in the middle of something."""


class Steps:
    """Ends the process at one step of many; counts the steps until then."""

    def __init__(self, last: int) -> None:
        self.taken, self._last = 0, last

    async def take(self) -> None:
        """Take a step."""
        await asyncio.sleep(0)
        if self.taken == self._last:
            raise Killed
        self.taken += 1
