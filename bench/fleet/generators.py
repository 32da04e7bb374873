"""The processes that send the load, so that its CPU is counted apart."""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from bench.fleet.load import Load, Outcome, run
from bench.fleet.plan import NotMeasured

ENDED: Final = "a process that sent the load has ended: what it said stands above"
PER_SECOND: Final = 1000
"""Requests that one process sends a second with ease."""
SPAWN: Final = multiprocessing.get_context("spawn")


class Generators:
    """Processes that share a load, every so many-th request each."""

    def __init__(self, pipes: Sequence["Connection[Load, Outcome]"]) -> None:
        self._pipes = pipes

    def start(self, load: Load) -> None:
        """Begin to send a load."""
        count = len(self._pipes)
        for k, pipe in enumerate(self._pipes):
            begin = load.begin + k * load.spacing
            part = replace(load, requests=load.requests[k::count], begin=begin, spacing=count * load.spacing)
            pipe.send(part)

    def finish(self) -> Outcome:
        """Wait for all answers. Raises NotMeasured if a generator has ended."""
        try:
            return together([pipe.recv() for pipe in self._pipes])
        except EOFError as error:
            raise NotMeasured(ENDED) from error


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Join what became of the parts of a load."""
    return Outcome(
        [due for outcome in outcomes for due in outcome.due],
        [latency for outcome in outcomes for latency in outcome.latencies],
        [late for outcome in outcomes for late in outcome.lateness],
        sum(outcome.retries for outcome in outcomes),
        sum(outcome.failed for outcome in outcomes),
        set().union(*(outcome.failures for outcome in outcomes)),
        sum(outcome.cpu_seconds for outcome in outcomes),
    )


@contextmanager
def generating(per_second: float) -> Iterator[Generators]:
    """Run as many generators as a load needs, on no more than half of the processors but one at least."""
    count = max(1, min(round(per_second / PER_SECOND), (os.cpu_count() or 2) // 2))
    ends = [SPAWN.Pipe() for _ in range(count)]
    processes = [SPAWN.Process(target=_serve, args=(theirs,), daemon=True) for _, theirs in ends]
    for process, (_, theirs) in zip(processes, ends, strict=True):
        process.start()
        theirs.close()  # so that the end of a generator is noticed
    try:
        yield Generators([ours for ours, _ in ends])
    finally:
        for process in processes:
            process.kill()
            process.join()


def _serve(pipe: "Connection[Outcome, Load]") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            load = pipe.recv()
        except EOFError:
            return
        pipe.send(run(load))
