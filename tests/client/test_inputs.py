"""Samples and times as users hold them become the same rows."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from itan_client import calls
from itan_client.inputs import ids_of, rows_of, times_of

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
INDEX = pd.date_range("2026-11-29 12:00", periods=2, freq="min", tz="UTC")


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns, index=INDEX)


def test_a_frame_gives_samples_by_name_and_times_by_its_index() -> None:
    given = frame(cpu=[0.25, np.nan], up=[True, False], queue=pd.array([None, 3], dtype="Int64"))
    rows = rows_of(given)
    assert repr(rows) == repr([{"cpu": 0.25, "up": 1.0, "queue": np.nan}, {"cpu": np.nan, "up": 0.0, "queue": 3.0}])
    assert {type(value) for row in rows for value in row.values()} == {float}
    assert times_of(given, None) == [NOON, NOON + 60]


def test_a_frame_without_names_gives_arrays_and_without_times_none() -> None:
    given = pd.DataFrame([[1, 2.5], [3, 4]])
    assert rows_of(given) == [[1.0, 2.5], [3.0, 4.0]]
    assert times_of(given, None) is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_an_index_of_any_zone_and_unit_is_the_same_moment(unit: str, zone: str) -> None:
    index = INDEX.tz_convert(zone).as_unit(unit).insert(1, pd.NaT)
    assert times_of([], index) == [NOON, None, NOON + 60]


@pytest.mark.parametrize(
    "times",
    [
        [
            datetime(2026, 11, 29, 12, tzinfo=UTC),
            pd.NaT,
            datetime(2026, 11, 29, 14, 1, tzinfo=timezone(timedelta(hours=2))),
        ],
        np.array(["2026-11-29T12:00", "NaT", "2026-11-29T12:01"], dtype="datetime64[s]"),
        np.array([NOON, np.nan, NOON + 60]),
        [NOON, None, NOON + 60],
        list(INDEX.insert(1, pd.NaT)),
    ],
)
def test_times_of_any_kind_are_the_same_seconds(times: Any) -> None:
    assert times_of([], times) == [NOON, None, NOON + 60]


def test_texts_are_left_to_the_service() -> None:
    assert times_of([], ["2026-11-29T12:00:00Z", None]) == ["2026-11-29T12:00:00Z", None]


def test_given_times_win_over_those_of_the_index() -> None:
    assert times_of(frame(a=[1.0, 2.0]), [1.0, 2.0]) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("samples", "times"),
    [(frame(a=[1.0, 2.0]).tz_localize(None), None), ([], [datetime(2026, 11, 29)]), ([], INDEX.tz_localize(None))],  # noqa: DTZ001
)
def test_a_time_without_a_zone_is_refused(samples: Any, times: Any) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        times_of(samples, times)


@pytest.mark.parametrize(
    "samples",
    [
        np.array([[1.0], [np.inf]]),
        frame(a=[1.0, -np.inf]),
        [[1.0], [np.float32("inf")]],
        [{"a": 1}, {"a": float("-inf")}],
    ],
)
def test_an_infinity_of_any_kind_is_refused(samples: Any) -> None:
    with pytest.raises(ValueError, match="row 1 holds an infinity"):
        rows_of(samples)


def test_what_is_no_number_or_has_no_name_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="convert"):
        rows_of(frame(host=["web-1", "web-2"]))
    with pytest.raises(ValueError, match="same name"):
        rows_of(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))


def test_ids_are_of_the_call_unless_given() -> None:
    assert ids_of(None, 2) is None
    assert ids_of(("a", None), 2) == ["a", None]
    assert len({*(ids_of("auto", 3) or ()), *(ids_of("auto", 3) or ())}) == 6


@pytest.mark.parametrize(
    "call",
    [
        lambda time: calls.put_window("deploy", "web-*", time, NOON),
        lambda time: calls.put_window("deploy", "web-*", NOON, time),
        lambda time: calls.feedback("web", ranges=[{"from": time, "to": NOON, "anomaly": True}]),
        lambda time: calls.incidents(end=time),
    ],
)
def test_every_call_takes_a_time_of_any_kind_but_none_without_a_zone(call: Any) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        call(datetime(2026, 11, 29, 12))  # noqa: DTZ001
    first, *others = [call(time) for time in (NOON, np.float64(NOON), INDEX[0], datetime.fromtimestamp(NOON, UTC))]
    assert [(other.params, other.body) for other in others] == [(first.params, first.body)] * 3
