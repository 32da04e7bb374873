"""`itan ingest`: send a file or a pipe of records of many streams."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.connection import DEFAULT_URL, FAILED, Key, Url, fail, one_line_errors
from app.commands.progress import progress
from app.commands.stopping import INTERRUPTED, StopRequests
from app.counts import counted
from itan_client import ApiError, Client, RefusedRecord, ServiceUnreachable

if TYPE_CHECKING:
    from app.ingestion.reading import Bounds
    from app.ingestion.sending import Sender

MOST_BYTES = 4_000_000


def ingest(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="Lines of JSON, or a JSON array; may end in .gz. - is stdin.")
    ],
    source: Annotated[
        str | None, typer.Option(help="The source that reads the records; see itan sources.", show_default="none")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Most records in a request.")] = 1000,
    retry_seconds: Annotated[
        float, typer.Option(min=0, help="How long to repeat a request that fails for a passing reason.")
    ] = 60.0,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Send records to their streams: {"stream": "web-1", "sample": {"cpu": 0.3}}, with an id and a timestamp if known.

    Each record is taken or refused by itself: stderr says which line was refused, and why. Records without an id get
    one, so that a repeated request counts once. Of a pipe, records are sent as they come. Ctrl-C stops after the
    current request. Exits with 1 if any record was refused.
    """
    from app.ingestion.reading import Bounds
    from app.ingestion.sending import Sender

    with one_line_errors(), Client(url, key, retry_seconds=retry_seconds) as client:
        sender = Sender(client, source, _print_refused)
        is_stopped = _send(sender, file, Bounds(batch_size, MOST_BYTES))
    tally = sender.tally
    records = counted(tally.records, "record")
    print(f"{records}: {tally.taken} taken, {tally.refused.total()} refused, {tally.flagged} flagged")
    if is_stopped:
        raise typer.Exit(INTERRUPTED)
    if tally.refused:
        raise typer.Exit(FAILED)


def _send(sender: "Sender", file: str, bounds: "Bounds") -> bool:
    """Send until the records end, or somebody stops it; tell whether somebody did."""
    from app.ingestion.reading import bundles, opened

    with StopRequests() as stop, opened(file) as records, progress("records") as sent:
        try:
            for bundle in bundles(records, bounds, stop.came):
                sender.send(bundle)
                sent(len(bundle))
        except KeyboardInterrupt:
            return True
        except (ApiError, ServiceUnreachable) as error:
            raise fail(f"after line {sender.tally.last_line}: {error}") from None
        return stop.came()


def _print_refused(line: int, problem: RefusedRecord) -> None:
    print(f"line {line}: {problem.detail} [{problem.code}]", file=sys.stderr)
