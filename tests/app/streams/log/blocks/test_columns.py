"""Columns come back bit for bit, and cost little where they say little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app.streams.log.blocks.columns import Column, Form, decode, encode
from app.streams.log.blocks.decimals import from_whole, to_whole

ANY = st.sampled_from(["<f8", "<i8", "u1", "?"]).flatmap(lambda kind: arrays.arrays(kind, st.integers(0, 40)))
ROWS = np.arange(2000)
NOISE = np.random.default_rng(0).normal(size=2000)
LISTED = {
    "constant": (np.full(2000, np.nan), Form.CONSTANT, 8),
    "even": (ROWS + 17, Form.EVEN, 16),
    "even, wrapping": (np.array([2**63 - 1, -(2**63), 1 - 2**63]), Form.EVEN, 16),
    "few values": (NOISE[ROWS % 7], Form.ROWS, 200),
    "noise": (NOISE, Form.PLANES, 7.4 * 2000),
    "rising": (np.cumsum(np.abs(np.round(100 * NOISE)) + 10**9).astype(np.int64), Form.STEP_PLANES, 1.6 * 2000),
    "rising by few steps": (np.cumsum(np.where(ROWS % 3, 10**9, 7)), Form.STEP_ROWS, 100),
    "two decimal places": (np.round(20 + NOISE, 2), Form.DECIMAL, 1.3 * 2000),
    "counts, some missing": (np.where(ROWS % 9, ROWS % 5, np.nan), Form.DECIMAL, 120),
    "seconds": (1.8e9 + 60.0 * ROWS + ROWS // 1000, Form.DECIMAL, 90),
    "wide": (np.tile(np.arange(12.0), (50, 1)), Form.CONSTANT, 96),
}


@given(ANY)
def test_a_column_comes_back(values):
    back = decode(encode(values))
    assert back.tobytes() == values.tobytes()
    assert len(back) == len(values)


@pytest.mark.parametrize("name", LISTED)
def test_each_form_is_taken_where_it_is_best(name):
    values, form, most = LISTED[name]
    column = encode(values)
    assert (column.form, len(column.data) <= most) == (form, True), len(column.data)
    assert decode(column).tobytes() == values.tobytes()


def test_bits_that_numbers_do_not_show_come_back():
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000, 1 << 63, 1], np.uint64)  # NaNs, -0.0, the least number
    assert decode(encode(odd.view("<f8"))).tobytes() == odd.tobytes()


EXTREMES = [0.0, -0.0, 0.1 + 0.2, 1e-9, 1e-10, 1e15 + 0.1, 2.0**53, -(2.0**62), 1e300, np.inf, -np.inf, np.nan]


@given(st.lists(st.sampled_from(EXTREMES) | st.decimals(-1e6, 1e6, places=3).map(float), min_size=1, max_size=30))
def test_decimal_fractions_come_back_bit_for_bit(listed):
    values = np.array(listed)
    assert decode(encode(values)).tobytes() == values.tobytes()
    if (found := to_whole(values)) is not None:
        assert from_whole(*found).tobytes() == values.tobytes()


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x0a\x00" + bytes(8), b"\x02\x06" + bytes(8), b"\x02\xff" + bytes(8)])
def test_decimal_fractions_of_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"."):
        decode(Column(Form.DECIMAL, 1, 8, data))


@pytest.mark.parametrize("n", [1999, 2001, 2**40])
def test_a_column_that_is_not_as_long_as_it_says_is_refused(n):
    column = encode(NOISE)
    with pytest.raises(ValueError, match="not as long"):
        decode(Column(column.form, n, column.width, column.data))
