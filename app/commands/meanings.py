"""Options that say what the cells of a file mean."""

import codecs
import io
from zoneinfo import ZoneInfo

from app.commands.connection import MISUSED, fail


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
