"""What every command that talks to a service shares: where it is, the key, and how its errors are shown."""

import ipaddress
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer

from itan_client import DEFAULT_URL, ApiError, Client, ServiceUnreachable

FAILED = 1
MISUSED = 2
TIMEOUT_SECONDS = 30.0
LOOPBACK, PORT = "127.0.0.1", "8000"


def fail(message: str, code: int = FAILED) -> typer.Exit:
    """Say on one line of stderr what went wrong and give the exit to raise."""
    line = " ".join(message.split())
    # names from files may hold what commands a terminal
    print("itan:", "".join(one if one.isprintable() else "\ufffd" for one in line), file=sys.stderr)
    return typer.Exit(code)


def service_url(context: typer.Context, param: typer.CallbackParam, url: str) -> str:
    """Give the URL of the command line or of ITAN_URL; without one, where a service with these settings listens."""
    source = context.get_parameter_source(param.name or "")
    return listening_url(os.environ) if source is None or source.name == "DEFAULT" else url


def listening_url(variables: Mapping[str, str]) -> str:
    """Give the URL at which a service on this machine listens, by its settings; port 0 tells nothing.

    >>> listening_url({"ITAN_HOST": "0.0.0.0", "ITAN_PORT": "8100"})
    'http://127.0.0.1:8100'
    """
    host, port = variables.get("ITAN_HOST") or LOOPBACK, variables.get("ITAN_PORT") or PORT
    if not (port.isdecimal() and int(port) < 65_536):
        raise fail(f"ITAN_PORT: {port!r} is no port", MISUSED)
    try:
        address = ipaddress.ip_address(host)
        host = LOOPBACK if address.is_unspecified else f"[{host}]" if address.version == 6 else host
    except ValueError:
        pass  # a name
    return f"http://{host}:{int(port) or PORT}"


Url = Annotated[
    str,
    typer.Option(
        envvar="ITAN_URL",
        callback=service_url,
        help="Where the service listens.",
        show_default="by ITAN_HOST and ITAN_PORT, http://127.0.0.1:8000",
    ),
]
Key = Annotated[str | None, typer.Option(envvar="ITAN_KEY", help="API key.", show_envvar=True, show_default=False)]
Stream = Annotated[str, typer.Option("--stream", "-s", help="Id of the stream.")]

__all__ = ["DEFAULT_URL", "FAILED", "MISUSED", "Key", "Stream", "Url", "connected", "fail", "one_line_errors"]


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
