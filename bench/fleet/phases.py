"""One phase of a run: what workers and store took while something was sent, or nothing."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.fleet.load import Outcome
from bench.fleet.stores import Figures, FleetStore
from bench.fleet.workers import Worker

NOTHING = Outcome()
SNAPSHOTS = "itan_snapshots_total"


@dataclass(frozen=True, slots=True)
class Phase:
    """What was taken in `seconds`: CPU seconds of each worker and of the store; memory is as of the end."""

    name: str
    seconds: float
    samples: int
    outcome: Outcome
    worker_cpu: Sequence[float]
    worker_rss: Sequence[int]
    snapshots: float
    store_cpu: float
    store: Figures
    commands: Mapping[str, tuple[int, float]]
    log_file_bytes: int

    @property
    def requests(self) -> int:
        """Count the requests that were answered."""
        return len(self.outcome.latencies)

    @property
    def cpu_seconds(self) -> float:
        """Give the CPU of all workers."""
        return sum(self.worker_cpu)


def measure(
    name: str, workers: Sequence[Worker], store: FleetStore, batch: int, do: Callable[[], Outcome | None]
) -> Phase:
    """Do something, and measure these workers and the store meanwhile."""
    snapshots, figures = _snapshots(workers), store.figures()
    began, cpu = time.monotonic(), [worker.cpu_seconds() for worker in workers]
    outcome = do() or NOTHING
    taken = [worker.cpu_seconds() - before for worker, before in zip(workers, cpu, strict=True)]
    seconds, after = time.monotonic() - began, store.figures()
    return Phase(
        name,
        seconds,
        batch * len(outcome.latencies),
        outcome,
        taken,
        [worker.rss_bytes() for worker in workers],
        _snapshots(workers) - snapshots,
        after.cpu_seconds - figures.cpu_seconds,
        after,
        _since(figures.commands, after.commands),
        after.log_file_bytes - figures.log_file_bytes,
    )


def wait_for_snapshots(workers: Sequence[Worker], most_seconds: float) -> None:
    """Wait until a second goes by without a snapshot, but not for ever."""
    end, before = time.monotonic() + most_seconds, -1.0
    while (stored := _snapshots(workers)) != before and time.monotonic() < end:
        before = stored
        time.sleep(1.0)


def _snapshots(workers: Sequence[Worker]) -> float:
    return sum(worker.counters().get(SNAPSHOTS, 0.0) for worker in workers)


def _since(
    before: Mapping[str, tuple[int, float]], after: Mapping[str, tuple[int, float]]
) -> dict[str, tuple[int, float]]:
    """Give what came to the calls and seconds of each command."""
    return {
        name: (calls - before.get(name, (0, 0.0))[0], seconds - before.get(name, (0, 0.0))[1])
        for name, (calls, seconds) in after.items()
        if calls > before.get(name, (0, 0.0))[0]
    }
