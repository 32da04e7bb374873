"""`itan streams`: list, show, patch, clone, delete, prune, reset, export, import, check and repair streams."""

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from app.commands.connection import DEFAULT_URL, FAILED, MISUSED, Key, Url, connected, fail, one_line_errors
from app.commands.image_folder import import_folder
from app.commands.objects import File, print_json, read_object
from app.commands.tables import print_table
from app.counts import counted
from app.durations import read_duration
from itan_client import ApiError, Checked, Client, StreamSummary

T = TypeVar("T")
HEAD: Final = ("STATE", "SAMPLES", "FLAGGED LATELY", "TO REVIEW", "SEVERITY", "STREAM")
LEGEND: Final = (
    "itan: severity of the newest flagged sample. Above 2, fewer than one ordinary sample in 100 scores as high."
)
ALL = "all"
PRUNED_AT_ONCE = 1000
# a long log takes minutes to replay
PATIENCE_SECONDS = 1800.0

Name = Annotated[str, typer.Argument(metavar="STREAM", help="Id of the stream.")]
Which = Annotated[str, typer.Argument(metavar="STREAM|all", help="Id of the stream, or all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class Order(StrEnum):
    """The orders of a list of streams."""

    NAME = "name"
    FLAGGED = "flagged"
    INCIDENTS = "incidents"
    SILENT = "silent"
    REVIEW = "review"
    WARMING_UP = "warming_up"


streams = typer.Typer(
    help="List, show, patch, clone, delete, prune, reset, export, import, check and repair streams.",
    no_args_is_help=True,
)


@streams.command("list")
def list_(
    prefix: Annotated[str, typer.Option(help="Only streams whose ids begin with this.")] = "",
    search: Annotated[str, typer.Option(help="Only streams whose ids hold this.")] = "",
    order: Annotated[Order, typer.Option(help="What comes first.")] = Order.NAME,
    details: Annotated[bool, typer.Option("--details", help="Say how each stands, with its severity.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Print the id of every stream, one a line."""
    with one_line_errors(), connected(url, key) as client:
        if details:
            found = client.summaries(100, prefix=prefix, search=search, order=order)
            print_table([HEAD, *map(row_of, found)])
            print(LEGEND, file=sys.stderr)
            return
        for stream in client.streams(1000, prefix=prefix, search=search, order=order):
            print(stream)


def row_of(stream: StreamSummary) -> tuple[str, ...]:
    """Give what a line of the list says of a stream; severity is that of the newest flagged sample."""
    numbers = (stream.n_seen, stream.flagged_lately, stream.to_review)
    severity = "-" if stream.severity is None else f"{stream.severity:.1f}"
    return state_of(stream), *("-" if number is None else str(number) for number in numbers), severity, stream.stream


def state_of(stream: StreamSummary) -> str:
    """Say in short how a stream stands."""
    if not stream.readable:
        return "damaged"
    if stream.ready is None:
        return "unknown"
    if not stream.ready:
        return "warming up"
    return "ready" if stream.incident is None else "incident"


@streams.command()
def show(stream: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Print a stream's config and state as JSON."""
    with one_line_errors(), connected(url, key) as client:
        print_json(client.get(stream))


@streams.command()
def patch(stream: Name, file: File, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Change fields of a stream's config, and print it; it keeps what it has learned."""
    with one_line_errors(), connected(url, key) as client:
        print_json(client.patch(stream, read_object(file)))


@streams.command()
def clone(
    stream: Name,
    to: Annotated[str, typer.Argument(metavar="NEW", help="Id of the new stream.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Make a new stream with all that a stream has learned."""
    with one_line_errors(), connected(url, key) as client:
        client.clone(stream, to)


@streams.command()
def delete(stream: Name, yes: Sure = False, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Delete a stream and all that it has learned."""
    _confirm(yes, f"Delete stream {stream} and all that it has learned?")
    with one_line_errors(), connected(url, key) as client:
        client.delete(stream)


@streams.command()
def prune(
    idle: Annotated[str, typer.Option(help="How long a stream must have been silent: 90s, 15m, 12h, 30d.")],
    prefix: Annotated[str, typer.Option(help="Only streams whose ids begin with this.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the ids.")] = False,
    yes: Sure = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Delete the streams that have been silent for long, and print the id of each."""
    try:
        seconds = read_duration(idle)
    except ValueError as error:
        raise fail(f"--idle: {error}", MISUSED) from None
    with one_line_errors(), connected(url, key) as client:
        found = list(client.streams(PRUNED_AT_ONCE, silent_seconds=seconds, prefix=prefix))
        if found and not dry_run:
            _confirm(
                yes, f"Delete {counted(len(found), 'stream')}, {found[0]} to {found[-1]}, with all that was learned?"
            )
        for stream in found:
            if dry_run or _prune(client, stream, seconds):
                print(stream)


def _prune(client: Client, stream: str, seconds: int) -> bool:
    """Delete a stream unless it has been written to meanwhile, or has gone."""
    try:
        client.delete(stream, silent_seconds=seconds)
    except ApiError as error:
        if error.code not in ("not_silent", "unknown_stream"):
            raise
        return False
    return True


@streams.command()
def reset(stream: Name, yes: Sure = False, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Forget what a stream has learned; its config stays."""
    _confirm(yes, f"Forget all that stream {stream} has learned?")
    with one_line_errors(), connected(url, key) as client:
        client.reset(stream)


@streams.command()
def export(
    stream: Name,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", dir_okay=False)],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a stream's whole state to a file."""
    with one_line_errors(), connected(url, key) as client:
        output.write_bytes(client.export(stream))


@streams.command("import")
def import_(
    stream: Annotated[
        str, typer.Argument(metavar="STREAM|FOLDER", help="Id of the stream, or a folder of a backfill.")
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="File that `export` wrote.", exists=True, dir_okay=False, show_default=False
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Replace a stream's state with an exported one, or make all that is in a FOLDER of `itan backfill` new streams.

    An import of a folder that was stopped goes on where it was. Streams that the service refuses are named at the end.
    """
    with one_line_errors(), connected(url, key, PATIENCE_SECONDS) as client:
        if file is not None:
            client.import_(stream, file.read_bytes())
        elif Path(stream).is_dir():
            import_folder(client, Path(stream), url)
        else:
            raise fail(f"there is no folder {stream}; a stream also needs the FILE of its state", MISUSED)


@streams.command()
def check(which: Which, as_json: AsJson = False, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Replay everything stored of streams, and say what is wrong; exit with 1 if anything is."""
    with one_line_errors(), connected(url, key, PATIENCE_SECONDS) as client:
        checked = _for_each(client, which, client.check)
    if as_json:
        print_json(checked)
    else:
        for found in checked:
            _print_check(found)
    if not all(found.ok for found in checked):
        raise typer.Exit(FAILED)


@streams.command()
def repair(
    stream: Name,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Repair even if samples, or the log with its ids, are lost.")
    ] = False,
    yes: Sure = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Rebuild a damaged stream from its log, or from the last snapshot that can be read."""
    if lossy:
        _confirm(yes, f"Repair stream {stream}, and lose everything that cannot be read?")
    with one_line_errors(), connected(url, key, PATIENCE_SECONDS) as client:
        done = client.repair(stream, lossy=lossy)
    lost = done.lost_first_seq is not None
    loss = f"; samples {done.lost_first_seq} to {done.lost_last_seq} are lost" if lost else ""
    print(f"{stream}: {'repaired' if done.changed else 'nothing to repair'}{loss}")


@streams.command()
def accept(which: Which, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Accept what replays or repairs have changed, so that it is no longer shown."""
    with one_line_errors(), connected(url, key, PATIENCE_SECONDS) as client:
        _for_each(client, which, client.accept)


def _for_each(client: Client, which: str, call: Callable[[str], T]) -> list[T]:
    """Call for one stream, or for all; of all, those that are deleted meanwhile are left out."""
    if which != ALL:
        return [call(which)]
    answers = list[T]()
    for stream in client.streams():
        try:
            answers.append(call(stream))
        except ApiError as error:
            if error.code != "unknown_stream":
                raise
    return answers


def _print_check(found: Checked) -> None:
    print(f"{found.stream}: {'ok' if found.ok else 'not ok'} ({counted(found.replayed_samples, 'sample')} replayed)")
    for finding in found.findings:
        print(f"  {finding.text}")
    if not found.ok:
        print(f"  repair: {found.repair}")


def _confirm(yes: bool, question: str) -> None:
    # a script has nobody to ask: there the command itself is the answer
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True)
