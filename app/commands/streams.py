"""`itan streams`: list, show, delete, reset, export and import streams."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.client import Client
from app.commands.connection import DEFAULT_URL, Key, Url, one_line_errors

Name = Annotated[str, typer.Argument(metavar="STREAM", help="Id of the stream.")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

streams = typer.Typer(help="List, show, delete, reset, export and import streams.", no_args_is_help=True)


@streams.command("list")
def list_(url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Print the id of every stream, one a line."""
    with one_line_errors(), Client(url, key) as client:
        for stream in client.streams():
            print(stream)


@streams.command()
def show(stream: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Print a stream's config and state as JSON."""
    with one_line_errors(), Client(url, key) as client:
        print(json.dumps(client.get(stream), indent=2))


@streams.command()
def delete(stream: Name, yes: Sure = False, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Delete a stream with all that it has learned."""
    _confirm(yes, f"Delete stream {stream} and all that it has learned?")
    with one_line_errors(), Client(url, key) as client:
        client.delete(stream)


@streams.command()
def reset(stream: Name, yes: Sure = False, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Forget what a stream has learned; its config stays."""
    _confirm(yes, f"Forget all that stream {stream} has learned?")
    with one_line_errors(), Client(url, key) as client:
        client.reset(stream)


@streams.command()
def export(
    stream: Name,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", dir_okay=False)],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Write a stream's whole state to a file."""
    with one_line_errors(), Client(url, key) as client:
        output.write_bytes(client.export(stream))


@streams.command("import")
def import_(
    stream: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What export wrote.", exists=True, dir_okay=False)],
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Replace a stream's state by an exported one."""
    with one_line_errors(), Client(url, key) as client:
        client.import_(stream, file.read_bytes())


def _confirm(yes: bool, question: str) -> None:
    # a script has nobody to ask: there the command itself is the answer
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True)
