"""What a decoder says of a body, in plain words that name the fix."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

KINDS = {
    "object": "an object",
    "array": "an array",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}
NUMBER = "a number or null"
HELD = "a finite number that a double holds, at most 1.8e308"
TIME = "epoch seconds, or an RFC 3339 date and time with its offset, such as 2026-10-25T02:30:00Z"
ROW = "an array of numbers or nulls, or an object of named numbers or nulls"
ID = "null, or a text of 1 to 256 characters without control characters"

UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
MALFORMED_TIME = "Invalid RFC3339 encoded datetime"
MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
EXPECTED = re.compile(r"Expected `([^`]*)`(?:, got `[^`]*`)?(?: (.*))?", re.DOTALL)
BOUND = re.compile(r"(of length )?([<>]=) (\d+)")
WORDS = {">=": "at least", "<=": "at most"}


def plain(what: str, known: Sequence[str] = ()) -> str:
    """Say what must be, given what a decoder says; known are the fields of the object in question."""
    if unknown := UNKNOWN.fullmatch(what):
        return left_out(unknown[1], known)
    if MISSING.fullmatch(what):
        return "given"
    if what == "Number out of range":
        return HELD
    if what == MALFORMED_TIME:
        return TIME
    expected = EXPECTED.fullmatch(what)
    return what if expected is None else wanted(expected[1].split(" | "), expected[2] or "")


def wanted(kinds: Sequence[str], bound: str) -> str:
    """Say which kinds of value are wanted, in which bounds."""
    if "datetime" in kinds:
        return TIME
    kind = " or ".join(KINDS.get(kind, kind) for kind in kinds)
    if bound.startswith("matching regex"):
        return f"{kind} without control characters"
    if found := BOUND.fullmatch(bound):
        unit = {"str": " characters", "array": " entries"}.get(kinds[0], "") if found[1] else ""
        return f"{kind} of {WORDS[found[2]]} {found[3]}{unit}".replace(" 1 entries", " one entry")
    return kind


def left_out(name: str, known: Sequence[str]) -> str:
    """Say that a field must not be there, and which one may be meant."""
    meant = get_close_matches(name[:80].lower(), known, 1)
    if meant:
        return f"left out: did you mean {meant[0]}?"
    return f"left out: the fields are {', '.join(known)}" if known else "left out"
