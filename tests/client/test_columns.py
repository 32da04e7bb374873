"""Answers as arrays and frames."""

import numpy as np
import pandas as pd
import pytest

from itan_client import Band, History, Observed
from itan_client.columns import array_of

OBSERVED = Observed([None, 2.5], [None, 3.0], [False, True], [False, True], [None, 1.5], seq=[1, 2], ids=["a", None])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *[([1, 2], "i"), ([1.5, 2], "f"), ([1, None], "f"), ([None, None], "f"), ([], "f")],
        *[([True], "b"), (["a"], "O"), ([True, None], "O"), (["a", None], "O")],
    ],
)
def test_a_column_is_an_array_of_its_kind(values: list[object], kind: str) -> None:
    array = array_of(values)
    assert array.dtype.kind == kind
    assert [None if value != value else value for value in array.tolist()] == values


def test_an_answer_is_a_frame_by_the_index_of_what_was_sent() -> None:
    index = pd.date_range("2026-11-29", periods=2, freq="h", tz="UTC")
    frame = OBSERVED.to_pandas(index)
    assert frame.columns.tolist() == ["seq", "ids", "score", "threshold", "is_anomaly", "ready", "severity"]
    assert frame.index.equals(index)
    assert frame.loc[frame["is_anomaly"], "score"].tolist() == [2.5]
    assert np.isnan(frame["score"].iloc[0])
    assert OBSERVED.to_pandas().index.tolist() == [0, 1]


def test_a_history_is_a_frame_by_time_with_its_values() -> None:
    history = History(
        stream="s",
        seq=[4],
        id=[None],
        time=[1.5e9],
        score=[1.0],
        threshold=[2.0],
        is_anomaly=[False],
        severity=[0.5],
        incident=[None],
        event=[None],
        in_maintenance=[False],
        label=[True],
        features=["cpu", "score"],
        values=[[0.25, None]],
        oldest_seq=1,
        newest_seq=4,
        position="4-0",
        next=None,
        thinned=False,
        marked_thinned=False,
    )
    frame = history.to_pandas()
    assert frame.index.tolist() == [pd.Timestamp("2017-07-14 02:40", tz="UTC")]
    assert (frame["cpu"].item(), frame["score"].item(), frame["label"].item()) == (0.25, 1.0, True)
    assert np.isnan(frame["score_value"].item())
    assert "time" in history.arrays()


def test_a_band_is_a_frame_of_levels_by_time() -> None:
    frame = Band("s", 9, "cpu", [0.1, 0.9], [1.5e9, 1.5e9 + 60], [[1.0, 2.0], [3.0, 4.0]]).to_pandas()
    assert frame[0.9].tolist() == [3.0, 4.0]
    assert frame.index[1] - frame.index[0] == pd.Timedelta("60s")
