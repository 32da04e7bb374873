"""`itan sources`, `templates`, `rules` and `windows`: list, show, put and delete documents by name."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from app.commands.connection import DEFAULT_URL, FAILED, Key, Url, connected, one_line_errors
from app.commands.moments import moment_of
from app.commands.objects import File, print_json, read_object
from itan_client import Client

Name = Annotated[str, typer.Argument(metavar="NAME")]


def commands_for(
    purpose: str,
    names: Callable[[Client], list[str]],
    get: Callable[[Client, str], object],
    delete: Callable[[Client, str], None],
    put: Callable[[Client, str, Mapping[str, Any]], object] | None = None,
) -> typer.Typer:
    """Make the commands for a kind of documents, of the client's calls for it; without `put`, all but that one."""
    commands = typer.Typer(help=f"List, show, put and delete {purpose}", no_args_is_help=True)

    @commands.command("list")
    def list_(url: Url = DEFAULT_URL, key: Key = None) -> None:
        """Print all names, one a line."""
        with one_line_errors(), connected(url, key) as client:
            for name in names(client):
                print(name)

    @commands.command()
    def show(name: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
        """Print one as JSON."""
        with one_line_errors(), connected(url, key) as client:
            print_json(get(client, name))

    @commands.command("delete")
    def delete_(name: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
        """Delete one."""
        with one_line_errors(), connected(url, key) as client:
            delete(client, name)

    if put is not None:
        add_put(commands, put)
    return commands


def add_put(commands: typer.Typer, put: Callable[[Client, str, Mapping[str, Any]], object]) -> None:
    """Add the command that puts a document of a file."""

    @commands.command("put")
    def put_(name: Name, file: File, url: Url = DEFAULT_URL, key: Key = None) -> None:
        """Create or replace one, and print it."""
        with one_line_errors(), connected(url, key) as client:
            print_json(put(client, name, read_object(file)))


sources = commands_for(
    'sources: how the records of agents become samples. {"preset": "telegraf", ...} changes some fields of a preset; '
    "if a source is deleted, the preset of its name is there again.",
    Client.sources,
    Client.get_source,
    Client.delete_source,
    Client.put_source,
)
templates = commands_for(
    "templates: the configs that new streams get, by their ids.",
    Client.templates,
    Client.get_template,
    Client.delete_template,
    Client.put_template,
)
rules = commands_for(
    "rules: who is told of the incidents of which streams.",
    Client.rules,
    Client.get_rule,
    Client.delete_rule,
    Client.put_rule,
)


@rules.command("test")
def send_test(name: Name, url: Url = DEFAULT_URL, key: Key = None) -> None:
    """Send a test notice, and print what became of it; exit with 1 if it was not delivered."""
    with one_line_errors(), connected(url, key) as client:
        tested = client.test_rule(name)
    print_json(tested)
    if not tested.delivered:
        raise typer.Exit(FAILED)


windows = commands_for(
    "maintenance windows: when samples are scored, but neither learned nor told.",
    lambda client: [one.window for one in client.windows()],
    Client.get_window,
    Client.delete_window,
)


@windows.command("put")
def put_window(
    name: Name,
    streams: Annotated[str, typer.Option(help="One stream id, or a prefix followed by *.")],
    begin: Annotated[str, typer.Option("--from", help="Begin: RFC 3339, or epoch seconds.")],
    end: Annotated[str, typer.Option("--to", help="End.")],
    reason: Annotated[str, typer.Option(help="What is done.")] = "",
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Create or replace one, and print it."""
    with one_line_errors(), connected(url, key) as client:
        print_json(client.put_window(name, streams, moment_of(begin), moment_of(end), reason))
