"""The command line, `itan`."""

import typer

from app.commands.backfill import backfill
from app.commands.backup import backup, restore
from app.commands.bench import bench
from app.commands.demo import demo
from app.commands.density import density
from app.commands.documents import rules, sources, templates, windows
from app.commands.explain import explain
from app.commands.incidents import incidents
from app.commands.ingest import ingest
from app.commands.keys import keys
from app.commands.label import label
from app.commands.pull import pull
from app.commands.replay import replay
from app.commands.serve import serve
from app.commands.streams import streams

app = typer.Typer(
    name="itan",
    help="Streaming anomaly detection that learns from delayed labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # boxes cut the names of options where a terminal is narrow
    rich_markup_mode=None,
)
app.command()(serve)
app.command()(demo)
app.command()(replay)
app.command()(backfill)
app.command()(ingest)
app.command()(label)
app.command()(explain)
app.command()(density)
app.command()(backup)
app.command()(restore)
app.add_typer(pull, name="pull")
app.add_typer(streams, name="streams")
app.add_typer(incidents, name="incidents")
app.add_typer(sources, name="sources")
app.add_typer(templates, name="templates")
app.add_typer(rules, name="rules")
app.add_typer(windows, name="windows")
app.add_typer(keys, name="keys")
app.add_typer(bench, name="bench")

if __name__ == "__main__":
    app()
