"""Logs on SQLite and Redis with a block that was altered or removed: checked, repaired, and used again."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.storage import Store, open_store
from app.streams.log import compaction
from tests.app.harness import Service
from tests.app.streams.maintenance.test_repair import X, filled
from tests.servers import RedisServer, find_valkey

BLOCKS = "itan:1:{s}:blocks"
Alter = Callable[[bytes], bytes | None]
"""Gives another body of a block, or none to remove it."""


def spoilt(body: bytes) -> bytes:
    return body[:-9] + b"not so it"


def removed(_: bytes) -> None:
    return None


class OnSqlite:
    """A file, and what a disk does to it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "itan.db"

    def open(self) -> Store:
        return open_store(f"sqlite:///{self._path}")

    def alter(self, at: int, alter: Alter) -> None:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            rows = connection.execute("SELECT rowid, body FROM blocks ORDER BY seq, sub").fetchall()
            rowid, body = rows[at]
            if (other := alter(body)) is None:
                connection.execute("DELETE FROM blocks WHERE rowid = ?", (rowid,))
            else:
                connection.execute("UPDATE blocks SET body = ? WHERE rowid = ?", (other, rowid))


class OnRedis:
    """A server, and what an operator does to it."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def open(self) -> Store:
        return open_store(self._server.url)

    def alter(self, at: int, alter: Alter) -> None:
        with self._server.admin() as admin:
            rows: Any = admin.xrange(BLOCKS)
            admin.delete(BLOCKS)
            for i, (position, fields) in enumerate(rows):
                body = alter(fields[b"b"]) if i == at else fields[b"b"]
                if body is not None:
                    admin.xadd(BLOCKS, fields | {b"b": body}, id=position)


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OnSqlite | OnRedis]:
    """Give a place for streams that outlives its stores."""
    if request.param == "sqlite":
        yield OnSqlite(tmp_path)
        return
    server = RedisServer(find_valkey(), tmp_path)
    server.start()
    yield OnRedis(server)
    server.kill()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks of few samples."""
    monkeypatch.setattr(compaction, "LEAST_SAMPLES", 15)
    monkeypatch.setattr(compaction, "MOST_SAMPLES", 40)


async def pack(place: OnSqlite | OnRedis) -> list[float]:
    """Fill a stream "s" whose log is in blocks of 40 samples, and give the scores of its next samples."""
    _, scores = await filled(place.open())
    async with Service(place.open()) as service:
        await service.feedback({"seq": 150, "anomaly": False}, {"seq": 150, "anomaly": None})
        await service.registry.save(service.registry.sessions["s"])
        await service.app.state.compactor.compact_due()
    return scores


@pytest.mark.usefixtures("small_blocks")
async def test_the_log_begins_after_an_altered_block_once_that_is_allowed(place):
    scores = await pack(place)
    place.alter(1, spoilt)
    first, last = 41, 80
    async with Service(place.open()) as service:
        check = await service.accepted("GET", "/streams/s/check")
        assert f"samples {first} to {last}, cannot be read" in json.dumps(check["findings"])
        assert check["repair"].startswith(f"loses the log up to sample {last},")
        await service.refused("POST", "/streams/s/repair", 409, "repair_loses")
        repaired = await service.accepted("POST", "/streams/s/repair?lossy=true")
        assert (repaired["changed"], repaired["lost_first_seq"]) == (True, None)
    async with Service(place.open()) as service:
        check = await service.accepted("GET", "/streams/s/check")
        assert (check["ok"], check["findings"]) == (True, [])
        assert (await service.accepted("GET", "/readyz"))["damaged_streams"] == 0
        assert (await service.accepted("GET", "/streams/s"))["oldest_seq"] == last + 1
        assert (await service.observe(X[150:]))["score"] == scores
        late = [{"id": f"i{seq - 1}", "anomaly": True} for seq in (first, last, last + 1)]
        assert (await service.feedback(*late))["outcome"] == ["unknown", "unknown", "applied"]
        assert (await service.accepted("GET", "/streams/s/history?from=1"))["seq"][0] == last + 1
        await service.registry.save(service.registry.sessions["s"])
        await service.app.state.compactor.compact_due()
        assert (await service.accepted("GET", "/streams/s/check"))["findings"] == []


@pytest.mark.usefixtures("small_blocks")
async def test_a_missing_block_is_found_and_the_state_is_kept_once_that_is_allowed(place):
    scores = await pack(place)
    place.alter(0, removed)
    async with Service(place.open()) as service:
        check = await service.accepted("GET", "/streams/s/check")
        assert not check["ok"]
        assert "entries" in json.dumps(check["findings"])
        await service.refused("POST", "/streams/s/repair", 409, "repair_loses")
        repaired = await service.accepted("POST", "/streams/s/repair?lossy=true")
        assert (repaired["changed"], repaired["lost_first_seq"]) == (True, None)
    async with Service(place.open()) as service:
        assert (await service.observe(X[150:]))["score"] == scores
        assert (await service.accepted("GET", "/readyz"))["damaged_streams"] == 0
