"""Samples and times as users hold them: lists, numpy arrays, pandas frames. Neither numpy nor pandas is imported."""

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Union

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

Value = float | None
Sample = Sequence[Value] | Mapping[str, Value]
Samples = Union[Sequence[Sample], "NDArray[np.floating[Any] | np.integer[Any]]", "pd.DataFrame"]
Timestamp = float | str | datetime | None
Timestamps = Union[Sequence[Timestamp], "NDArray[Any]", "pd.DatetimeIndex"]
Ids = Sequence[str | None] | Literal["auto"] | None
NANOSECONDS: Final = 1e9
NOT_A_TIME: Final = -(2**63)
INFINITE: Final = (math.inf, -math.inf)


def rows_of(samples: Samples) -> list[Any]:
    """Give samples as lists, or objects by name. Raises ValueError for an infinity: JSON has none."""
    rows: list[Any]
    if hasattr(samples, "columns"):
        rows = _rows_of_frame(samples)
    else:
        rows = samples.tolist() if hasattr(samples, "tolist") else list(samples)
    for place, row in enumerate(rows):
        if any(value in INFINITE for value in (row.values() if isinstance(row, Mapping) else row)):
            raise ValueError(f"row {place} holds an infinity, which JSON does not have")
    return rows


def times_of(samples: Samples, timestamps: Timestamps | None) -> list[float | str | None] | None:
    """Give the times of samples; those of a frame stand in its index, unless others are given."""
    if timestamps is None:
        index = getattr(samples, "index", None)
        return _seconds_of_index(index) if hasattr(index, "asi8") and hasattr(index, "tz") else None
    if hasattr(timestamps, "asi8"):
        return _seconds_of_index(timestamps)
    if getattr(getattr(timestamps, "dtype", None), "kind", "") == "M":
        return _seconds_of_array(timestamps)
    return [moment_of(moment) for moment in timestamps]


def moment_of(moment: Timestamp) -> float | str | None:
    """Give a time as the service takes it; None if it is not known."""
    if moment is None or moment != moment:
        return None
    if not isinstance(moment, datetime):
        return moment if isinstance(moment, str) else float(moment)
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment} has no time zone")
    return moment.timestamp()


def ids_of(ids: Ids, n: int) -> list[str | None] | None:
    """Give the ids of samples; by default new ones, so that the samples can be sent again."""
    if ids != "auto":
        return None if ids is None else list(ids)
    call = new_call()
    return [f"{call}-{place}" for place in range(n)]


def new_call() -> str:
    """Give a text that no other call has, to make ids of."""
    return secrets.token_hex(8)


def _rows_of_frame(frame: Any) -> list[Any]:
    names = frame.columns.tolist()
    if len(set(names)) < len(names):
        raise ValueError("two columns of the frame have the same name")
    values = frame.to_numpy(dtype="float64", na_value=math.nan).tolist()
    if names == list(range(len(names))):
        return list(values)
    texts = [str(name) for name in names]
    return [dict(zip(texts, row, strict=True)) for row in values]


def _seconds_of_index(index: Any) -> list[float | str | None]:
    if index.tz is None:
        raise ValueError("the times have no time zone: give them one, such as frame.tz_localize('UTC')")
    return _seconds(index.as_unit("ns").asi8.tolist())


def _seconds_of_array(times: Any) -> list[float | str | None]:
    # numpy knows no time zones: its times are those of UTC
    return _seconds(times.astype("datetime64[ns]").astype("int64").tolist())


def _seconds(nanoseconds: Iterable[int]) -> list[float | str | None]:
    return [None if moment == NOT_A_TIME else moment / NANOSECONDS for moment in nanoseconds]
