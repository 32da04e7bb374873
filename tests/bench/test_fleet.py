"""`itan bench fleet`: real workers and a real store, small.

It takes some seconds: four workers start, and a lease has to end.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import app
from bench.fleet import run
from bench.fleet.stores import read_info
from tests.processes import wait_until
from tests.servers import RedisServer, find_valkey

LEASE_SECONDS = 0.5


def descendants(pid: int) -> set[int]:
    """Give the processes below one, with their own."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parents[int(status.parent.name)] = int(re.findall(r"PPid:\s+(\d+)", status.read_text())[0])
        except OSError:
            continue  # it has just ended
    found, new = set[int](), {pid}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return found - {pid}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """Run a Redis that stays."""
    server = RedisServer(find_valkey(), tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a dead worker's streams taken over soon."""
    monkeypatch.setenv("ITAN_LEASE_SECONDS", str(LEASE_SECONDS))
    monkeypatch.setattr(run, "LEASE_ALLOWANCE_SECONDS", 1.0)


@pytest.mark.servers
@pytest.mark.usefixtures("hasty")
def test_a_small_fleet_gives_every_constant_and_leaves_neither_process_nor_stream(server: RedisServer) -> None:
    before = descendants(os.getpid())
    done = CliRunner().invoke(app, ["bench", "fleet", "--quick", "--json", "--store", server.url])
    assert done.exit_code == 0, done.output
    phases, constants, commands = json.loads(done.stdout)["tables"]
    rows: dict[str, dict[str, Any]] = {row.pop("phase"): row for row in phases["rows"]}
    assert list(rows) == ["empty", "open", "steady", "idle", "cold", "death", "at once"]
    assert all(row.get("failed", 0) == 0 for row in rows.values())
    assert [rows[name]["requests"] for name in ("open", "at once")] == [50, 50]
    assert all(row["cores"] > 0 and row["store_cores"] > 0 and row["rss"] > 50 for row in rows.values())
    values = {row["constant"]: row["value"] for row in constants["rows"]}
    assert 0.1 < values["worker, a request"] < 50
    assert values["worker, opening a stream"] > 0
    assert values["store, a logged sample that is in no block yet"] > 8 * 4
    died = values["death of a worker, until all requests of its lease were answered"]
    assert LEASE_SECONDS / 3 < died < 30
    assert rows["death"]["max"] > 1e3 * LEASE_SECONDS / 3  # the first request has to wait for the end of the lease
    assert "evalsha" in {row["command"] for row in commands["rows"]}
    with server.admin() as client:
        assert [
            key for key in client.scan_iter() if b"bench-fleet-" in key and not key.startswith(b"itan:1:wanted")
        ] == []
        assert client.zcard("itan:1:streams") == 0
    # multiprocessing keeps a helper of its own
    helpers = {
        pid for pid in descendants(os.getpid()) if b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    }
    assert descendants(os.getpid()) - before <= helpers


@pytest.mark.servers
def test_ctrl_c_ends_every_process(tmp_path: Path) -> None:
    said = tmp_path / "said"
    words = [sys.executable, "-m", "app.cli", "bench", "fleet", "--quick"]
    with said.open("wb") as file:
        bench = subprocess.Popen(words, stdout=file, stderr=file, env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        wait_until(lambda: b"steady" in said.read_bytes())
        started = descendants(bench.pid)
        assert len(started) >= 3  # a worker, its Redis and a generator
        bench.send_signal(signal.SIGINT)
        assert bench.wait(60) == 130, said.read_text()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
        assert list(tmp_path.iterdir()) == [said]
    finally:
        bench.kill()
        bench.wait()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--store", "sqlite", "--workers", "2"), "SQLite serves one worker"),
        (("--store", "nonsense"), "a store's URL begins with"),
        (("--store", "memory://"), "a memory store ends with its worker"),
    ],
)
def test_what_cannot_be_measured_is_refused(words: tuple[str, ...], reason: str) -> None:
    done = CliRunner().invoke(app, ["bench", "fleet", "--quick", *words])
    assert done.exit_code == 2
    assert reason in done.output


def test_without_a_redis_it_says_what_else_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.fleet.stores.redis_program", lambda: "")
    done = CliRunner().invoke(app, ["bench", "fleet", "--quick"])
    assert done.exit_code == 2
    assert "--store sqlite" in done.output


def test_the_primaries_of_a_cluster_are_added_up() -> None:
    one = {"used_memory": 10, "used_memory_rss": 20, "used_cpu_user": 1.0, "used_cpu_sys": 0.5}
    two = one | {"aof_current_size": 7, "cmdstat_set": {"calls": 2, "usec": 30}}
    found = read_info([two, two, one])
    assert (found.used_bytes, found.rss_bytes, found.cpu_seconds, found.log_file_bytes) == (30, 60, 4.5, 14)
    assert found.commands == {"set": (4, 60e-6)}
