"""`itan sources`: list, show, put and delete sources."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Url, connected, fail, one_line_errors

Name = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of the source.")]

sources = typer.Typer(
    help="List, show, put and delete sources: how the records of agents become samples.", no_args_is_help=True
)


@sources.command("list")
def list_(url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Print the name of every source, presets too, one a line."""
    with one_line_errors(), connected(url, key) as client:
        for source in client.sources():
            print(source)


@sources.command()
def show(source: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Print a source as JSON."""
    with one_line_errors(), connected(url, key) as client:
        print(json.dumps(msgspec.to_builtins(client.get_source(source)), indent=2))


@sources.command()
def put(
    source: Name,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A JSON object with its fields. - is stdin.")],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Create or replace a source, and print it; {"preset": "telegraf", ...} changes some fields of a preset."""
    with one_line_errors(), connected(url, key) as client:
        kept = client.put_source(source, _fields(file))
        print(json.dumps(msgspec.to_builtins(kept), indent=2))


@sources.command()
def delete(source: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Delete a source; if a preset has its name, that is there again."""
    with one_line_errors(), connected(url, key) as client:
        client.delete_source(source)


def _fields(file: str) -> dict[str, Any]:
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise fail(f"{file} is not JSON: {error}", MISUSED) from None
    if not isinstance(fields, dict):
        raise fail(f"{file} must hold a JSON object", MISUSED)
    return fields
