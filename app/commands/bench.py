"""`itan bench`: the paper's experiments, today's peers, public benchmarks, and CPU per sample and per request."""

import json
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.connection import MISUSED, fail
from app.commands.stopping import INTERRUPTED

if TYPE_CHECKING:
    from bench.tables import Table

bench = typer.Typer(help="Run the benchmarks; every run is seeded.", no_args_is_help=True)


class VehicleScaling(StrEnum):
    """How the features of experiment 3 are scaled."""

    ZSCORE = "zscore"
    MINMAX = "minmax"
    NONE = "none"


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run only a small part, to test the benchmark itself.")]


@bench.callback()
def single_threaded() -> None:
    """Limit the linear algebra to one thread, as `itan serve` does; numpy reads this once, at its import."""
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")


@bench.command()
def paper(
    as_json: AsJson = False,
    quick: Quick = False,
    scaling: Annotated[
        VehicleScaling, typer.Option(help="Scaling of the features of experiment 3.")
    ] = VehicleScaling.ZSCORE,
    figures: Annotated[Path | None, typer.Option(help="Draw the figures into this folder (PNG).")] = None,
) -> None:
    """Run the paper's experiments with its opponents, and print its figures beside those of this run."""
    if figures and find_spec("matplotlib") is None:
        raise fail("--figures needs matplotlib: uv run --extra plot itan bench paper ...", MISUSED)
    from bench.paper.experiments import run_experiments
    from bench.paper.report import NO_VEHICLE, table_of

    experiments, tables = [], []
    for experiment in run_experiments(quick=quick, scaling=scaling.value):
        experiments.append(experiment)
        tables.append(table_of(experiment, scaling.value))
        _show(tables[-1:], as_json)
    remarks = [] if len(experiments) == 3 else [NO_VEHICLE]
    _finish(tables, remarks, as_json)
    if figures:
        from bench.paper.figures import draw_all

        draw_all(experiments, figures)


@bench.command()
def peers(
    as_json: AsJson = False,
    quick: Quick = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of .csv(.gz) streams with a column `label`.", exists=True, file_okay=False),
    ] = None,
    rows: Annotated[int, typer.Option(min=100, help="Most rows of each stream.")] = 2500,
    budget_seconds: Annotated[
        float, typer.Option(min=0.1, help="CPU time that a detector may spend on a stream.")
    ] = 30.0,
) -> None:
    """Run today's streaming detectors beside ours, on experiments 1 and 2 and on a folder of labelled files."""
    from bench.peers.run import QUICK_ROWS, compare, tables_of

    results = list(compare(data, rows=QUICK_ROWS if quick else rows, budget_seconds=budget_seconds))
    tables = tables_of(results, budget_seconds)
    if as_json:
        notes = [note for table in tables for note in table.notes]
        print(json.dumps({"results": [result.to_dict() for result in results], "notes": notes}, indent=2))
    else:
        _show(tables, as_json)


@bench.command()
def everyday(
    only: Annotated[
        list[str] | None, typer.Option(help="Run only this situation; can be repeated.", show_default=False)
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of streams of each situation.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first stream.")] = 0,
    peers: Annotated[bool, typer.Option(help="Also run the peers.")] = True,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes that share the work.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Run everyday situations in raw units: recall, false alarms, storms, delay and cost, beside simple peers."""
    from bench.everyday.paired import paired_table, run_paired
    from bench.everyday.run import run, table_of
    from bench.everyday.situation import CONTEXTS, SITUATIONS

    known = {**SITUATIONS, **CONTEXTS}
    if unknown := [name for name in only or () if name not in known]:
        raise fail(f"no situation is called {unknown[0]!r}; there are: {', '.join(known)}", MISUSED)
    chosen, names = range(first_seed, first_seed + seeds), only or known
    results = list(run([n for n in names if n in SITUATIONS], chosen, peers=peers, jobs=jobs))
    pairs = list(run_paired([n for n in names if n in CONTEXTS], chosen, peers=peers, jobs=jobs))
    tables = [table(found) for table, found in ((table_of, results), (paired_table, pairs)) if found]
    if as_json:
        print(json.dumps({"results": [result.to_dict() for result in (*results, *pairs)]}, indent=2))
    else:
        _show(tables, as_json)


@bench.command()
def nab(
    folder: Annotated[Path, typer.Argument(help="A checkout of github.com/numenta/NAB.", exists=True, file_okay=False)],
    as_json: AsJson = False,
    quick: Quick = False,
) -> None:
    """Run the Numenta Anomaly Benchmark, and check the scorer against the published results."""
    from bench.nab.run import run

    try:
        tables = run(folder, limit=1 if quick else None)
    except (OSError, KeyError, ValueError) as error:
        raise fail(f"{folder} is not a checkout of the benchmark: {error}", MISUSED) from error
    _show(tables, as_json)
    _finish(tables, [], as_json)


@bench.command()
def speed(as_json: AsJson = False, quick: Quick = False) -> None:
    """Measure the CPU of a sample by our profiles and by river's HalfSpaceTrees, one by one and in batches."""
    from bench.speed import measure

    table = measure(rounds=1, training=200, singles=50, batch=200) if quick else measure()
    _show([table], as_json)
    _finish([table], [], as_json)


@bench.command()
def http(as_json: AsJson = False, quick: Quick = False) -> None:
    """Measure the CPU of a request: /observe on each store, beside a bare FastAPI echo."""
    from bench.http import measure

    table = measure(turns=1, training=100, requests=20) if quick else measure()
    _show([table], as_json)
    _finish([table], [], as_json)


@bench.command()
def ingest(as_json: AsJson = False, quick: Quick = False) -> None:
    """Measure the CPU of records of a thousand streams, beside as many samples of one stream."""
    from bench.ingest import measure

    table = measure(turns=1, training=100, streams=20) if quick else measure()
    _show([table], as_json)
    _finish([table], [], as_json)


@bench.command()
def hostile(
    only: Annotated[
        list[str] | None, typer.Option(help="Run only this load; can be repeated.", show_default=False)
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(help="Checkout of another version to run beside this one.", exists=True, file_okay=False),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each load runs.")] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Measure how long small requests wait beside hostile clients."""
    from bench.hostile.loads import LOADS
    from bench.hostile.run import measure, together

    if unknown := set(only or ()) - set(LOADS):
        raise fail(f"no such load: {', '.join(sorted(unknown))}; there are {', '.join(LOADS)}", MISUSED)
    tables = []
    for table in measure(only or list(LOADS), before, seconds):
        tables.append(table)
        if not as_json:
            print(table.title, "is measured", flush=True)
    _show([together(tables)], as_json)
    _finish([together(tables)], [], as_json)


@bench.command()
def fleet(
    streams: Annotated[int, typer.Option(min=1, help="Open streams.")] = 1000,
    per_minute: Annotated[float, typer.Option(min=0.001, help="Samples of each stream a minute.")] = 1.0,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Samples a request.")] = 1,
    features: Annotated[int, typer.Option("--features", "-m", min=1, max=256, help="Features of a sample.")] = 4,
    workers: Annotated[int, typer.Option(min=1, help="Processes that serve the streams; 1 on SQLite.")] = 1,
    store: Annotated[
        str,
        typer.Option(
            help="redis or sqlite: a new one, for this run; or the URL of one that is there, where the streams"
            " bench-fleet-* are deleted at the end."
        ),
    ] = "redis",
    seconds: Annotated[float, typer.Option(min=1, help="Time of the steady load.")] = 60.0,
    as_json: AsJson = False,
    quick: Quick = False,
) -> None:
    """Measure what a fleet takes of workers and store: CPU, memory, latencies, cold starts, the death of a worker.

    The workers take the ITAN_ settings of the environment.
    """
    from app.storage import StoreError
    from bench.fleet.plan import NotMeasured, Plan
    from bench.fleet.report import tables
    from bench.fleet.run import run
    from bench.fleet.stores import NoStore

    plan = Plan(streams, per_minute, batch, features, workers, store, seconds)
    try:
        found = run(plan.cut() if quick else plan, lambda text: print(text, file=sys.stderr, flush=True))
    except (NoStore, ValueError) as error:
        raise fail(str(error), MISUSED) from error
    except (NotMeasured, StoreError) as error:
        raise fail(str(error)) from error
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    _show(tables(found), as_json)
    _finish(tables(found), [], as_json)


def _show(tables: "Iterable[Table]", as_json: bool) -> None:
    """Print each table at once, unless the output is one JSON document."""
    if not as_json:
        for table in tables:
            print(table.to_markdown(), flush=True)


def _finish(tables: "Iterable[Table]", remarks: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"tables": [table.to_dict() for table in tables], "remarks": remarks}, indent=2))
    else:
        print(*remarks, sep="\n", end="\n" if remarks else "")
