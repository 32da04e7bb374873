"""`itan label`: tell the service what samples were."""

import sys
from contextlib import suppress
from typing import Annotated, Literal

import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Stream, Url, connected, fail, one_line_errors
from app.commands.moments import moment_of
from app.commands.objects import print_json
from app.severity import meaning
from itan_client import ApiError, Client

Anomaly = Annotated[bool, typer.Option("--anomaly", help="It was anomalous.")]
Normal = Annotated[bool, typer.Option("--normal", help="It was normal.")]
Withdraw = Annotated[bool, typer.Option("--withdraw", help="Withdraw what was said of it.")]
All = Annotated[bool, typer.Option("--all", help="All samples, not only those that were flagged.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")]


def label(
    stream: Stream,
    seq: Annotated[int | None, typer.Option(help="Sequence number of the sample.", show_default=False)] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Id of the sample.", show_default=False)] = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="Begin of the time: RFC 3339, or epoch seconds.", show_default=False)
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="End of the time.", show_default=False)] = None,
    anomaly: Anomaly = False,
    normal: Normal = False,
    withdraw: Withdraw = False,
    all_: All = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Label a sample, or the flagged ones of a time, and print the service's answer as JSON."""
    is_range = begin is not None and end is not None
    if (begin is None) != (end is None) or (seq is not None) + (id_ is not None) + is_range != 1:
        raise fail("name the sample by --seq or by --id, or a time by --from and --to", MISUSED)
    if all_ and not is_range:
        raise fail("--all goes with --from and --to", MISUSED)
    verdict = verdict_of(anomaly, normal, withdraw)
    labels, ranges = [], []
    if begin is not None and end is not None:
        ranges = [{"from": moment_of(begin), "to": moment_of(end), "anomaly": verdict, "only": only(all_)}]
    else:
        labels = [({"seq": seq} if id_ is None else {"id": id_}) | {"anomaly": verdict}]
    with one_line_errors(), connected(url, key) as client:
        answer = client.feedback(stream, labels, ranges=ranges, dry_run=dry_run)
        print_json(answer)
        if not is_range and answer.seq[0] is not None:
            tell_severity(client, stream, answer.seq[0])


def tell_severity(client: Client, stream: str, seq: int) -> None:
    """Say on stderr how rare a sample is, if the key may look at it."""
    with suppress(ApiError):
        sample = client.sample(stream, seq)
        flagged = "flagged" if sample.is_anomaly else "not flagged"
        print(f"itan: sample {seq} was {flagged}. {meaning(sample.severity)}", file=sys.stderr)


def verdict_of(anomaly: bool, normal: bool, withdraw: bool) -> bool | None:
    """Give the label that three flags stand for, None to withdraw one."""
    if anomaly + normal + withdraw != 1:
        raise fail("give one of --anomaly, --normal and --withdraw", MISUSED)
    return None if withdraw else anomaly


def only(all_: bool) -> Literal["flagged", "all"]:
    """Say which samples are labelled."""
    return "all" if all_ else "flagged"
