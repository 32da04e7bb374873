"""The fields of a record, and the values that they can hold."""

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray
from core.decision.incidents import INCIDENT_EVENTS
from core.errors import InvalidSnapshot

NOT_LEARNED: Final = 0
LEARNED: Final = 1
RETRACTED: Final = 2
HELD_OUT: Final = 3
"""Values of status; earlier versions refuse records of held-out samples."""


@cache
def row_type(n_features: int, side_bytes: int, altered: int) -> np.dtype[Any]:
    """One record: the sample, its score and decision, its label, and how it was learned.

    ordinary says whether the sample counts as ordinary. level is the level that the decision rule measured the score
    from. ordinal counts it among the learned samples. left has one bit a node, for trees that grow by 2-means. learned
    and spread (as wide as the model has columns, or 0) hold what entered the statistics if that is not the scaled
    sample itself; otherwise learned is NaN.
    """
    return np.dtype(
        [
            ("seq", "<i8"),
            ("x", "<f8", (n_features,)),
            ("score", "<f8"),
            ("threshold", "<f8"),
            ("severity", "<f8"),
            ("incident", "<i8"),
            ("event", "i1"),
            ("is_anomaly", "?"),
            ("ordinary", "?"),
            ("ready", "?"),
            ("label", "i1"),
            ("status", "i1"),
            ("level", "<f8"),
            ("ordinal", "<i8"),
            ("time", "<f8"),
            ("left", "u1", (side_bytes,)),
            ("learned", "<f8", (altered,)),
            ("spread", "<f8", (altered,)),
        ]
    )


@cache
def blank_row(kind: np.dtype[Any]) -> NDArray[Any]:
    """A row (1,) that says nothing yet."""
    row = np.zeros(1, kind)
    for name in ("score", "threshold", "severity", "learned", "time"):
        row[name] = np.nan
    row["ordinary"] = True
    return row


def copy_rows(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Overwrite rows (n,) by others (n,), which may be narrower, or older: what is not known any more is left out."""
    known = target.dtype.names or ()
    for name in source.dtype.names or ():
        if name not in known:
            continue
        if source[name].ndim == 1:
            target[name] = source[name]
        else:
            target[name][:, : source[name].shape[1]] = source[name]


def is_altered(rows: NDArray[Any]) -> BoolArray:
    """Which rows (n,) say how they were learned."""
    altered: BoolArray = (~np.isnan(rows["learned"])).any(1) | (rows["spread"] != 0).any(1)
    return altered


def check_rows(rows: NDArray[Any]) -> None:
    """Raise InvalidSnapshot for values that no detector writes."""
    codes = [
        (rows["label"] >= -1) & (rows["label"] <= 1),
        (rows["status"] >= NOT_LEARNED) & (rows["status"] <= HELD_OUT),
        (rows["event"] >= 0) & (rows["event"] < len(INCIDENT_EVENTS)),
        (rows["incident"] >= 0) & (rows["incident"] <= rows["seq"]),
    ]
    flags = [rows[name].view(np.uint8) <= 1 for name in ("is_anomaly", "ordinary", "ready")]
    numbers = [
        ~np.isinf(rows[name]) for name in ("x", "score", "threshold", "severity", "level", "time", "learned", "spread")
    ]
    numbers.append(~np.isnan(rows["level"]))
    if not all(fits.all() for fits in (*codes, *flags, *numbers)):
        raise InvalidSnapshot("its rows hold a value that no detector writes")
