"""`itan density`: look at the learned density."""

import json
from typing import Annotated, Any

import typer

from app.commands.connection import DEFAULT_URL, MISUSED, Key, Stream, Url, connected, fail, one_line_errors
from app.commands.objects import print_json


def density(
    stream: Stream,
    points: Annotated[
        str | None, typer.Option(help="JSON rows, such as '[[0.5, null]]' (null = missing).", show_default=False)
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Print log densities (nats) at points, or the model, as JSON."""
    rows = None if points is None else _rows(points)
    with one_line_errors(), connected(url, key) as client:
        answer = client.model(stream) if rows is None else client.density(stream, rows).log_density
    print_json(answer)


def _rows(text: str) -> list[Any]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise fail(f"--points is not JSON: {error}", MISUSED) from None
    if not isinstance(rows, list) or not all(isinstance(row, list | dict) for row in rows):
        raise fail("--points must be a list of rows, such as '[[0.5, null]]'", MISUSED)
    return rows
