"""What every command that talks to a service shares: where it is, the key, and how its errors are shown."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from itan_client import DEFAULT_URL, ApiError, Client, ServiceUnreachable

FAILED = 1
MISUSED = 2
TIMEOUT_SECONDS = 30.0

Url = Annotated[str, typer.Option(envvar="ITAN_URL", help="Where the service listens.")]
Key = Annotated[str | None, typer.Option(envvar="ITAN_KEY", help="API key.", show_envvar=True, show_default=False)]
Stream = Annotated[str, typer.Option("--stream", "-s", help="Id of the stream.")]

__all__ = ["DEFAULT_URL", "FAILED", "MISUSED", "Key", "Stream", "Url", "connected", "fail", "one_line_errors"]


def fail(message: str, code: int = FAILED) -> typer.Exit:
    """Say on one line of stderr what went wrong and give the exit to raise."""
    print("itan:", " ".join(message.split()), file=sys.stderr)
    return typer.Exit(code)


def connected(url: str, key: str | None, timeout_seconds: float = TIMEOUT_SECONDS) -> Client:
    """Give a client that fails at once: whoever sits at a terminal decides whether to try again."""
    return Client(url, key, timeout_seconds=timeout_seconds, retry_seconds=0)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what the service or the network refuses into one readable line and exit code 1."""
    try:
        yield
    except typer.Exit:
        # it is a RuntimeError too
        raise
    except (ApiError, ServiceUnreachable, OSError, RuntimeError) as error:
        raise fail(str(error)) from None
    except ValueError as error:
        raise fail(str(error), MISUSED) from None
