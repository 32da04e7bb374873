"""Runs every load against a server of its own, of this version or another, and measures small requests beside it."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from bench.hostile import loads
from bench.hostile.loads import FED, LOADS, SCORED
from bench.hostile.probing import Waits, probe
from bench.hostile.wire import Address, ask, connect, post, samples
from bench.tables import Cell, Column, Table, versions

SECONDS: Final = 5.0
QUIET_SECONDS: Final = 2.0
SETTLING_SECONDS: Final = 0.5
TRAINING: Final = 2000
SPAWN: Final = multiprocessing.get_context("spawn")
HERE: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Found:
    """How long small requests waited without a load, and beside one."""

    quiet: dict[str, Waits]
    loaded: dict[str, Waits]


def measure(names: Sequence[str], before: Path | None = None, seconds: float = SECONDS) -> Iterator[Table]:
    """Give a table of one row for each load, as soon as it is run."""
    for name in names:
        row: dict[str, Cell] = {"load": LOADS[name].title}
        row |= _cells(beside(name, HERE, seconds), "now", refuses_writes=LOADS[name].refuses_writes)
        if before:
            row |= _cells(beside(name, before, seconds), "before", refuses_writes=LOADS[name].refuses_writes)
        yield Table(f"Milliseconds that small requests wait beside {LOADS[name].title}", COLUMNS, [row], NOTES)


def together(tables: Sequence[Table]) -> Table:
    """Join them into one table."""
    rows = [row for table in tables for row in table.rows]
    return Table("Milliseconds that small requests wait beside hostile ones", COLUMNS, rows, NOTES)


def beside(name: str, checkout: Path, seconds: float = SECONDS, quiet_seconds: float = QUIET_SECONDS) -> Found:
    """Measure small requests before and beside a load, on a server of a checkout."""
    load = LOADS[name]
    with (
        TemporaryDirectory() as folder,
        serving(checkout, f"{folder}/itan.db") as (address, pid),
        ProcessPoolExecutor(1, SPAWN) as apart,
    ):
        train(address)
        quiet = apart.submit(probe, address, quiet_seconds).result()
        if load.prepare:
            load.prepare(pid)
        with loaded(name, address):
            return Found(quiet, apart.submit(probe, address, seconds).result())


@contextmanager
def serving(checkout: Path, store: str) -> Iterator[tuple[Address, int]]:
    """Serve with the code of a checkout and the packages of this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ITAN_")}
    words = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--log-level", "error", "--store"]
    process = subprocess.Popen(
        [*words, f"sqlite:///{store}"],
        cwd=checkout,
        env=kept | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode().split()
        if not line:
            raise RuntimeError(f"the service of {checkout} did not start")
        url = urlsplit(line[-1])
        yield (str(url.hostname), int(url.port or 80)), process.pid
    finally:
        process.kill()
        process.communicate()


def train(address: Address) -> None:
    """Create the streams that the requests use."""
    rows = np.random.default_rng(0).normal(size=(TRAINING, 2)).tolist()
    for stream in (SCORED, FED, "learned", "odd"):
        with connect(address) as connection:
            status, answer = ask(connection, post(f"/observe?stream={stream}", samples(rows)))
        if status != 200:
            raise RuntimeError(answer.decode())


@contextmanager
def loaded(name: str, address: Address) -> Iterator[None]:
    """Run a load in processes of its own."""
    over = SPAWN.Event()
    begun = [SPAWN.Event() for _ in range(LOADS[name].clients)]
    clients = [SPAWN.Process(target=_run, args=(name, address, over, mine), daemon=True) for mine in begun]
    for client in clients:
        client.start()
    try:
        for mine in begun:
            mine.wait(60)
        time.sleep(SETTLING_SECONDS)
        yield
    finally:
        over.set()
        for client in clients:
            client.join(1)
            client.kill()
            client.join()


def _run(name: str, address: Address, over: Event, begun: Event) -> None:
    loads.run(name, address, over.is_set, begun.set)


def _cells(found: Found, when: str, *, refuses_writes: bool) -> dict[str, Cell]:
    """Quantiles of one version, by column."""
    cells: dict[str, Cell] = {}
    for probed, waits in found.loaded.items():
        if probed == "learn" and refuses_writes:
            continue
        cells[f"{probed}_p50_{when}"] = waits.quantile_ms(0.5)
        cells[f"{probed}_p99_{when}"] = waits.quantile_ms(0.99)
        cells[f"{probed}_failed_{when}"] = waits.failed
    cells[f"livez_quiet_{when}"] = found.quiet["livez"].quantile_ms(0.99)
    return cells


COLUMNS: Final = (
    Column("load", "beside"),
    Column("livez_quiet_now", "/livez quiet, p99", ".0f"),
    Column("livez_p50_now", "/livez p50", ".0f"),
    Column("livez_p99_now", "p99", ".0f"),
    Column("livez_p99_before", "p99 before", ".0f"),
    Column("score_p50_now", "score p50", ".0f"),
    Column("score_p99_now", "p99", ".0f"),
    Column("score_p99_before", "p99 before", ".0f"),
    Column("learn_p50_now", "learn p50", ".0f"),
    Column("learn_p99_now", "p99", ".0f"),
    Column("learn_p99_before", "p99 before", ".0f"),
)
NOTES: Final = (
    "/livez, a sample to score and a sample to learn, each fifty times a second on connections of their own, from a "
    "separate process, counted from when they were due. The loads run on the same machine.",
    f"{versions('uvicorn', 'numpy')}; SQLite.",
)
