"""What rules cost /observe: CPU of the service with and without them, where streams have incidents now and then.

python -m bench.notices [streams]
"""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx2
import numpy as np

from bench.servers import Client, cpu_seconds, serving
from itan_client import Client as Service

MODEL: Final = "model"
TRAINING: Final = 300
PAIRS: Final = 12
SAMPLES: Final = 1_500
"""Of so many streams, one each, in each half of a pair."""
PHASES: Final = 64
INCIDENTS: Final = 1 / 1440
"""An incident a day of each stream, where a sample comes each minute; those that are false alarms come on top."""
FAR: Final = 20.0
RULES: Final = 50
FOLLOW_SECONDS, TELL_SECONDS, IDLE_SECONDS = 7.0, 3.0, 15.0


class Receiver:
    """Counts notices."""

    def __init__(self) -> None:
        self.count, self.port = 0, 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a notice."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        self.count += 1
        writer.write(b"HTTP/1.1 204 Done\r\nContent-Length: 0\r\n\r\n")
        writer.close()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver in a thread."""
    receiver, loop = Receiver(), asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(receiver.take, "127.0.0.1", 0))
    receiver.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def put_rules(service: Service, port: int) -> None:
    """Make rules of which two are for each stream."""
    rule = {"target": "chat", "url": f"http://127.0.0.1:{port}/"}
    for n in range(RULES):
        streams = "*" if n == 0 else f"s{n - 1}*" if n <= 10 else f"other-{n}-*"
        service.put_rule(f"r{n}", rule | {"streams": streams})


def delete_rules(service: Service) -> None:
    """Delete all rules."""
    for name in service.rules():
        service.delete_rule(name)


def send(http: httpx2.Client, rng: np.random.Generator, n_streams: int) -> None:
    """Send a sample to each of some streams, one a request."""
    samples = rng.normal(size=(SAMPLES, 2)) + FAR * (rng.random((SAMPLES, 1)) < INCIDENTS)
    for k, x in zip(rng.permutation(n_streams)[:SAMPLES], samples.tolist(), strict=False):
        http.post(f"/observe?stream=s{k}", json={"samples": [x]}).raise_for_status()


def prepare(service: Service, n_streams: int, rng: np.random.Generator) -> None:
    """Make streams and open them: copies of one, taken at different samples, so that not all learn at once."""
    service.observe(MODEL, rng.normal(size=(TRAINING, 2)))
    for k in range(n_streams):
        if k % (n_streams // PHASES + 1) == 0:
            service.observe(MODEL, rng.normal(size=(1, 2)))
        service.clone(MODEL, f"s{k}")
    for part in np.array_split(np.arange(n_streams), n_streams // 500 + 1):
        service.ingest([{"stream": f"s{k}", "sample": rng.normal(size=2).tolist()} for k in part], answer="counts")


def measured(client: Client, n_streams: int, receiver: Receiver) -> None:
    """Print the CPU of each pair, and what it says in all."""
    rng, ratios, told = np.random.default_rng(0), list[float](), 0
    with Service(client.url) as service, httpx2.Client(base_url=client.url, timeout=60, trust_env=False) as http:
        prepare(service, n_streams, rng)
        for turn in range(PAIRS):
            seconds = {}
            for with_rules in (False, True) if turn % 2 else (True, False):
                delete_rules(service)
                if with_rules:
                    put_rules(service, receiver.port)
                time.sleep(FOLLOW_SECONDS)
                before, came = cpu_seconds(client.pid), receiver.count
                send(http, rng, n_streams)
                time.sleep(TELL_SECONDS)
                seconds[with_rules] = cpu_seconds(client.pid) - before
                told += receiver.count - came
            ratios.append(seconds[True] / seconds[False] - 1)
            print(f"pair {turn}: {1e6 * seconds[False] / SAMPLES:.0f} us a request, {ratios[-1]:+.2%}", flush=True)
        error = np.std(ratios, ddof=1) / len(ratios) ** 0.5
        print(f"{n_streams} streams: rules cost {np.mean(ratios):+.2%} +- {error:.2%}")
        print(f"{told} notices in {PAIRS * SAMPLES} requests with rules", flush=True)
        for with_rules in (True, False):
            delete_rules(service)
            if with_rules:
                put_rules(service, receiver.port)
            time.sleep(FOLLOW_SECONDS)
            before = cpu_seconds(client.pid)
            time.sleep(IDLE_SECONDS)
            used = (cpu_seconds(client.pid) - before) / IDLE_SECONDS
            print(f"idle, {'with' if with_rules else 'without'} rules: {1e3 * used:.2f} ms CPU a second")


def main(n_streams: int) -> None:
    """Run it on SQLite."""
    with TemporaryDirectory() as folder, receiving() as receiver:
        # without snapshots, which would fall into later halves; they make requests dearer, and the share of rules less
        settings = {"ITAN_SNAPSHOT_EVERY_SECONDS": "86400", "ITAN_MEMORY_BUDGET_MB": "8192"}
        settings |= {"ITAN_NOTICES_ALLOW_PRIVATE": "true"}
        with serving(f"sqlite:///{Path(folder) / 'itan.db'}", **settings) as client:
            measured(client, n_streams, receiver)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
