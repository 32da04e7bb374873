"""JSON objects that commands read and print."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from app.commands.connection import MISUSED, fail

File = Annotated[str, typer.Argument(metavar="FILE|-", help="A JSON object with its fields. - is stdin.")]


def read_object(file: str) -> dict[str, Any]:
    """Read a file, or stdin, that holds a JSON object."""
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise fail(f"{file} is not JSON: {error}", MISUSED) from None
    if not isinstance(fields, dict):
        raise fail(f"{file} must hold a JSON object", MISUSED)
    return fields


def print_json(answer: object) -> None:
    """Print an answer of the service."""
    print(json.dumps(msgspec.to_builtins(answer), indent=2))
