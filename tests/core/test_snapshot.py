"""The codec, and detectors whose checksum is right and whose content is not."""

import json
import struct
import tracemalloc
import zlib
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from core import Detector, InvalidSnapshot, readable_metas
from core.engine.state import VERSION
from core.snapshot import MAGIC, decode_snapshot, encode_snapshot
from tests.core.samples import clusters, detector
from tests.effort import tries

META = st.dictionaries(
    st.text(max_size=5), st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=3
)
ARRAYS = st.dictionaries(
    st.text(max_size=8),
    st_numpy.arrays(
        st.sampled_from([np.float64, np.int64, np.int8, np.uint8, np.bool_]),
        st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    max_size=4,
)


@settings(max_examples=tries(50))
@given(META, ARRAYS)
def test_round_trip(meta, arrays):
    got_meta, got = decode_snapshot(encode_snapshot("k", 3, meta, arrays), "k", 3)
    assert got_meta == meta
    assert list(got) == list(arrays)
    for name, array in arrays.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes()
        assert got[name].flags.writeable


BLOB = encode_snapshot("k", 3, {"m": 2}, {"x": np.arange(3.0), "b": np.array([True])})


def test_metas_are_read_whatever_is_damaged_behind_them():
    outer = encode_snapshot("outer", 1, {"m": 1}, {"inner": np.frombuffer(BLOB, np.uint8)})
    assert list(readable_metas(outer)) == [{"m": 1}, {"m": 2}]
    assert list(readable_metas(outer[:-20])) == [{"m": 1}, {"m": 2}]
    damaged = outer.replace(b'{"kind":"outer"', b'{"kind":"out\xffr"')
    assert list(readable_metas(damaged)) == [{"m": 2}]


@pytest.mark.parametrize(
    "body",
    [b"", MAGIC, MAGIC + b"\1", 2 * MAGIC + struct.pack("<I", 9) + b"[" * 9, MAGIC + struct.pack("<I", 2) + b"[]"],
)
def test_what_holds_no_header_has_no_meta(body):
    assert list(readable_metas(body)) == []


@pytest.mark.parametrize("length", range(len(BLOB)))
def test_every_truncation_is_refused(length):
    with pytest.raises(InvalidSnapshot):
        decode_snapshot(BLOB[:length], "k", 3)


@pytest.mark.parametrize("at", range(len(BLOB)))
def test_every_flipped_byte_is_refused(at):
    for bit in (1, 0x80, 0xFF):
        with pytest.raises(InvalidSnapshot):
            decode_snapshot(BLOB[:at] + bytes([BLOB[at] ^ bit]) + BLOB[at + 1 :], "k", 3)


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"\x00" * 100,
        b"{}",
        b"SQLite format 3\x00" + bytes(84),
        zlib.compress(BLOB),
        BLOB + b"\n",
        b"\x80\x05K\x01.",
    ],
)
def test_foreign_files_are_refused(foreign):
    with pytest.raises(InvalidSnapshot):
        decode_snapshot(foreign, "k", 3)


@pytest.mark.parametrize(("kind", "version"), [("other", 3), ("k", 2), ("k", 4)])
def test_another_kind_or_version_is_refused(kind, version):
    with pytest.raises(InvalidSnapshot):
        decode_snapshot(BLOB, kind, version)


def signed(header: bytes, payload: bytes = b"", length: int | None = None) -> bytes:
    """A blob of any header, under a checksum that is right."""
    body = MAGIC + struct.pack("<I", len(header) if length is None else length) + header + payload
    return body + blake2b(body, digest_size=8).digest()


def claiming(*entries: Any) -> bytes:
    return signed(json.dumps({"kind": "k", "version": 3, "meta": {}, "arrays": entries}).encode())


@pytest.mark.parametrize(
    "blob",
    [
        claiming(["x", "<f8", [2**40]]),
        claiming(["x", "<f8", [2**62, 2**62]]),
        claiming(["x", "<f8", [2**62] * 8]),
        claiming(*[["x", "<f8", [2**20]]] * 100),
        claiming(["x", "<f8", [10**30]]),
        claiming(["x", "<f8", [0, 2**63]]),
        claiming(["x", "|u1", [2**33]]),
        signed(b"{}", length=2**32 - 1),
        signed(b"[" * 200_000),
        signed(b'{"a":' * 100_000),
    ],
)
def test_what_a_header_claims_is_not_allocated(blob):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidSnapshot):
            decode_snapshot(blob, "k", 3)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(blob) + 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        "x",
        ["x", "<f8"],
        ["x", "<f8", 0],
        ["x", "<f8", [-1]],
        ["x", "<f8", [0.0]],
        ["x", "<f8", [True]],
        ["x", "<f8", ["0"]],
        ["x", "O", [0]],
        ["x", "|O", [0]],
        ["x", ">f8", [0]],
        ["x", "<f4", [0]],
        [1, "<f8", [0]],
        ["x", ["<f8"], [0]],
        ["x", "<f8", [0] * 9],
    ],
)
def test_a_wrong_layout_is_refused(entry):
    with pytest.raises(InvalidSnapshot):
        decode_snapshot(claiming(entry), "k", 3)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{",
        b'"k"',
        b'{"kind":"k"}',
        b'{"kind":"k","version":3}',
        b'{"kind":"k","version":3,"meta":[],"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{},"arrays":{}}',
        b'{"kind":"k","version":' + b"9" * 5000 + b',"meta":{},"arrays":[]}',
        b'{"kind":"k","version":3.0,"meta":{},"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{},"meta":{},"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{"a":{"b":1,"b":1}},"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{"a":NaN},"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{"a":-Infinity},"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{"a":1e999},"arrays":[]}',
        b'{"kind":"k","version":3,"meta":{},"arrays":[["x","<f8",[0]],["x","<f8",[0]]]}',
    ],
)
def test_a_wrong_header_is_refused(header):
    with pytest.raises(InvalidSnapshot):
        decode_snapshot(signed(header), "k", 3)


# whole detectors


def trained(**fields: Any) -> bytes:
    model = detector(2, **fields)
    X = clusters(160, 2, missing=0.05)
    records = model.observe(X, np.arange(160.0)).records
    model.feedback(records[40:100], [i % 7 == 0 for i in range(60)])
    model.observe(X[:3], np.arange(160.0, 163.0))
    return model.to_bytes()


def waiting() -> bytes:
    model = detector(2)
    model.observe(clusters(5, 2))
    return model.to_bytes()


SNAPSHOTS = [
    trained(round_growth=0.1),
    trained(family="gaussian_diagonal", threshold="hindsight", learn_from="decided_normal"),
    trained(mixture="eg", threshold="ogd"),
    trained(profile="paper", learn_from="all"),
    trained(max_nodes=5, split="both", half_life_seconds=100.0, round_growth=0.2),
    trained(mixture="soft_bayes", split="both", half_life_samples=50.0, drift_relative=True),
    waiting(),
]
QUERIES = np.array([[0.0, 0.0], [1.0, -1.0], [np.nan, 1.0], [50.0, 50.0], [1e200, -1e300]])
BAD = [0, -1, 1, -2, 0.5, 5, 300, 1e-300, 1e30, -1e30, 1e150, -1e300, 1.7e308, np.nan, np.inf, -np.inf, 2**62, -(2**62)]


def use_or_refuse(blob: bytes) -> None:
    """Either the bytes are refused, or all that one does with a detector works and gives finite numbers."""
    try:
        model = Detector.from_bytes(blob)
    except InvalidSnapshot:
        return
    if model.ready:
        assert np.isfinite(model.score(QUERIES)).all()
    out = model.observe(np.repeat(QUERIES[:4], 10, axis=0), np.arange(200.0, 240.0))
    assert np.isfinite(out.score[out.ready]).all()
    assert np.isfinite(out.threshold[out.ready]).all()
    labelled = model.feedback(out.records[:20], [True, False] * 10)
    model.feedback(labelled.records, [False, True] * 10)
    model.describe()
    model.costs()
    Detector.from_bytes(model.to_bytes())


def cast(value: float, dtype: np.dtype) -> Any:
    """What a value is in this type, or the nearest thing to it."""
    if dtype.kind == "f":
        return value
    limits = (0, 255) if dtype.itemsize == 1 else (-(2.0**62), 2.0**62)
    return int(np.clip(np.nan_to_num(value), *limits))


@settings(max_examples=tries(80), deadline=None)
@given(st.data())
def test_a_detector_with_one_array_mutated_is_refused_or_works(data):
    """A pending round longer than its room never ended: observe looped for ever on a snapshot with a right checksum."""
    meta, arrays = decode_snapshot(SNAPSHOTS[data.draw(st.integers(0, len(SNAPSHOTS) - 1))], "detector", VERSION)
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    match data.draw(st.sampled_from(["drop", "cut", "grow", "flat", "retype", "fill", "entry", "entry", "entry"])):
        case "drop":
            del arrays[name]
        case "cut":
            arrays[name] = array[:-1]
        case "grow":
            arrays[name] = np.concatenate([array, array[-1:]])
        case "flat":
            arrays[name] = array.reshape(-1, 1)
        case "retype":
            with np.errstate(invalid="ignore"):  # no integer is NaN
                arrays[name] = array.astype(np.int64 if array.dtype == np.float64 else np.float64)
        case "fill":
            array[...] = cast(data.draw(st.sampled_from(BAD)), array.dtype)
        case "entry" if array.size:
            at = data.draw(st.integers(0, array.size - 1))
            array.flat[at] = cast(data.draw(st.sampled_from(BAD)), array.dtype)
    use_or_refuse(encode_snapshot("detector", VERSION, meta, arrays))


@settings(max_examples=tries(20), deadline=None)
@given(st.data())
def test_a_detector_with_its_meta_mutated_is_refused_or_works(data):
    meta, arrays = decode_snapshot(SNAPSHOTS[data.draw(st.integers(0, len(SNAPSHOTS) - 1))], "detector", VERSION)
    junk = st.sampled_from([None, True, 0, -1, 3, 2**62, 10**30, 1.5, "", "x", [], [1], {}, {"a": 1}])
    target = data.draw(st.sampled_from([meta, meta["config"]]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(junk)
    use_or_refuse(encode_snapshot("detector", VERSION, meta, arrays))


def mutated(index: int, name: str, change: Any) -> bytes:
    meta, arrays = decode_snapshot(SNAPSHOTS[index], "detector", VERSION)
    arrays[name] = change(arrays[name])
    return encode_snapshot("detector", VERSION, meta, arrays)


def with_entry(at: Any, value: float) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tree_cut_node", with_entry(0, 1)),
        ("tree_cut_node", with_entry(0, 2)),
        ("tree_cut_node", with_entry(0, -1)),
        ("tree_cut_node", with_entry(0, 10**9)),
        ("tree_normal", with_entry(0, 0.0)),
        ("tree_since", lambda a: a[:-1]),
        ("node_count", with_entry(0, -1.0)),
        ("node_scatter", with_entry((0, 0), -1.0)),
        ("node_mean", with_entry((0, 0), 1e300)),
        ("prior_scale", with_entry((0, 0), 0.0)),
        ("prior_strength", with_entry(0, 0.0)),
        ("prior_mean_count", with_entry(0, -1.0)),
        ("candidate_has", lambda a: np.ones_like(a)),
        ("candidate_normal", lambda a: np.full_like(a, -1.0)),
        ("recent_spread", with_entry((0, 0), -1.0)),
        ("recent_moment", lambda a: np.zeros(3)),
        ("recent_ordinal", with_entry(1, 0)),
        ("recent_x", lambda a: a[:-1]),
        ("weights", with_entry(0, 0.0)),
        ("weights", lambda w: 2 * w),
        ("mixture", with_entry(0, -9.0)),
        ("progress", with_entry(0, -1)),
        ("progress", lambda a: np.append(a, 1)),
        ("pending", lambda p: np.zeros((500, 2))),
        ("pending", lambda p: np.full((1, 2), np.nan)),
        ("pending", lambda p: np.full((1, 2), np.inf)),
        ("scale", with_entry(0, 0.0)),
        ("scale", with_entry(0, 1e-300)),
        ("warmup", lambda w: w[:0]),
        ("outcome_counts", with_entry((0, 0), -1)),
        ("outcome_confusion", with_entry((0, 0), 10**6)),
        ("threshold_labels", with_entry((1, 0), 0)),
        ("threshold_labels", with_entry((2, 0), 10**9)),
        ("ordinary_count", with_entry(0, 10**9)),
        ("threshold", with_entry(0, np.nan)),
    ],
)
def test_broken_content_under_a_right_checksum_is_refused(name, change):
    with pytest.raises(InvalidSnapshot):
        Detector.from_bytes(mutated(0, name, change))


def test_the_mutations_are_of_sound_snapshots():
    for blob in SNAPSHOTS:
        assert Detector.from_bytes(blob).to_bytes() == blob
