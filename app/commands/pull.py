"""`itan pull`: take samples from where they are kept."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Url, connected, fail, one_line_errors
from app.commands.stopping import INTERRUPTED, StopRequests
from app.logs.choices import LogFormat, LogLevel

if TYPE_CHECKING:
    from app.pull.config import PullConfig
    from app.pull.run import Pull

PATIENCE_SECONDS = 300.0
SERVICE_TIMEOUT_SECONDS = 60.0

pull = typer.Typer(help="Take samples from where they are kept.", no_args_is_help=True)


@pull.callback()
def _group() -> None:
    """Take samples from where they are kept."""


@pull.command()
def prometheus(
    url: Annotated[str, typer.Option(help="Where Prometheus listens, such as http://prometheus:9090.")],
    config: Annotated[Path, typer.Option(help="The file of the queries (YAML).")],
    service: Url = DEFAULT_URL,
    key: Key = None,
    once: Annotated[bool, typer.Option("--once", help="End when the present is reached.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Print what the queries give now, and send nothing.")] = False,
    log_level: Annotated[LogLevel, typer.Option(envvar="ITAN_LOG_LEVEL", help="How much to log.")] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat | None, typer.Option(envvar="ITAN_LOG_FORMAT", help="json or console.", show_default=False)
    ] = None,
) -> None:
    """Make samples of queries in PromQL: first of the past, then of each step when it is due.

    It continues where the streams end, so it keeps no file of its own, and can be stopped at any time.
    """
    from app.logs.pipeline import set_up
    from app.pull.errors import Permanent, Stopped
    from app.pull.run import Pull

    set_up(log_level, log_format)
    wanted = _read(config)
    with one_line_errors(), StopRequests() as stop:
        limit_seconds = PATIENCE_SECONDS if once or check else None
        try:
            with (
                connected(service, key, SERVICE_TIMEOUT_SECONDS) as client,
                Pull.connected(wanted, url, client, stop.came_within, limit_seconds) as run,
            ):
                if check:
                    print_newest(run)
                    return
                try:
                    run.run(once=once)
                finally:
                    print("itan pull:", run.summary(), flush=True)
        except Permanent as error:
            raise fail(str(error)) from None
        except Stopped:
            raise typer.Exit(INTERRUPTED) from None


def print_newest(run: "Pull") -> None:
    """Print the samples of the newest step, and which queries give none."""
    from app.pull.steps import moment

    silent = list(run.names)
    for time, stream, values in run.look():
        known = {name: value for name, value in values.items() if value is not None}
        silent = [name for name in silent if name not in known]
        print(moment(time), stream, *(f"{name}={known.get(name, 'missing')}" for name in values))
    for name in silent:
        print(f"itan pull: the query of {name} gives no number at the newest step", file=sys.stderr)


def _read(path: Path) -> "PullConfig":
    from app.pull.config import InvalidPullConfig, read_config

    try:
        return read_config(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise fail(f"cannot read {path}: {error}", MISUSED) from None
    except InvalidPullConfig as error:
        raise fail(f"{path}: {error}", MISUSED) from None
