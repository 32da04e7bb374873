"""Splits a body into its fields, undecoded: their text alone tells most of what is wrong."""

import asyncio
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from app.api.bodies.json_tree import read_tree
from app.api.bodies.reading import (
    QUICK_BYTES,
    InvalidBody,
    InvalidJson,
    checked_tree,
    fields_of,
    invalid_body,
    invalid_json,
)
from app.api.routing import NDJSON
from app.streams.faults import shown


class RawObserveBody(msgspec.Struct, forbid_unknown_fields=True):
    """The parts of a body of samples."""

    samples: Raw
    ids: Raw | UnsetType = UNSET
    timestamps: Raw | UnsetType = UNSET


class RawDensityBody(msgspec.Struct, forbid_unknown_fields=True):
    """The parts of a body of points."""

    points: Raw
    timestamps: Raw | UnsetType = UNSET


class RawFeedbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """The parts of a body of labels."""

    labels: Raw | UnsetType = UNSET
    ranges: Raw | UnsetType = UNSET


T = TypeVar("T", bound=msgspec.Struct)


def decode_short(decoder: msgspec.json.Decoder[T], body: bytes) -> tuple[T | None, msgspec.ValidationError | None]:
    """Decode a short body. Gives None for a long one, or None and the error for one of the wrong form."""
    if len(body) > QUICK_BYTES:
        return None, None
    try:
        return decoder.decode(body), None
    except msgspec.ValidationError as error:
        return None, error
    except (ValueError, RecursionError) as error:
        raise invalid_json(error, body) from error


async def raw_body(decoder: msgspec.json.Decoder[T], body: bytes, error: msgspec.ValidationError | None) -> T:
    """Split a body into its fields; InvalidBody or InvalidJson for other fields, or if it is nested too deep.

    `error` is what decoding it found wrong. The longest body takes about 20 ms; other requests run before and after.
    """
    await asyncio.sleep(0)
    parts = read_raw(decoder, body, error)
    await asyncio.sleep(0)
    return parts


def read_raw(decoder: msgspec.json.Decoder[T], body: bytes, error: msgspec.ValidationError | None) -> T:
    """Split a body."""
    try:
        parts = decoder.decode(body)
    except msgspec.ValidationError as wrong:
        raise wrong_form(str(wrong), body, decoder) from wrong
    except RecursionError as nested:
        raise (invalid_json(nested, body) if error is None else invalid_body(str(error), body, "")) from nested
    except ValueError as wrong:
        raise invalid_json(wrong, body) from wrong
    refuse_repeated_parts(parts, body)
    return parts


def refuse_repeated_parts(parts: msgspec.Struct, body: bytes) -> None:
    """Raise InvalidJson for a field given twice: its name and colons stand outside the fields that were found."""
    found = {name: part for name in parts.__struct_fields__ if (part := getattr(parts, name)) is not UNSET}
    outside = len(body) - sum(len(memoryview(part)) for part in found.values())
    if outside < len("{}") + sum(len(f',"{name}":') for name in found) + len('"ids":0'):
        return  # too short for another field
    if body.count(b":") == len(found) + sum(bytes(part).count(b":") for part in found.values()):
        return
    if len(body) <= QUICK_BYTES:
        checked_tree(body)
    raise InvalidJson("body", f"{len(body)} bytes", "an object that names each of its fields once")


def wrong_form(message: str, body: bytes, decoder: msgspec.json.Decoder[T]) -> InvalidBody:
    """Say what is wrong with the fields of a body, and what to send instead."""
    fields = fields_of(decoder)
    field, refused = fields[0], invalid_body(message, body, "", fields)
    is_plain_enough = refused.limit == "given" or "did you mean" in refused.limit
    limit = refused.limit if is_plain_enough else advice(body, field) or refused.limit
    return InvalidBody(refused.field, refused.value, limit)


def advice(body: bytes, field: str) -> str:
    """Say how to send what the body seems to hold."""
    try:
        tree = read_tree(body) if len(body) <= QUICK_BYTES else None
    except (ValueError, RecursionError):
        return ""
    if isinstance(tree, list):
        lines = f", or send one sample a line as {NDJSON}" if field == "samples" else ""
        return f'an object: wrap the array, {{"{field}": [...]}}{lines}'
    if field == "labels" or not isinstance(tree, dict) or field in tree:
        return ""
    if tree and all(value is None or type(value) in (int, float) for value in tree.values()):
        return f'part of a sample: wrap it, {{"{field}": [{shown(tree)}]}}'
    return f'left out: send {{"{field}": [{{"cpu": 0.3}}, ...]}}, one object or array a sample'
