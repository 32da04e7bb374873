"""`itan label`: tell the service what a sample was."""

from typing import Annotated

import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Stream, Url, connected, fail, one_line_errors
from app.commands.objects import print_json


def label(
    stream: Stream,
    seq: Annotated[int | None, typer.Option(help="Sequence number of the sample.", show_default=False)] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Id of the sample.", show_default=False)] = None,
    anomaly: Annotated[bool, typer.Option("--anomaly", help="The sample was anomalous.")] = False,
    normal: Annotated[bool, typer.Option("--normal", help="The sample was normal.")] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Withdraw its label.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Label one sample and print the service's answer as JSON."""
    if (seq is None) == (id_ is None):
        raise fail("name the sample by --seq or by --id", MISUSED)
    if anomaly + normal + withdraw != 1:
        raise fail("give one of --anomaly, --normal and --withdraw", MISUSED)
    which = {"seq": seq} if id_ is None else {"id": id_}
    verdict = None if withdraw else anomaly
    with one_line_errors(), connected(url, key) as client:
        answer = client.feedback(stream, [{**which, "anomaly": verdict}], dry_run=dry_run)
    print_json(answer)
