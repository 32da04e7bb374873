"""`itan incidents`: list, show and label incidents."""

import sys
from itertools import islice
from typing import Annotated, Final

import typer

from app.commands.connection import DEFAULT_URL, Key, Url, connected, one_line_errors
from app.commands.label import All, Anomaly, DryRun, Normal, Withdraw, only, verdict_of
from app.commands.moments import moment
from app.commands.objects import print_json
from app.commands.tables import print_table
from itan_client import Incident, IncidentFeature

Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the incident, as `list` shows it.")]
LIMIT, PAGE = 50, 200
HEAD: Final = ("STATE", "BEGIN", "END", "SEVERITY", "FEATURES", "ID")

incidents = typer.Typer(help="List, show and label incidents.", no_args_is_help=True)


@incidents.command("list")
def list_(
    stream: Annotated[str | None, typer.Option("--stream", "-s", help="Only of this stream.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Only of streams whose ids begin with this.")] = None,
    state: Annotated[
        str | None, typer.Option(help="Only those that are open, closed, accepted, confirmed or dismissed.")
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", help="Only those that went on at this time or later: RFC 3339, or epoch seconds."),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Only those that began at this time or before.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most incidents.")] = LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print all that is known of each, as JSON.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Print incidents, the newest first: from the first flagged sample of each to the last, in UTC."""
    with one_line_errors(), connected(url, key) as client:
        pages = client.incidents(min(limit + 1, PAGE), stream=stream, prefix=prefix, state=state, begin=begin, end=end)
        found = list(islice(pages, limit + 1))
    shown = found[:limit]
    if as_json:
        print_json(shown)
    else:
        print_table([HEAD, *map(row_of, shown)])
    if len(found) > limit:
        print(f"itan: there are more than the newest {limit}: --limit", file=sys.stderr)


@incidents.command()
def show(id_: Id, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Print all that is known of an incident, as JSON."""
    with one_line_errors(), connected(url, key) as client:
        print_json(client.incident(id_))


@incidents.command()
def label(
    id_: Id,
    anomaly: Anomaly = False,
    normal: Normal = False,
    withdraw: Withdraw = False,
    all_: All = False,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Label the flagged samples of an incident, and print the service's answer as JSON."""
    verdict = verdict_of(anomaly, normal, withdraw)
    with one_line_errors(), connected(url, key) as client:
        print_json(client.label_incident(id_, verdict, only=only(all_), dry_run=dry_run))


def row_of(incident: Incident) -> tuple[str, ...]:
    """Give what a line of the list says of an incident."""
    end = "" if incident.ended_at is None else moment(incident.last_time)
    features = ", ".join(map(feature_text, incident.features))
    return incident.state, moment(incident.begin), end, f"{incident.peak_severity:.1f}", features, incident.id


def feature_text(feature: IncidentFeature) -> str:
    """Say what was seen of a feature, and in brackets what was expected."""
    seen = "missing" if feature.value is None else f"{feature.value:.4g}"
    return f"{feature.name} {seen} ({feature.expected:.4g})"
