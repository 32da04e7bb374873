"""Names of streams, and of samples."""

import re
from typing import Final

from app.streams.errors import InvalidStreamId

PATTERN = "[A-Za-z0-9._:-]{1,128}"
NOT_DOTS = r"(?!\.+$)"
LIMIT = "1 to 128 letters, digits, dots, underscores, colons or hyphens, not only dots"
LONGEST_SAMPLE_ID: Final = 256
_STREAM_ID = re.compile(PATTERN)
_NOT_IN_SAMPLE_ID = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def checked_stream_id(text: str, field: str = "stream") -> str:
    """Give the id back, or raise InvalidStreamId for this field.

    Ids of dots alone are refused: a client that normalises the path /streams/.. would reach another route.
    """
    if not _STREAM_ID.fullmatch(text) or not text.strip("."):
        raise InvalidStreamId(field, text, LIMIT)
    return text


def is_sample_id(text: str) -> bool:
    """Tell whether a sample can have an id, by its length, control characters and halves of surrogate pairs."""
    return len(text) <= LONGEST_SAMPLE_ID and not _NOT_IN_SAMPLE_ID.search(text)
