"""Lists of many streams from their summaries: the time and the CPU of a page, and what the summaries cost samples."""

import argparse
import asyncio
import gc
import random
import sys
import time
from collections.abc import Awaitable, Iterator
from itertools import islice
from statistics import median

import httpx2
import numpy as np
from fastapi import FastAPI

from app.main import create_app
from app.settings import Settings
from app.storage import Position, Snapshot, Store, SummaryRow, open_store
from app.streams.open.summary import Summary
from app.streams.views.orders import ORDERS

PATHS: dict[str, str] = {order: f"/streams?order={order}&limit=50&details=true" for order in ORDERS}
PATHS |= {"search": "/streams?search=-99&limit=50&details=true", "overview": "/overview"}
NEWEST_TOKEN = 2**53 - 1
PER_STEP = 500


def names(n: int) -> Iterator[str]:
    """Name streams of 50 sites, each with some machines."""
    return (f"site-{i % 50:02}.line-{i % 7}.host-{i:06}:cpu" for i in range(n))


def summary_of(name: str, now: float, chance: random.Random) -> Summary:
    """Make up how a stream stands: 2 % are in an incident, 5 % in warm-up, a few are to be reviewed."""
    is_open, needed = chance.random() < 0.02, 50 if chance.random() < 0.05 else 0
    hours = sorted(chance.sample(range(24), chance.choice((0, 0, 0, 2, 6))), reverse=True)
    return Summary(
        stream=name,
        as_of_seq=10_000,
        n_seen=10_000,
        ready=not needed,
        samples_needed=needed,
        threshold=12.345678,
        n_flagged=100,
        incident=9_990 if is_open else None,
        incident_begin=now - 100 if is_open else None,
        incident_severity=8 * chance.random() if is_open else None,
        incidents=20,
        to_review=chance.choice((0, 0, 0, 1, 3)),
        severity=4.2,
        flagged_time=now - 1_000.5,
        n_nodes=7,
        labels=3,
        true_alarms=1,
        false_alarms=1,
        misses=1,
        newest_time=now - 1.5,
        written_at=now - 10_000 * chance.random(),
        flags=tuple((int(now // 3600) - hour, chance.randint(1, 20)) for hour in hours),
    )


async def fill(store: Store, n: int) -> None:
    """Create streams that no worker has in memory, with summaries."""
    chance, now, remaining = random.Random(1), time.time(), names(n)
    while some := list(islice(remaining, PER_STEP)):
        await asyncio.gather(*(store.create(name, Snapshot(Position(0, 0), b"")) for name in some))
        rows = [SummaryRow(name, summary_of(name, now, chance).to_bytes(), NEWEST_TOKEN) for name in some]
        await store.put_summaries(rows)


async def longest_hold(work: Awaitable[object]) -> float:
    """Give the most CPU seconds that work takes at a time while others wait for their turn."""
    task, longest = asyncio.ensure_future(work), 0.0
    while not task.done():
        began = time.thread_time()
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - began)
    await task
    return longest


async def measure_pages(app: FastAPI, http: httpx2.AsyncClient, pages: int) -> None:
    """Read each page again and again; one in three times all summaries are read anew before."""
    print(
        f"{'page':<12}{'table fresh: p50':>18}{'p99':>7}{'CPU':>7}{'anew: p50':>17}{'p99':>7}{'CPU':>7}{'hold':>7} ms"
    )
    for name, path in PATHS.items():
        found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for turn in range(pages):
            found[turn % 3 == 0].append(await timed(app, http, path, is_new=turn % 3 == 0))
        figures = [figure for is_new in (False, True) for figure in figures_of(found[is_new])]
        hold = await longest_hold(timed(app, http, path, is_new=True))
        widths = (18, 7, 7, 17, 7, 7, 7)
        print(f"{name:<12}" + "".join(f"{1000 * f:>{w}.1f}" for f, w in zip([*figures, hold], widths, strict=True)))


async def timed(app: FastAPI, http: httpx2.AsyncClient, path: str, *, is_new: bool) -> tuple[float, float]:
    """Read a page; give the seconds that it takes, and those of CPU."""
    if is_new:
        app.state.service.catalog.fleet.forget()
    began, cpu = time.perf_counter(), time.process_time()
    (await http.get(path)).raise_for_status()
    return time.perf_counter() - began, time.process_time() - cpu


def figures_of(found: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Give the median and the 99th percentile of the times, and the median of the CPU times."""
    times, cpus = zip(*found, strict=True)
    return median(times), float(np.quantile(times, 0.99)), median(cpus)


async def measure_samples(app: FastAPI, http: httpx2.AsyncClient, streams: int, rounds: int) -> None:
    """Compare the CPU of a sample to each of many streams with that of their summaries, in turns."""
    registry, observed, written = app.state.service.registry, list[float](), list[float]()
    X = np.random.default_rng(0).normal(size=(rounds + 1, 40, 3))
    for number in range(streams):
        await http.post(f"/observe?stream=busy-{number}", json={"samples": X[0].tolist()})
    for turn in range(1, rounds + 1):
        cpu = time.process_time()
        for number in range(streams):
            await http.post(f"/observe?stream=busy-{number}", json={"samples": X[turn, :1].tolist()})
        observed.append((time.process_time() - cpu) / streams)
        cpu = time.process_time()
        await registry.summaries.write(list(registry.sessions.values()))
        written.append((time.process_time() - cpu) / streams)
    sample, summary = 1e6 * median(observed), 1e6 * median(written)
    print(
        f"\nCPU of a request with one sample {sample:.0f} us, of a summary {summary:.0f} us: a stream with a sample a"
    )
    print(f"second, whose summary is written every 5 s, takes {summary / (5 * sample):.1%} more")


async def run(url: str, streams: int, pages: int) -> None:
    """Fill a store and measure."""
    store = open_store(url)
    await store.open()
    await fill(store, streams)
    await store.close()
    app = create_app(Settings(store=url))
    gc.collect()
    gc.freeze()  # as the service does once it has started
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost")
    async with app.router.lifespan_context(app), client as http:
        await measure_pages(app, http, pages)
        await measure_samples(app, http, 200, 9)


def main(argv: list[str]) -> None:
    """Measure lists of streams."""
    parser = argparse.ArgumentParser(prog="bench.lists", description=__doc__)
    parser.add_argument("--store", required=True, help="URL of an empty store: sqlite:///... or redis://...")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=60)
    given = parser.parse_args(argv)
    asyncio.run(run(given.store, given.streams, given.pages))


if __name__ == "__main__":
    main(sys.argv[1:])
