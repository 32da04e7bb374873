"""Columns come back bit for bit, and cost little where they say little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app.streams.log.blocks.columns import Column, Form, decode, encode

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


@pytest.mark.parametrize("n", [1999, 2001, 2**40])
def test_a_column_that_is_not_as_long_as_it_says_is_refused(n):
    column = encode(NOISE)
    with pytest.raises(ValueError, match="not as long"):
        decode(Column(column.form, n, column.width, column.data))
