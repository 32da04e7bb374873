"""Records: indexing, joining some of different widths, and the way through bytes."""

import struct
from hashlib import blake2b

import numpy as np
import pytest

from core import InvalidSnapshot
from core.records import Records
from core.records.encoding import MAGIC
from core.records.layout import LEARNED, NOT_LEARNED, row_type
from tests.core.samples import clusters, detector


def observed(n: int = 200, *, missing: float = 0.1, **fields) -> Records:
    model = detector(2, **fields)
    records = model.observe(clusters(n, 2, missing=missing)).records
    return model.feedback(records, [i % 9 == 0 if i % 2 else None for i in range(n)]).records


def same(a: Records, b: Records) -> bool:
    """Equal in what they say, whatever their width."""
    wide = [Records.concatenate([r], 1024) for r in (a, b)]
    return wide[0].rows.tobytes() == wide[1].rows.tobytes()


PAPER = {"profile": "paper", "learn_from": "all"}


def test_a_record_tells_when_and_as_what_its_sample_was_learned():
    X, times = clusters(100, 2), 1e9 + np.arange(100.0)
    records = detector(2, half_life_seconds=50.0).observe(X, times).records
    records = records[32:]  # those of the warm-up are not learned when they are returned
    assert records.rows["ordinal"].tolist() == list(range(33, 101))
    assert np.array_equal(records.time, times[32:])
    assert (records.rows["status"] == LEARNED).all()
    assert np.isnan(detector(2).observe(X).records.time).all()
    altered = ~np.isnan(records.rows["learned"]).any(1)
    assert altered[60 - 32]  # twenty times the size
    assert altered.sum() < 20
    assert records.rows["left"].shape[1] == 0


def test_only_samples_that_are_learned_have_an_ordinal():
    model = detector(2, scaling="none", learn_from="labelled_normal")
    records = model.observe(clusters(6, 2)).records
    assert (records.rows["status"] == NOT_LEARNED).all()
    late = model.feedback(records[np.array([4, 2])], [False, False]).records
    assert late.rows["ordinal"].tolist() == [1, 2]


def test_the_papers_records_keep_the_sides_of_its_two_means():
    records = observed(**PAPER)
    assert records.rows["left"].any()
    assert records.rows["learned"].shape[1] == 2  # imputed ones differ from the sample


def test_indexing_gives_records():
    records = observed()
    assert len(records[5:9]) == 4
    assert records[5].seq.tolist() == [6]
    assert records[-1].seq.tolist() == [200]
    assert records[np.array([3, 1])].seq.tolist() == [4, 2]
    assert records[records.seq > 198].seq.tolist() == [199, 200]
    assert len(records[7:7]) == 0
    for outside in (200, -201):
        with pytest.raises(IndexError):
            records[outside]


@pytest.mark.parametrize("n", [0, 1, 200])
def test_bytes_round_trip(n):
    records = observed()[:n]
    back = Records.from_bytes(records.to_bytes())
    assert back.rows.dtype == records.rows.dtype
    assert back.rows.tobytes() == records.rows.tobytes()


def test_a_sliced_or_reordered_view_has_the_bytes_of_its_rows():
    records = observed()
    chosen = records[::3][::-1]
    assert same(Records.from_bytes(chosen.to_bytes()), records[np.arange(198, -1, -3)])


def test_records_of_different_widths_are_joined():
    records = observed(missing=0.0, **PAPER)
    parts = [records[i].compact() for i in range(200)]
    assert len({p.rows.dtype.itemsize for p in parts}) > 1
    assert same(Records.concatenate(parts), records)
    assert same(Records.concatenate(parts).compact(), records)
    with_empty = Records.concatenate([records[:0].compact(), records[:4], records[:0]])
    assert same(with_empty, records[:4])


@pytest.mark.parametrize("fields", [{}, PAPER], ids=["default", "paper"])
def test_narrow_records_take_labels_as_wide_ones_do(fields):
    X = clusters(300, 2, missing=0.1)
    one, other = detector(2, **fields), detector(2, **fields)
    records = one.observe(X).records
    other.observe(X)
    one.feedback(records, [i % 3 == 0 for i in range(300)])
    parts = [Records.from_bytes(records[i].compact().to_bytes()) for i in range(300)]
    other.feedback(Records.concatenate(parts), [i % 3 == 0 for i in range(300)])
    assert one.to_bytes() == other.to_bytes()


def test_every_flip_and_truncation_is_refused():
    blob = observed()[:2].to_bytes()
    for i in range(len(blob)):
        with pytest.raises(InvalidSnapshot):
            Records.from_bytes(blob[:i])
        with pytest.raises(InvalidSnapshot):
            Records.from_bytes(blob[:i] + bytes([blob[i] ^ 0x20]) + blob[i + 1 :])
    with pytest.raises(InvalidSnapshot):
        Records.from_bytes(detector(2).to_bytes())


def with_layout(records: Records, place: int, width: int) -> bytes:
    """The bytes of records with another version or width in the header, under a checksum that is right."""
    body = bytearray(records.to_bytes()[:-8])
    start = len(MAGIC) + 2 * place
    body[start : start + 2] = width.to_bytes(2, "little")
    return bytes(body) + blake2b(body, digest_size=8).digest()


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("width", [0, 7, 999, 2**16 - 1])
def test_a_layout_that_does_not_fit_is_refused(place, width):
    """Version, and the widths of x, left and learned."""
    records = observed(40, **PAPER)
    records = records[records.altered][:3]
    assert len(records) == 3
    assert records.rows.dtype["left"].shape[0] not in (0, 7)
    with pytest.raises(InvalidSnapshot):
        Records.from_bytes(with_layout(records, place, width))


def sealed(version: int, widths: tuple[int, int, int], rows: bytes) -> bytes:
    body = MAGIC + struct.pack("<HHHH", version, *widths) + rows
    return body + blake2b(body, digest_size=8).digest()


def test_only_altered_rows_are_written_with_how_they_were_learned():
    records = observed(**PAPER)
    m, n_altered = 2, int(records.altered.sum())
    assert 0 < n_altered < len(records) / 2
    plain = records[~records.altered].compact()
    assert plain.rows.dtype["learned"].shape[0] == 0
    side_bytes = records.rows.dtype["left"].shape[0] - plain.rows.dtype["left"].shape[0]
    row = plain.rows.itemsize + side_bytes
    assert len(records.to_bytes()) == 24 + 4 + row * len(records) + (4 + 16 * m) * n_altered


def test_records_are_parted_by_width():
    records = observed()
    altered, others = records.by_width()
    assert altered.altered.all()
    assert others.rows.dtype["learned"].shape[0] == 0
    joined = Records.concatenate([altered, others])
    assert same(joined[np.argsort(joined.seq)], records)
    assert others.by_width()[0] is others


def test_rows_of_earlier_builds_that_wrote_all_of_them_wide_are_read():
    records = observed(**PAPER)
    widths = tuple(records.rows.dtype[name].shape[0] for name in ("x", "left", "learned"))
    blob = sealed(3, widths, records.rows.tobytes())
    assert len(blob) > 1.2 * len(records.to_bytes())
    assert Records.from_bytes(blob).rows.tobytes() == records.rows.tobytes()
    assert Records.shape_of(blob) is None
    for some in (records, records[:0], records[:1], records[:2].compact()):
        widths = tuple(some.rows.dtype[name].shape[0] for name in ("x", "left", "learned"))
        assert Records.shape_of(some.to_bytes()) == (len(some), *widths)
    assert Records.shape_of(blob[:-1]) is None


@pytest.mark.parametrize(
    "rows",
    [
        b"",
        (2).to_bytes(4, "little"),
        (2**32 - 1).to_bytes(4, "little") + bytes(200),
        (0).to_bytes(4, "little") + bytes(4 + 16),  # the first of no rows is altered
    ],
)
def test_altered_rows_that_are_not_there_are_refused(rows):
    with pytest.raises(InvalidSnapshot):
        Records.from_bytes(sealed(4, (1, 0, 1), rows))


def test_altered_rows_out_of_order_are_refused():
    records = observed(**PAPER)
    altered = records[records.altered][:2]
    blob, one = altered.to_bytes(), 4 + 16 * 2
    body, first, second = blob[16 : -8 - 2 * one], blob[-8 - 2 * one : -8 - one], blob[-8 - one : -8]
    widths = tuple(altered.rows.dtype[name].shape[0] for name in ("x", "left", "learned"))
    assert sealed(4, widths, body + first + second) == blob
    for tail in (second + first, first + first):
        with pytest.raises(InvalidSnapshot, match="in order"):
            Records.from_bytes(sealed(4, widths, body + tail))


def test_rows_that_would_grow_to_gigabytes_are_refused():
    n, widths = 1000, (1, 0, 2**16 - 1)
    plain = Records.empty(n, 1, 0).rows.tobytes()
    with pytest.raises(InvalidSnapshot, match="layout"):
        Records.from_bytes(sealed(4, widths, n.to_bytes(4, "little") + plain))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("label", 2),
        ("label", -128),
        ("status", 4),
        ("status", -1),
        ("x", np.inf),
        ("score", np.inf),
        ("learned", -np.inf),
        ("spread", np.inf),
        ("time", np.inf),
    ],
)
def test_values_out_of_range_are_refused(field, value):
    records = observed()
    broken = Records(records.rows.copy())
    broken.rows[field][100] = value
    with pytest.raises(InvalidSnapshot):
        Records.from_bytes(broken.to_bytes())


def test_a_boolean_of_two_is_refused():
    records = Records(observed().rows.copy())
    offset = records.rows.dtype.fields["is_anomaly"][1]
    records.rows.view(np.uint8).reshape(len(records), -1)[3, offset] = 2
    with pytest.raises(InvalidSnapshot):
        Records.from_bytes(records.to_bytes())


def test_a_row_is_small():
    """Memory of the label horizon: a plain record of 8 features and 127 nodes stays below 200 bytes."""
    assert row_type(8, 0, 0).itemsize < 200


def test_many_are_read_as_one_by_one():
    model, X = detector(2), clusters(400, 2)
    blobs = [model.observe(X[i : i + n]).records.to_bytes() for i, n in [(0, 1), (1, 1), (2, 200), (202, 198)]]
    together = Records.all_from_bytes(blobs)
    one_by_one = [Records.from_bytes(blob) for blob in blobs]
    for name in ("seq", "x", "score", "threshold", "is_anomaly", "ready", "label", "time"):
        expected = np.concatenate([getattr(records, name) for records in one_by_one])
        np.testing.assert_array_equal(getattr(together, name), expected)
    for damaged in (blobs[1][:-1], blobs[1][:-1] + b"\x00", b""):
        with pytest.raises(InvalidSnapshot):
            Records.all_from_bytes([blobs[0], damaged])
