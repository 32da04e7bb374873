"""What a run has shown, as tables: its phases, the constants of sizing, and the commands of Redis."""

import os
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from bench.fleet.phases import Phase
from bench.fleet.run import Found
from bench.tables import Cell, Column, Table, versions

LATE_SECONDS: Final = 0.1
BEHIND: Final = "the load fell behind its schedule ({}): the generators were late by {:.2f} s (p99)"
COMMANDS_SHOWN: Final = 8

PHASES: Final = (
    Column("phase", "phase"),
    Column("seconds", "s", ".1f"),
    Column("requests", "requests", ",d"),
    Column("cores", "worker cores, busiest", ".3f"),
    Column("rss", "its MB", ",.0f"),
    Column("store_cores", "store cores", ".3f"),
    Column("store_mb", "store MB", ",.0f"),
    Column("log_mb", "log file MB", ",.1f"),
    Column("snapshots", "snapshots", ",.0f"),
    Column("p50", "p50 ms", ",.1f"),
    Column("p99", "p99 ms", ",.1f"),
    Column("max", "max ms", ",.0f"),
    Column("retries", "retries", ",d"),
    Column("failed", "failed", ",d"),
    Column("load", "cores of the load", ".2f"),
)
APART: Final = "Requests and openings: without snapshots, and without what workers and open streams take at rest."
CONSTANTS: Final = (Column("constant", "constant"), Column("value", "value", ",.3g"), Column("unit", "unit"))
COMMANDS: Final = (
    Column("command", "command"),
    Column("rate", "a second", ",.1f"),
    Column("us", "us each", ".1f"),
    Column("cores", "cores", ".4f"),
)


def tables(found: Found) -> list[Table]:
    """Give all tables."""
    made = [_phases(found), _constants(found)]
    return made + ([_commands(found.phases["steady"])] if found.phases["steady"].commands else [])


def _phases(found: Found) -> Table:
    plan = found.plan
    title = (
        f"{plan.streams:,} streams, m = {plan.features}, {plan.per_minute:g} samples a minute each,"
        f" {plan.batch} a request, workers: {plan.workers}"
    )
    return Table(title, PHASES, [_row(phase) for phase in found.phases.values()], [*_notes(found), *_warnings(found)])


def _row(phase: Phase) -> dict[str, Cell]:
    outcome, busiest = phase.outcome, int(np.argmax(phase.worker_cpu))
    ms = 1e3 * np.array(outcome.latencies)
    row: dict[str, Cell] = {
        "phase": phase.name,
        "seconds": phase.seconds,
        "requests": phase.requests,
        "cores": phase.worker_cpu[busiest] / phase.seconds,
        "rss": phase.worker_rss[busiest] / 1e6,
        "store_cores": phase.store_cpu / phase.seconds,
        "store_mb": phase.store.used_bytes / 1e6,
        "log_mb": phase.log_file_bytes / 1e6,
        "snapshots": phase.snapshots,
    }
    if phase.requests:
        row |= {"p50": float(np.quantile(ms, 0.5)), "p99": float(np.quantile(ms, 0.99)), "max": float(ms.max())}
        row |= {"retries": outcome.retries, "failed": outcome.failed, "load": outcome.cpu_seconds / phase.seconds}
    return row


def _constants(found: Found) -> Table:
    rows: list[dict[str, Cell]] = [
        {"constant": name, "value": value, "unit": unit} for name, value, unit in constants(found)
    ]
    return Table("Constants of sizing", CONSTANTS, rows, [APART])


def constants(found: Found) -> Iterator[tuple[str, float, str]]:
    """Give each constant with its unit."""
    plan, phases, costs = found.plan, found.phases, found.store_costs
    assert costs is not None
    opened, steady, idle, cold, again = (phases[name] for name in ("open", "steady", "idle", "cold", "at once"))

    def apart(phase: Phase) -> float:
        """CPU of the workers without snapshots."""
        return phase.cpu_seconds - phase.snapshots * costs.written_seconds

    empty = phases["empty"].cpu_seconds / phases["empty"].seconds
    at_rest = max(0.0, apart(idle) / idle.seconds - empty) / plan.streams
    request = max(0.0, apart(steady) - (at_rest * plan.streams + empty) * steady.seconds) / steady.requests

    def beyond(phase: Phase, streams: int) -> float:
        """What a phase took beyond its requests and the streams at rest."""
        return max(0.0, apart(phase) - phase.requests * request - (at_rest * streams + empty) * phase.seconds)

    yield "worker, a request", 1e3 * request, "CPU ms"
    yield "worker, a snapshot", 1e3 * costs.written_seconds, "CPU ms"
    yield "worker, a second of an open stream at rest", 1e6 * at_rest, "CPU us"
    yield "worker, opening a stream", 1e3 * beyond(opened, plan.streams // 2) / plan.streams, "CPU ms"
    yield "worker, opening a stream after a crash", 1e3 * beyond(again, again.requests // 2) / again.requests, "CPU ms"
    first = f"worker, the first {plan.cold_samples:,} samples of a new stream"
    yield first, beyond(cold, plan.streams) / plan.cold_streams, "CPU s"
    yield "worker, an open stream", (sum(opened.worker_rss) - plan.workers * found.empty_rss) / plan.streams / 1e3, "kB"
    yield "worker, without streams", found.empty_rss / 1e6, "MB"
    yield "worker, a second without streams", 1e3 * empty / plan.workers, "CPU ms"
    yield "snapshots at the steady rate", steady.snapshots / steady.seconds, "a second"
    yield "store, an append", 1e6 * costs.append_seconds, "CPU us"
    yield "store, a snapshot", 1e6 * costs.snapshot_seconds, "CPU us"
    yield "store, the renewal of a lease", 1e6 * costs.renewal_seconds, "CPU us"
    yield "store, a stream without a log", found.filled_bytes / plan.streams / 1e3, "kB"
    yield "store, the body of a snapshot", found.snapshot_bytes / 1e3, "kB"
    yield "store, a logged sample that is in no block yet", costs.sample_bytes, "bytes"
    if found.elsewhere_seconds is not None:
        yield "death of a worker, until all requests of its lease were answered", found.elsewhere_seconds, "s"
        yield "lease", found.lease_seconds, "s"
    yield "opening, p99 of first requests", float(np.quantile(opened.outcome.latencies, 0.99)), "s"


def _commands(steady: Phase) -> Table:
    """Give the commands that took most of the time of Redis; a script's time includes its commands'."""
    most = sorted(steady.commands.items(), key=lambda item: -item[1][1])[:COMMANDS_SHOWN]
    rows: list[dict[str, Cell]] = [
        {
            "command": name,
            "rate": calls / steady.seconds,
            "us": 1e6 * seconds / calls,
            "cores": seconds / steady.seconds,
        }
        for name, (calls, seconds) in most
    ]
    return Table("Commands of Redis at the steady rate", COMMANDS, rows, ["A script (evalsha) includes its commands."])


def _notes(found: Found) -> Sequence[str]:
    return (
        f"All streams are copies of one that has learned {found.plan.training:,} samples; {os.cpu_count()} processors,"
        f" load {found.load_before:.1f} before and {os.getloadavg()[0]:.1f} after.",
        "empty: no stream is open; open: each is asked for once; idle: nothing is asked; cold: new streams, as fast as"
        " it goes; death: a worker is killed, its streams are asked for at others; at once: a worker is killed and"
        " started again, and all its streams are asked for at once.",
        f"{versions('fastapi', 'uvicorn', 'numpy')}.",
    )


def _warnings(found: Found) -> Iterator[str]:
    """Say where the figures are not to be trusted."""
    for name in ("open", "steady", "death"):
        if name in found.phases and (late := found.phases[name].outcome.lateness):
            behind = float(np.quantile(late, 0.99))
            if behind > LATE_SECONDS:
                yield BEHIND.format(name, behind)
    failing = {name: phase.outcome.failed for name, phase in found.phases.items() if phase.outcome.failed}
    yield from (f"{failed} requests were not answered ({name})" for name, failed in failing.items())
