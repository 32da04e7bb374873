"""`itan keys`: make API keys, and check a file of them."""

import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.commands.connection import MISUSED, fail

PREFIX = "itan_"
RANDOM_BYTES = 32

keys = typer.Typer(help="Make API keys, and check a file of them.", no_args_is_help=True)


@keys.command()
def new(
    name: Annotated[str, typer.Option(help="What logs and metrics call the key.")],
    scopes: Annotated[str, typer.Option(help="read, observe, label, metrics, admin, joined by +.")],
    streams: Annotated[str, typer.Option(help="One stream id, or a prefix followed by *.")] = "*",
    max_streams: Annotated[
        int | None, typer.Option(help="Create no stream once this many with its prefix exist; 0: create none.")
    ] = None,
    max_bytes: Annotated[int | None, typer.Option(help="Most bytes that its streams may take in the store.")] = None,
    max_watchers: Annotated[int | None, typer.Option(help="Most event streams at once.")] = None,
    requests: Annotated[str | None, typer.Option(help="Most requests, such as 50/second.")] = None,
    samples: Annotated[str | None, typer.Option(help="Most samples and points, such as 60000/minute.")] = None,
) -> None:
    """Print a new key on stderr, only this once, and its line for the file of ITAN_API_KEYS_FILE on stdout."""
    import msgspec

    from app.security.errors import InvalidKeys
    from app.security.grants import digest_of, read_line

    key = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    limits = {
        "streams": max_streams,
        "bytes": max_bytes,
        "watchers": max_watchers,
        "requests": requests,
        "samples": samples,
    }
    line = {
        "name": name,
        "sha256": digest_of(key).hex(),
        "scopes": scopes.split("+"),
        "streams": streams,
        "limits": {limit: value for limit, value in limits.items() if value is not None},
    }
    text = msgspec.json.encode(line)
    try:
        read_line(text, "the key")
    except InvalidKeys as error:
        raise fail(str(error), MISUSED) from None
    print(text.decode())
    print(f"the key, shown only this once: {key}", file=sys.stderr)


@keys.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="File of keys.")]) -> None:
    """Check whether the service could read a file of keys."""
    from app.security import InvalidKeys, KeyFile

    try:
        print(f"keys: {len(KeyFile(file).read())}")
    except InvalidKeys as error:
        raise fail(str(error), MISUSED) from None
