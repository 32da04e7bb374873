"""Runs a fleet: opens its streams, loads it, lets it rest, starts new streams, kills a worker, starts it again."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from math import ceil
from secrets import token_hex

import numpy as np

from app.settings import Settings
from bench.fleet import direct, seeding
from bench.fleet.generators import Generators, generating
from bench.fleet.load import CONNECTIONS, Load, Outcome, Request
from bench.fleet.phases import Phase, measure, wait_for_snapshots
from bench.fleet.plan import NotMeasured, Plan
from bench.fleet.stores import FleetStore, NoStore, keeping
from bench.fleet.workers import Worker, serving
from bench.speed import clusters

BODIES = 256
BEGIN_SECONDS = 0.1
"""Until then the generators have their load."""
COLD_CONNECTIONS = 4
SETTLING_SECONDS = 60.0
LEASE_ALLOWANCE_SECONDS = 3.0
NOT_ANSWERED = "{} first requests were not answered with 200 but with {} (0: not at all)"


@dataclass(slots=True)
class Found:
    """What was measured."""

    plan: Plan
    lease_seconds: float
    snapshot_bytes: int
    load_before: float
    empty_rss: float = 0.0
    filled_bytes: float = 0.0
    phases: dict[str, Phase] = field(default_factory=dict)
    store_costs: direct.StoreCosts | None = None
    elsewhere_seconds: float | None = None
    """From the death of a worker until all requests were answered that came for its streams before its leases ended."""


def run(plan: Plan, say: Callable[[str], None]) -> Found:
    """Measure a fleet. Raises NoStore, NotMeasured. However it ends, the processes that it started end too."""
    with _terminable(), ExitStack() as stack:
        store = stack.enter_context(keeping(plan.store))
        if plan.workers > 1 and not store.is_shared:
            raise NoStore("SQLite serves one worker: --workers 1, or another --store")
        generators = stack.enter_context(generating(plan.streams / plan.interval))
        return Fleet(plan, store, generators, stack, say).run()


@contextmanager
def _terminable() -> Iterator[None]:
    """End in good order on SIGTERM, as on Ctrl-C."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Fleet:
    """The streams of a run, and the workers that serve them."""

    def __init__(
        self, plan: Plan, store: FleetStore, generators: Generators, stack: ExitStack, say: Callable[[str], None]
    ) -> None:
        self._plan, self._store, self._generators, self._stack, self._say = plan, store, generators, stack, say
        self._run = f"bench-fleet-{token_hex(4)}"
        self._names = [f"{self._run}-{i:06d}" for i in range(plan.streams)]
        self._cold = [f"{self._run}-cold-{i:03d}" for i in range(plan.cold_streams)]
        self._scratch = [f"{self._run}-scratch-{i:02d}" for i in range(direct.STREAMS)]
        self._workers: list[Worker] = []
        self._homes = {name: i % plan.workers for i, name in enumerate(self._names)}
        self._homes |= {name: i % plan.workers for i, name in enumerate(self._cold)}
        X = clusters(seeding.SEED + 1, BODIES * plan.batch, plan.features)
        self._bodies = [json.dumps({"samples": rows.tolist()}).encode() for rows in np.split(X, BODIES)]
        model = seeding.model(plan.features, plan.training)
        self._model = model
        self._found = Found(plan, Settings().lease_seconds, len(model.body), os.getloadavg()[0])

    def run(self) -> Found:
        """Run all phases."""
        if not self._store.is_own:
            self._stack.callback(self._clear)
        self._fill()
        self._workers = [self._start(f"{self._run}-{k}") for k in range(self._plan.workers)]
        self._found.empty_rss = max(worker.rss_bytes() for worker in self._workers)
        self._phase("empty", lambda: time.sleep(self._plan.seconds / 6))
        self._open()
        self._load()
        self._rest()
        self._begin_cold()
        if self._store.is_shared:
            self._die()
        self._restart()
        self._stop()
        self._say("calls of the store")
        self._found.store_costs = direct.measure(self._store, self._names[0], self._scratch)
        return self._found

    def _fill(self) -> None:
        self._say(f"{self._plan.streams} streams are put into the store")
        before = self._store.figures().used_bytes
        asyncio.run(seeding.fill(self._store.url, self._names, self._model))
        self._found.filled_bytes = self._store.figures().used_bytes - before

    def _clear(self) -> None:
        """Delete the streams of this run from a store that stays."""
        self._say("its streams are deleted")
        names = [*self._names, *self._cold, *self._scratch]
        asyncio.run(seeding.empty(self._store.url, names, self._found.lease_seconds))

    def _start(self, name: str) -> Worker:
        return self._stack.enter_context(serving(name, self._store.url))

    def _open(self) -> None:
        """Ask for every stream once: each is loaded."""
        spacing = self._plan.opening_seconds / self._plan.streams
        outcome = self._phase("open", lambda: self._send(self._requests(self._names), spacing))
        if outcome.failed:
            raise NotMeasured(NOT_ANSWERED.format(outcome.failed, sorted(outcome.failures)))

    def _load(self) -> None:
        """Ask at the stated rate."""
        spacing = self._plan.interval / self._plan.streams
        requests = list(islice(cycle(self._requests(self._names)), max(1, round(self._plan.seconds / spacing))))
        self._phase("steady", lambda: self._send(requests, spacing))

    def _rest(self) -> None:
        """Ask for nothing, once the snapshots of what came before are stored."""
        wait_for_snapshots(self._workers, SETTLING_SECONDS)
        self._phase("idle", lambda: time.sleep(self._plan.seconds / 2))

    def _begin_cold(self) -> None:
        """Bring up new streams as fast as the workers can."""
        rounds = ceil(self._plan.cold_samples / self._plan.batch)
        requests = [request for _ in range(rounds) for request in self._requests(self._cold)]
        self._phase("cold", lambda: self._send(requests, 0.0, connections=COLD_CONNECTIONS))

    def _die(self) -> None:
        """Kill a worker; others serve its streams, each asked for at its own pace, once its leases are over."""
        if self._plan.workers == 1:
            self._workers.append(self._start(f"{self._run}-1"))
        names = [name for name in self._names if self._homes[name] == 0]
        self._homes |= {name: 1 + k % (len(self._workers) - 1) for k, name in enumerate(names)}
        spacing = self._plan.opening_seconds / len(names)
        least = ceil((self._found.lease_seconds + LEASE_ALLOWANCE_SECONDS) / spacing)
        requests = list(islice(cycle(self._requests(names)), max(len(names), least)))
        outcome = self._phase("death", lambda: self._send(requests, spacing, kill=0), self._workers[1:])
        killed_at = min(outcome.due)
        self._found.elsewhere_seconds = outcome.last_answer(killed_at + self._found.lease_seconds) - killed_at

    def _restart(self) -> None:
        """Kill a worker and start it under its own name; all its streams are asked for at once."""
        place = len(self._workers) - 1
        self._workers[place] = self._restarted(self._workers[place])
        names = [name for name in self._names if self._homes[name] == place]
        self._phase("at once", lambda: self._send(self._requests(names), 0.0), self._workers[place:])

    def _restarted(self, worker: Worker) -> Worker:
        os.kill(worker.pid, signal.SIGKILL)
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # an SQLite file is locked until then
        return self._start(worker.name)

    def _stop(self) -> None:
        """Kill all workers: the store is theirs no more."""
        for worker in self._workers:
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
                os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)

    def _requests(self, names: Sequence[str]) -> list[Request]:
        return [(name, (self._homes[name],)) for name in names]

    def _send(
        self, requests: Sequence[Request], spacing: float, *, connections: int = CONNECTIONS, kill: int | None = None
    ) -> Outcome:
        """Send a load, kill a worker as it begins if so wanted, and wait for all answers."""
        begin = time.monotonic() + BEGIN_SECONDS
        addresses = [worker.address for worker in self._workers]
        self._generators.start(Load(requests, addresses, self._bodies, begin, spacing, connections))
        if kill is not None:
            time.sleep(max(0.0, begin - time.monotonic()))
            os.kill(self._workers[kill].pid, signal.SIGKILL)
        return self._generators.finish()

    def _phase(self, name: str, do: Callable[[], Outcome | None], workers: Sequence[Worker] | None = None) -> Outcome:
        self._say(name)
        phase = measure(name, workers or self._workers, self._store, self._plan.batch, do)
        self._found.phases[name] = phase
        return phase.outcome
