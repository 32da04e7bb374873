"""State to bytes and back: magic, header, named arrays, checksum. Never pickle.

Layout: MAGIC, header length (4 bytes, little-endian), header (JSON: kind, version, meta, and name, type and shape of
each array), the arrays' bytes in that order, 8 bytes of BLAKE2b over all before.
"""

import json
import math
import struct
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidSnapshot

MAGIC: Final = b"ITAN\x00\r\n\x01"
_LENGTH: Final = struct.Struct("<I")
DIGEST_BYTES: Final = 8
_PREFIX_BYTES: Final = len(MAGIC) + _LENGTH.size
_TYPES: Final = {code: np.dtype(code) for code in ("<f8", "<i8", "|i1", "|u1", "|b1")}

_TYPE_OF: Final[Mapping[type[np.generic], np.dtype[Any]]] = {
    kind: np.dtype(kind) for kind in (np.float64, np.int64, np.int8, np.uint8, np.bool_)
}

Arrays = Mapping[str, NDArray[Any]]


def encode_snapshot(kind: str, version: int, meta: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Write meta (JSON-able) and arrays (float64, int64, int8, uint8 or bool) as bytes; equal input gives equal bytes.

    >>> blob = encode_snapshot("demo", 1, {"m": 2}, {"x": np.arange(3.0)})
    >>> meta, arrays = decode_snapshot(blob, "demo", 1)
    >>> meta, arrays["x"]
    ({'m': 2}, array([0., 1., 2.]))
    """
    plain = {name: np.asarray(a, a.dtype.newbyteorder("<"), order="C") for name, a in arrays.items()}
    layout = [[name, a.dtype.str, a.shape] for name, a in plain.items()]
    header = json.dumps(
        {"kind": kind, "version": version, "meta": meta, "arrays": layout}, separators=(",", ":"), allow_nan=False
    ).encode()
    body = b"".join([MAGIC, _LENGTH.pack(len(header)), header, *(a.tobytes() for a in plain.values())])
    return body + digest(body)


def decode_snapshot(
    blob: bytes, kind: str, version: int, *older: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the meta and the arrays of a blob, as decode_versions does."""
    _, meta, arrays = decode_versions(blob, kind, version, *older)
    return meta, arrays


def decode_versions(
    blob: bytes, kind: str, version: int, *older: int
) -> tuple[int, dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the version, the meta and the arrays of a blob of this kind and version, or of one of the older versions.

    Raises InvalidSnapshot if the blob is foreign, damaged, or of another kind or version. Sizes are checked against the
    bytes at hand before anything is allocated.
    """
    header, payload = _split(blob)
    if header.get("kind") != kind:
        raise InvalidSnapshot(f"it holds {header.get('kind')!r:.40}, not {kind!r}")
    if type(header.get("version")) is not int or header["version"] not in (version, *older):
        read = f"versions {', '.join(map(str, sorted(older)))} and {version}" if older else f"version {version}"
        raise InvalidSnapshot(f"its version is {header.get('version')!r:.40}; this program reads {read}")
    meta, layout = header.get("meta"), header.get("arrays")
    if not isinstance(meta, dict) or not isinstance(layout, list):
        raise InvalidSnapshot("its header is incomplete")
    return header["version"], meta, _arrays(layout, payload)


def readable_metas(blob: bytes) -> Iterator[dict[str, Any]]:
    """Find the metas that can still be read in a blob that may be damaged, the outer one first.

    A snapshot may hold another one. No checksum is looked at: what was found may be wrong.
    """
    start = blob.find(MAGIC)
    while start >= 0:
        try:
            (length,) = _LENGTH.unpack_from(blob, start + len(MAGIC))
            header = parsed(blob[start + _PREFIX_BYTES : start + _PREFIX_BYTES + length])
            if isinstance(header["meta"], dict):
                yield header["meta"]
        except (struct.error, ValueError, RecursionError, LookupError, TypeError):
            pass
        start = blob.find(MAGIC, start + 1)


def digest(body: bytes | memoryview) -> bytes:
    """Give the checksum that ends everything that core writes."""
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def _split(blob: bytes) -> tuple[dict[str, Any], memoryview]:
    if not blob.startswith(MAGIC):
        raise InvalidSnapshot("it does not begin with the mark of an itan snapshot")
    if len(blob) < _PREFIX_BYTES + DIGEST_BYTES:
        raise InvalidSnapshot("it is cut short")
    view = memoryview(blob)
    body, checksum = view[:-DIGEST_BYTES], view[-DIGEST_BYTES:]
    if digest(body) != checksum:
        raise InvalidSnapshot("its checksum does not match: it is damaged or cut short")
    (length,) = _LENGTH.unpack(view[len(MAGIC) : _PREFIX_BYTES])
    if length > len(body) - _PREFIX_BYTES:
        raise InvalidSnapshot("its header is longer than the file")
    try:
        header = parsed(bytes(body[_PREFIX_BYTES : _PREFIX_BYTES + length]))
    except InvalidSnapshot:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidSnapshot("its header is not JSON") from error
    if not isinstance(header, dict):
        raise InvalidSnapshot("its header is not an object")
    return header, body[_PREFIX_BYTES + length :]


def parsed(text: bytes) -> Any:
    """Parse JSON. Raises InvalidSnapshot for a repeated name or a number that is not finite, ValueError for no JSON."""
    return json.loads(text, object_pairs_hook=_object, parse_float=_number, parse_constant=_number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise InvalidSnapshot("its header names a thing twice")
    return plain


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidSnapshot(f"its header holds {text:.40}, which is not a finite number")
    return value


def _arrays(layout: list[Any], payload: memoryview) -> dict[str, NDArray[Any]]:
    entries = [_entry(item) for item in layout]
    total = sum(size for _, _, _, size in entries)
    if total != len(payload):
        raise InvalidSnapshot(f"its arrays need {total} bytes and {len(payload)} are there")
    arrays, start = {}, 0
    for name, dtype, shape, size in entries:
        arrays[name] = np.ndarray(shape, dtype, payload, start).copy()
        start += size
    if len(arrays) < len(entries):
        raise InvalidSnapshot("it names an array twice")
    return arrays


def _entry(item: Any) -> tuple[str, np.dtype[Any], list[int], int]:
    """The name, type and shape of an array, and its size in bytes."""
    if isinstance(item, list) and len(item) == 3 and isinstance(item[0], str) and isinstance(item[1], str):
        name, code, shape = item
        if code in _TYPES and isinstance(shape, list) and len(shape) <= 8 and all(map(_is_length, shape)):
            dtype = _TYPES[code]
            return name, dtype, shape, math.prod(shape) * dtype.itemsize
    raise InvalidSnapshot("the layout of its arrays is not valid")


def _is_length(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def take(arrays: Arrays, name: str, kind: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    """Give the array of a name. Raises InvalidSnapshot unless it has this type and shape (-1 stands for any length)."""
    array = arrays.get(name)
    if array is None:
        raise InvalidSnapshot(f"its array {name!r} is missing")
    fits = array.shape == shape or (
        array.ndim == len(shape) and all(want in (-1, have) for want, have in zip(shape, array.shape, strict=True))
    )
    if array.dtype != _TYPE_OF[kind] or not fits:
        raise InvalidSnapshot(f"its array {name!r} has type {array.dtype} and shape {array.shape}")
    return array
