"""`itan replay`: send a labelled file through a service."""

import csv
import json
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Stream, Url, fail, one_line_errors
from app.commands.progress import progress
from app.commands.stopping import INTERRUPTED, StopRequests
from itan_client import Client

if TYPE_CHECKING:
    from app.replay.feed import Outcome


def replay(
    file: Annotated[str, typer.Argument(help="A .csv or .csv.gz file with a header, or - for stdin.")],
    stream: Stream,
    label_column: Annotated[
        str | None, typer.Option(help="Column of the truth: 1 anomalous, 0 normal, empty unknown.")
    ] = None,
    label_delay: Annotated[int, typer.Option(min=0, help="Samples between a sample and its label.")] = 100,
    label_group: Annotated[
        int, typer.Option(min=1, help="Send this many labels at a time, the first of them late: faster, but not exact.")
    ] = 1,
    label_rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of the labels that is sent.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of the labels that are sent.")] = 0,
    final_labels: Annotated[bool, typer.Option(help="At the end, send the labels that are not due yet.")] = True,
    columns: Annotated[
        str, typer.Option(help="Feature columns, comma-separated.", show_default="all numeric ones")
    ] = "",
    drop: Annotated[str, typer.Option(help="Columns to leave out, comma-separated.")] = "",
    timestamp_column: Annotated[
        str | None, typer.Option(help="Column of timestamps: epoch seconds or RFC 3339.", show_default=False)
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="Column of sample ids.", show_default=False)] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Most samples in a request; a label that is due ends the batch.")
    ] = 100,
    first: Annotated[int, typer.Option("--from", min=0, help="Rows to skip at the start.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Most samples to send.", show_default=False)] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue after the newest sample of the stream, if only this file feeds it."),
    ] = False,
    config: Annotated[
        str | None, typer.Option(help="Create the stream first, with this config (JSON).", show_default=False)
    ] = None,
    context: Annotated[
        str, typer.Option(help="Create the stream first; these features, comma-separated, are context.")
    ] = "",
    calendar: Annotated[
        str,
        typer.Option(
            help="Create the stream first, with a calendar of these periods: day, week or seconds, comma-separated. "
            "The times are those of --timestamp-column."
        ),
    ] = "",
    timezone: Annotated[str, typer.Option(help="Time zone of the calendar, such as Europe/Berlin.")] = "UTC",
    url: Url = DEFAULT_URL,
    key: Key = None,
    retry_seconds: Annotated[
        float, typer.Option(min=0, help="If there are ids: how long to repeat a request after a 503 or no answer.")
    ] = 0.0,
    local: Annotated[
        bool, typer.Option("--local", help="Start a service for this replay, and stop it at the end.")
    ] = False,
    store: Annotated[str | None, typer.Option(help="Store of the --local service.", show_default="thrown away")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    scores: Annotated[
        Path | None, typer.Option(help="Write seq, score, threshold, severity, flag, incident, label as CSV.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw scores, threshold, flags and labels (PNG); with context also values and expected band."
        ),
    ] = None,
) -> None:
    """Send a labelled file to a stream, the labels late, and report the results.

    Every numeric column that has no other role is a feature, except those of --drop; the report names them.

    The label of sample t is sent after sample t + delay and before the next, so a batch ends when a label is due.
    Ctrl-C stops after the current request, and reports what was sent.
    """
    from app.replay.feed import Plan
    from app.replay.local import local_service
    from app.replay.plot import draw
    from app.replay.report import format_report
    from app.replay.rows import Columns, open_table
    from app.replay.run import Start, run_replay
    from app.replay.signals import signals_of

    if store and not local:
        raise fail("--store needs --local: a running service has its own store", MISUSED)
    _refuse_absent_folders(scores, plot)
    if plot and find_spec("matplotlib") is None:
        raise fail("--plot needs matplotlib: uv run --extra plot itan replay ...", MISUSED)
    parts = Columns(label_column, timestamp_column, id_column, _names(columns), _names(drop))
    plan = Plan(stream, batch_size, label_delay, label_group, label_rate, seed, limit, final_labels, plot is not None)
    start = Start(first, resume, _full_config(config, context, calendar, timezone, timestamp_column), _names(context))
    service = local_service(store) if local else nullcontext(url)
    with one_line_errors(), StopRequests() as stop, open_table(file, parts) as table, service as address:
        with (
            Client(address, None if local else key, retry_seconds=retry_seconds) as client,
            progress("samples", limit) as posted,
        ):
            outcome, report = run_replay(client, table, plan, start, stop.came, posted)
            signals = signals_of(client, report, outcome) if plot else []
        print(json.dumps(report.to_dict()) if as_json else format_report(report))
        if scores:
            _write_scores(outcome, scores)
        if plot:
            draw(outcome, signals, stream, plot)
    if outcome.stopped:
        raise typer.Exit(INTERRUPTED)


def _refuse_absent_folders(*paths: Path | None) -> None:
    """Fail before anything is sent, not when there is something to write."""
    for path in paths:
        if path and not path.parent.is_dir():
            raise fail(f"there is no folder {path.parent} to write {path.name} to", MISUSED)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _config(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        config = json.loads(text)
    except ValueError as error:
        raise fail(f"--config is not JSON: {error}", MISUSED) from None
    if not isinstance(config, dict):
        raise fail("--config must be a JSON object", MISUSED)
    return config


def _full_config(
    text: str | None, context: str, calendar: str, timezone: str, timestamp_column: str | None
) -> dict[str, Any] | None:
    """Give the config of a stream that is to be created: that of --config, with the calendar; None for no stream."""
    config = _config(text)
    if context and config and not {"features", "n_features"}.isdisjoint(config):
        raise fail("--context needs a --config without features: give their roles there", MISUSED)
    if not calendar:
        return {} if config is None and context else config
    if config and "calendar" in config:
        raise fail("--calendar needs a --config without a calendar", MISUSED)
    if timestamp_column is None:
        raise fail("--calendar needs --timestamp-column, the column of the times", MISUSED)
    return {**(config or {}), "calendar": {"periods": _periods(calendar), "timezone": timezone}}


def _periods(text: str) -> list[str | float]:
    periods: list[str | float] = []
    for name in _names(text):
        try:
            periods.append(float(name))
        except ValueError:
            periods.append(name)
    return periods


def _write_scores(outcome: "Outcome", path: Path) -> None:
    said = (outcome.seq, outcome.score, outcome.threshold, outcome.severity)
    columns = (*said, map(int, outcome.flag), outcome.incident, outcome.label)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["seq", "score", "threshold", "severity", "flag", "incident", "label"])
        # csv writes a float by repr, which reads back as the same float
        writer.writerows(
            (*cells, None if label is None else int(label)) for *cells, label in zip(*columns, strict=True)
        )
