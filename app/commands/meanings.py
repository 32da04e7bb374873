"""Options that say what the columns and cells of a file mean."""

import codecs
import io
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import typer

from app.commands.connection import MISUSED, fail

LabelColumn = Annotated[
    str | None, typer.Option(help="Column of the truth: 1 anomalous, 0 normal, empty unknown.", show_default=False)
]
LabelValues = Annotated[
    str | None,
    typer.Option(
        metavar="ANOMALY,NORMAL",
        help="What the labels are called; * is all others.",
        show_default="1,0 or true,false",
    ),
]
FeatureColumns = Annotated[
    str, typer.Option(help="Feature columns, comma-separated.", show_default="all without another role")
]
DroppedColumns = Annotated[str, typer.Option("--drop", "--ignore", help="Columns to leave out, comma-separated.")]
TimestampColumn = Annotated[
    str | None, typer.Option(help="Column of times: ISO 8601 or epoch time.", show_default=False)
]
TimestampUnit = Annotated[
    Literal["s", "ms", "us", "ns"] | None,
    typer.Option(help="Unit of times that are numbers.", show_default="the one that makes them 1990 to 2100"),
]
Timezone = Annotated[
    str | None,
    typer.Option(help="Zone of times without one, and of the calendar: Europe/Berlin.", show_default="UTC"),
]
IdColumn = Annotated[str | None, typer.Option(help="Column of sample ids.", show_default=False)]
Separator = Annotated[
    str | None, typer.Option(help="comma, semicolon, tab or another character.", show_default="guessed")
]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV files.")]
Header = Annotated[str, typer.Option(help="Names of the columns, comma-separated, if CSV files have no line of them.")]


def label_values_of(text: str | None) -> tuple[str, str] | None:
    """Read --label-values."""
    if text is None:
        return None
    anomalous, _, normal = (part.strip() for part in text.partition(","))
    if not anomalous or not normal or "," in normal:
        raise fail(f"--label-values {text!r} is not two values, the anomalous and the normal one: 1,0", MISUSED)
    return anomalous, normal


def zone_of(name: str | None) -> str | None:
    """Check --timezone."""
    if name is not None:
        try:
            ZoneInfo(name)
        except (KeyError, OSError, ValueError):
            raise fail(f"--timezone {name!r} is not known; an example is Europe/Berlin", MISUSED) from None
    return name


def encoding_of(name: str) -> str:
    """Read --encoding."""
    try:
        # some codecs are not of text, which no decoding of nothing tells
        io.TextIOWrapper(io.BytesIO(), encoding=name)
        return codecs.lookup(name).name
    except LookupError:
        raise fail(f"--encoding {name!r} is not known; examples are utf-8, latin-1 and utf-16", MISUSED) from None
