"""`itan replay`: send a labelled file through a service."""

import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Url, fail, one_line_errors
from app.commands.meanings import (
    DroppedColumns,
    Encoding,
    FeatureColumns,
    Header,
    IdColumn,
    LabelColumn,
    LabelValues,
    Separator,
    TimestampColumn,
    TimestampUnit,
    Timezone,
    encoding_of,
    label_values_of,
    zone_of,
)
from app.commands.progress import progress
from app.commands.stopping import INTERRUPTED, StopRequests
from itan_client import Client

LOCAL_STREAM: Final = "replay"


def replay(
    file: Annotated[str, typer.Argument(help="A .csv or .csv.gz file with a header, or - for stdin.")],
    stream: Annotated[
        str | None, typer.Option("--stream", "-s", help="Id of the stream.", show_default=f"{LOCAL_STREAM}, if --local")
    ] = None,
    label_column: LabelColumn = None,
    label_values: LabelValues = None,
    label_delay: Annotated[int, typer.Option(min=0, help="Samples between a sample and its label.")] = 100,
    label_every: Annotated[
        int, typer.Option(min=1, help="Send the labels that are due after every so many samples.")
    ] = 100,
    exact_delay: Annotated[
        bool, typer.Option("--exact-delay", help="Send each label just when it is due: exact, and much slower.")
    ] = False,
    label_rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of the labels that is sent.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice of the labels that are sent.")] = 0,
    final_labels: Annotated[bool, typer.Option(help="At the end, send the labels that are not due yet.")] = True,
    columns: FeatureColumns = "",
    drop: DroppedColumns = "",
    timestamp_column: TimestampColumn = None,
    timestamp_unit: TimestampUnit = None,
    timezone: Timezone = None,
    id_column: IdColumn = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    header: Header = "",
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
    url: Url = DEFAULT_URL,
    key: Key = None,
    retry_seconds: Annotated[
        float, typer.Option(min=0, help="If there are ids: how long to repeat a request after a 503 or no answer.")
    ] = 0.0,
    local: Annotated[
        bool, typer.Option("--local", help="Start a service for this replay, and stop it at the end.")
    ] = False,
    store: Annotated[str | None, typer.Option(help="Store of the --local service.", show_default="thrown away")] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Also judge the paper's profile, a fixed threshold, a rolling z-score and half-space trees, on the "
            "same samples and labels.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    scores: Annotated[
        Path | None, typer.Option(help="Write seq, score, threshold, severity, flag, incident, label as CSV.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write it all, with pictures, as one HTML page that needs nothing else.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw scores, threshold, flags and labels (PNG); with context also values and expected band."
        ),
    ] = None,
) -> None:
    """Send a labelled file to a stream, the labels late, and report the results.

    Every column that has no other role is a feature, except those of --drop. The file is looked through before anything
    is sent: a column of text, an index, or one that looks like a label or a time is refused unless it is named.

    The label of sample t is due after sample t + delay, and sent at the next of the times of --label-every.
    Ctrl-C stops after the current request, and reports what was sent.
    """
    from app.replay.creation import config_to_create
    from app.replay.evaluation import evaluate
    from app.replay.feed import Plan
    from app.replay.local import local_service
    from app.replay.outputs import Outputs
    from app.replay.reading.columns import Columns, names_of
    from app.replay.reading.lines import Form, separator_of
    from app.replay.reading.table import Meaning, open_table
    from app.replay.run import Replay, Start

    for given, needed, said in (
        (store, local, "--store needs --local: a running service has its own store"),
        (label_values, label_column, "--label-values needs --label-column, the column of the labels"),
        (timestamp_unit, timestamp_column, "--timestamp-unit needs --timestamp-column, the column of the times"),
        (timezone, timestamp_column, "--timezone needs --timestamp-column, the column of the times"),
    ):
        if given and not needed:
            raise fail(said, MISUSED)
    if stream is None and not local:
        raise fail("--stream names the stream to send to; only with --local it may be left out", MISUSED)
    if compare and (label_column is None or resume):
        raise fail("--compare judges a whole replay by its labels: it needs --label-column, and no --resume", MISUSED)
    stream, every = stream or LOCAL_STREAM, 1 if exact_delay else label_every
    outputs = Outputs(as_json, compare, scores, plot, report)
    plan = Plan(stream, batch_size, label_delay, every, label_rate, seed, limit, final_labels, outputs.keeps_samples)
    service = local_service(store) if local else nullcontext(url)
    with one_line_errors(), StopRequests() as stop:
        outputs.refuse_impossible()
        parts = Columns(label_column, timestamp_column, id_column, names_of(columns), names_of(drop))
        meaning = Meaning(label_values_of(label_values), timestamp_unit, zone_of(timezone))
        full_config = config_to_create(config, context, calendar, timezone, timestamp_column)
        start = Start(first, resume, full_config, names_of(context))
        form = Form(separator_of(separator), encoding_of(encoding), names_of(header))
        with open_table(file, parts, meaning, form) as table, service as address:
            with Client(address, None if local else key, retry_seconds=retry_seconds) as client:
                prepared = Replay(client, table, plan, start, stop.came)
                if compare and prepared.n_before:
                    raise fail(f"--compare needs a stream without samples; {stream} has {prepared.n_before}", MISUSED)
                for note in prepared.survey.notes:
                    print("itan:", note, file=sys.stderr)
                with progress("samples", prepared.n_samples) as posted:
                    result = prepared.run(posted)
                compared = partial(progress, "compared")
                evaluation = evaluate(client, file, table, plan, result, compared, with_rivals=compare)
            outputs.hand_out(evaluation, datetime.now(UTC))
    if result.outcome.stopped:
        raise typer.Exit(INTERRUPTED)
