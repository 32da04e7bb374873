"""Names of streams."""

import re

from app.streams.errors import InvalidStreamId

PATTERN = "[A-Za-z0-9._:-]{1,128}"
NOT_DOTS = r"(?!\.+$)"
LIMIT = "1 to 128 letters, digits, dots, underscores, colons or hyphens, not only dots"
_STREAM_ID = re.compile(PATTERN)


def checked_stream_id(text: str, field: str = "stream") -> str:
    """Give the id back, or raise InvalidStreamId for this field.

    Ids of dots alone are refused: a client that normalises the path /streams/.. would reach another route.
    """
    if not _STREAM_ID.fullmatch(text) or not text.strip("."):
        raise InvalidStreamId(field, text, LIMIT)
    return text
