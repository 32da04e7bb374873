"""Positions in a stream's log, as clients and events write them: 17-0."""

from app.storage import MAX_SEQ, Position

__all__ = ["MAX_SEQ", "Position", "parse_position"]


def parse_position(text: str) -> Position:
    """Read a position. Raises ValueError for any other text.

    >>> parse_position("17-0")
    Position(seq=17, sub=0)
    """
    seq, dash, sub = text.partition("-")
    if not (dash and _is_count(seq) and _is_count(sub)):
        raise ValueError(f"{text!r} is not a position in a log, such as 17-0")
    return Position(int(seq), int(sub))


def _is_count(text: str) -> bool:
    # the length first: int() takes long for many digits
    return text.isascii() and text.isdigit() and len(text) <= len(str(MAX_SEQ)) and int(text) <= MAX_SEQ
