"""The columns of a calendar: circles of the local clock, the same wherever and however they are made."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calendar import RADIUS, calendar_columns
from core.config import Calendar
from core.config.ranges import timezones

DAY, WEEK = 86_400.0, 604_800.0


def at(*when: int, zone: str = "UTC") -> float:
    return datetime(*when, tzinfo=ZoneInfo(zone)).timestamp()


def columns(*times: float, periods=("day", "week"), zone: str = "UTC") -> np.ndarray:
    return calendar_columns(Calendar(periods, zone), np.array(times))


@given(st.floats(-1e15, 1e15), st.floats(1e-3, 1e12))
def test_a_period_of_seconds_is_two_circles(time, period):
    told = columns(time, periods=(period,))[0]
    angle = 2 * np.pi * (time % period) / period
    expected = RADIUS * np.array([np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)])
    np.testing.assert_allclose(told, expected, atol=1e-9)
    assert np.hypot(*told[:2]) == pytest.approx(RADIUS)


def test_a_week_begins_on_monday_and_a_day_at_midnight():
    start = [0.0, RADIUS] * 2
    np.testing.assert_allclose(columns(at(2025, 3, 3))[0], start * 2, atol=1e-9)
    np.testing.assert_allclose(columns(at(2025, 3, 4))[0][:4], start, atol=1e-9)
    assert abs(columns(at(2025, 3, 4))[0][4:] - start).max() > 1


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"])
def test_the_same_hour_of_the_local_clock_is_the_same_place_all_year(zone):
    noon = [at(2025, month, 10, 12, 30, zone=zone) for month in range(1, 13)]
    told = columns(*noon, periods=("day",), zone=zone)
    np.testing.assert_allclose(told, np.repeat(told[:1], 12, 0), atol=1e-9)
    utc = columns(*noon, periods=("day",))
    assert zone == "Asia/Kathmandu" or np.ptp(utc, 0).max() > 0.1


def test_the_clock_jumps_when_it_is_changed():
    """In Berlin on 2025-03-30 the quarter of an hour after 1:45 begins at 3:00, and on 2025-10-26 2:00 comes twice."""
    before, after = at(2025, 3, 30, 0, 45), at(2025, 3, 30, 1, 0)
    told = columns(before, after, periods=("day",), zone="Europe/Berlin")
    three = columns(at(2025, 3, 29, 3, 0, zone="Europe/Berlin"), periods=("day",), zone="Europe/Berlin")
    np.testing.assert_allclose(told[1:], three, atol=1e-9)
    twice = columns(at(2025, 10, 26, 0, 0), at(2025, 10, 26, 1, 0), periods=("day",), zone="Europe/Berlin")
    np.testing.assert_allclose(twice[0], twice[1], atol=1e-9)


def test_periods_of_seconds_follow_no_clock():
    times = at(2025, 3, 29, 12), at(2025, 3, 31, 12)
    told = columns(*times, periods=("day", DAY), zone="Europe/Berlin")
    assert np.ptp(told[:, :4], 0).max() > 0.1
    assert np.ptp(told[:, 4:], 0).max() < 1e-9


@given(st.sampled_from(["Europe/London", "America/St_Johns", "Pacific/Chatham"]), st.floats(0, 4e9))
def test_offsets_are_those_of_the_zone(zone, time):
    moment = datetime.fromtimestamp(time, UTC).astimezone(ZoneInfo(zone))
    since_midnight = (moment.replace(tzinfo=None) - datetime.combine(moment.date(), datetime.min.time())) / timedelta(
        seconds=1
    )
    angle = 2 * np.pi * since_midnight / DAY
    told = columns(time, periods=("day",), zone=zone)[0]
    np.testing.assert_allclose(told[:2], RADIUS * np.array([np.sin(angle), np.cos(angle)]), atol=1e-6)


def test_an_unknown_time_has_no_place_and_the_others_keep_theirs():
    told = columns(0.0, np.nan, 1e9, zone="Asia/Tokyo")
    assert np.isnan(told[1]).all()
    assert np.array_equal(told[[0, 2]], columns(0.0, 1e9, zone="Asia/Tokyo"))


def test_a_moment_is_the_same_in_any_company():
    times = 1.7e9 + np.cumsum(np.random.default_rng(0).exponential(4000.0, 500))
    whole = columns(*times, zone="Europe/Berlin")
    alone = np.concatenate([columns(time, zone="Europe/Berlin") for time in times])
    assert np.array_equal(whole, alone)


@pytest.mark.parametrize("time", [-1e15, -6.3e10, 2.6e11, 1e15])
def test_years_that_no_zone_knows_have_columns_all_the_same(time):
    assert np.isfinite(columns(time, zone="America/New_York")).all()


def test_every_zone_can_be_read():
    assert {"UTC", "Europe/Berlin", "Asia/Kolkata"} <= timezones()
    for zone in sorted(timezones()):
        assert np.isfinite(columns(1.7e9, zone=zone)).all()
