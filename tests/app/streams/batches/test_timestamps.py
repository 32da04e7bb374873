import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.streams.batches.timestamps import EARLIEST, checked_times
from app.streams.errors import InvalidTimestamps
from tests.app.harness import NOW


def check(times, newest=None, allowance=3600.0, *, in_order=True):
    stamps = np.array(times, dtype=float)
    return checked_times(stamps, np.arange(len(stamps)), newest, NOW, allowance, in_order=in_order).tolist()


def test_a_time_ahead_of_the_clock_counts_as_now():
    assert check([NOW - 5, NOW + 3600, NOW + 1]) == [NOW - 5, NOW, NOW]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("time", [EARLIEST - 1, -1.0, 0.0, NOW + 3601, NOW * 1e3, NOW * 1e9, 1e300, -1e300])
def test_a_time_out_of_range_is_refused_everywhere(time, in_order):
    with pytest.raises(InvalidTimestamps) as refused:
        check([NOW, time], in_order=in_order)
    assert (refused.value.field, refused.value.value) == ("timestamps[1]", time)


def test_lateness_is_measured_from_the_newest_before_it():
    assert check([NOW, NOW - 3600]) == [NOW, NOW - 3600]
    with pytest.raises(InvalidTimestamps):
        check([NOW, NOW - 3601])
    with pytest.raises(InvalidTimestamps):
        check([NOW - 3601], newest=NOW)
    assert check([NOW - 3601], newest=NOW, in_order=False) == [NOW - 3601]
    assert check([NOW - 1e6, NOW]) == [NOW - 1e6, NOW]


def test_a_refused_time_makes_no_other_one_late():
    """Neither one in milliseconds nor one that is itself too late moves the limit."""
    with pytest.raises(InvalidTimestamps) as refused:
        check([NOW - 1e6, NOW * 1e3, NOW - 1e6 - 3600, NOW - 1e6 - 3601, NOW - 1e6 - 3600])
    assert [fault.field for fault in refused.value.faults] == ["timestamps[1]", "timestamps[3]"]


def test_all_that_are_wrong_are_named_up_to_twenty():
    with pytest.raises(InvalidTimestamps, match="29 more") as refused:
        check([1.0] * 30)
    assert len(refused.value.faults) == 20
    assert refused.value.n_faults == 30


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")])
def test_a_time_in_another_unit_is_told_what_to_divide_by(factor, unit):
    with pytest.raises(InvalidTimestamps) as refused:
        check([NOW * factor])
    assert f"{unit}, divide them by {factor:.0f}" in refused.value.limit


@given(st.lists(st.floats(EARLIEST, NOW + 1e5), max_size=8), st.floats(0, 1e5), st.booleans())
def test_no_accepted_time_makes_right_ones_refused(times, allowance, in_order):
    """Whatever came before, a time of now and one late by the allowance are taken."""
    newest = None
    for time in times:
        try:
            (taken,) = check([time], newest, allowance, in_order=in_order)
        except InvalidTimestamps:
            continue
        assert taken <= NOW
        newest = taken if newest is None else max(newest, taken)
    late = NOW - allowance
    assert check([NOW, late], newest, allowance, in_order=in_order) == [NOW, late]
