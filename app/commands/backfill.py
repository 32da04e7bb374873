"""`itan backfill`: run history through the core on all cores of this machine, without a service."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.connection import MISUSED, fail, one_line_errors
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

if TYPE_CHECKING:
    from app.bulk.pool import Totals

EXTRA = "itan backfill needs pyarrow: install itan with the extra bulk, as in uv sync --extra bulk or itan[bulk]"
NO_CONFIG: dict[str, Any] = {}


def backfill(
    given: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN...", help="Files (.parquet, .csv, .csv.gz) and folders of them.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the results.", show_default=False)],
    stream: Annotated[
        str | None,
        typer.Option("--stream", "-s", help="The one stream of all rows.", show_default="the name of each file"),
    ] = None,
    stream_column: Annotated[
        str | None, typer.Option(help="Column that names the stream of each row.", show_default=False)
    ] = None,
    label_column: LabelColumn = None,
    label_values: LabelValues = None,
    label_time_column: Annotated[
        str | None, typer.Option(help="Column of the time at which each label became known.", show_default=False)
    ] = None,
    label_delay: Annotated[
        str, typer.Option(help="How late labels without such a time are: 100 (samples), or 90s, 15m, 12h, 30d.")
    ] = "100",
    label_every: Annotated[
        int, typer.Option(min=1, help="Tell the labels that are due after every so many samples.")
    ] = 100,
    final_labels: Annotated[bool, typer.Option(help="At the end, tell the labels that are not due yet.")] = True,
    columns: FeatureColumns = "",
    drop: DroppedColumns = "",
    timestamp_column: TimestampColumn = None,
    timestamp_unit: TimestampUnit = None,
    timezone: Timezone = None,
    id_column: IdColumn = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    header: Header = "",
    config: Annotated[str | None, typer.Option(help="Config of the streams (JSON).", show_default=False)] = None,
    context: Annotated[str, typer.Option(help="Features that are context, comma-separated.")] = "",
    calendar: Annotated[
        str, typer.Option(help="A calendar of these periods: day, week or seconds, comma-separated.")
    ] = "",
    keep: Annotated[
        int, typer.Option(min=0, help="Newest samples of each stream that can still be labelled after the import.")
    ] = 100_000,
    at: Annotated[
        float | None,
        typer.Option(help="Epoch seconds at which everything counts as having come.", show_default="now"),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Most samples in an entry of the log.")] = 1000,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one for each core")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the totals as JSON.")] = False,
) -> None:
    """Score and learn history, with its late labels, and write scores, incidents and images of the streams.

    Each stream comes out as a service would have left it that got its rows and labels in this order. The rows of a
    stream are taken in the order of the files, and all files are looked through before anything is computed: the first
    row that cannot be read is named. itan streams import FOLDER makes the images streams of a service.
    """
    try:
        import app.bulk.pool as pool
    except ModuleNotFoundError as error:
        raise fail(EXTRA if (error.name or "").startswith("pyarrow") else str(error)) from None
    from app.bulk.job import Job, delay_of
    from app.bulk.reading.files import Files, find_files
    from app.replay.creation import config_to_create
    from app.replay.reading.columns import Columns, names_of
    from app.replay.reading.lines import Form, separator_of
    from app.replay.reading.table import Meaning

    timed = timestamp_column or label_time_column
    for option, needed, said in (
        (stream and stream_column, None, "--stream and --stream-column exclude each other"),
        (label_values, label_column, "--label-values needs --label-column, the column of the labels"),
        (label_time_column, label_column, "--label-time-column needs --label-column, the column of the labels"),
        (label_time_column, timestamp_column, "--label-time-column needs --timestamp-column: one time tells the other"),
        (timestamp_unit, timed, "--timestamp-unit needs --timestamp-column, the column of the times"),
        (timezone, timed, "--timezone needs --timestamp-column, the column of the times"),
    ):
        if option and not needed:
            raise fail(said, MISUSED)
    try:
        delays = delay_of(label_delay)
    except ValueError as error:
        raise fail(f"--label-delay: {error}", MISUSED) from None
    if "delay_seconds" in delays and label_column and not timestamp_column:
        raise fail("--label-delay is a time: it needs --timestamp-column, the column of the times", MISUSED)
    with one_line_errors():
        chosen = names_of(columns)
        roles = Columns(
            label_column, timestamp_column, id_column, chosen, names_of(drop), stream_column, label_time_column
        )
        meaning = Meaning(label_values_of(label_values), timestamp_unit, zone_of(timezone))
        form = Form(separator_of(separator), encoding_of(encoding), names_of(header))
        fields = config_to_create(config, context, calendar, timezone, timestamp_column) or NO_CONFIG
        files = Files(find_files(given), roles, meaning, form, stream)
        features, notes = files.survey()
        fields, features = pool.with_features(fields, features, names_of(context))
        now = time.time() if at is None else at
        job = Job(
            config=fields,
            at=now,
            batch_size=batch_size,
            label_every=label_every,
            keep_samples=keep,
            final_labels=final_labels,
            **delays,
        )
        pool.refuse_untimed(job.detector_config(), timestamp_column)
        for note in notes:
            print("itan:", note, file=sys.stderr)
        began = time.perf_counter()
        with progress("samples") as done:
            totals = pool.run(files, job, features, out, workers=workers, done=done)
    report(totals, time.perf_counter() - began, as_json=as_json)


def report(totals: "Totals", seconds: float, *, as_json: bool) -> None:
    """Say what was done."""
    said = vars(totals) | {"seconds": seconds, "samples_per_cpu_second": totals.samples / max(totals.cpu_seconds, 1e-9)}
    if as_json:
        print(json.dumps(said))
        return
    print(f"{totals.streams} streams, {totals.samples} samples in {seconds:.1f} s, {totals.cpu_seconds:.1f} s of CPU")
    print(f"{totals.flagged} flagged, in {totals.incidents} incidents")
    if totals.repeated:
        print(f"{totals.repeated} rows came with known ids and were not learned again")
    if totals.labels:
        print("labels:", ", ".join(f"{n} {outcome}" for outcome, n in sorted(totals.labels.items())))
