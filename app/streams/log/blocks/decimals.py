"""Decimal fractions as whole numbers: 21.45 is 2145 hundredths. Doubles read from few digits take few bytes so."""

from typing import Final

import numpy as np
import numpy.typing as npt

MOST_PLACES: Final = 9
TRIED: Final = 16
_SCALES: Final = np.array([10.0**places for places in range(MOST_PLACES + 1)])
_MISSING: Final = np.iinfo(np.int64).min

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


def to_whole(values: Floats) -> tuple[int, Whole] | None:
    """Give the least number of decimal places by which values (n,), some of them NaN, are exact, and them as whole.

    None if there is none.
    """
    some, scales = np.tile(values[:TRIED], (MOST_PLACES + 1, 1)), _SCALES[:, None]
    for places in np.flatnonzero(_is_exact(some, _scaled(some, scales), scales)).tolist():
        whole = _scaled(values, _SCALES[places])
        if _is_exact(values, whole, _SCALES[places]):
            return places, whole
    return None


def from_whole(places: int, whole: Whole) -> Floats:
    """Give the values (n,) of which to_whole made this."""
    return _unscaled(whole, _SCALES[places])


def _scaled(values: Floats, scale: Floats) -> Whole:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isnan(values), _MISSING, np.rint(values * scale).astype(np.int64))


def _unscaled(whole: Whole, scale: Floats) -> Floats:
    # the quotient of whole numbers up to 2**53 is the double that is nearest to the decimal fraction
    return np.where(whole == _MISSING, np.nan, whole / scale)


def _is_exact(values: Floats, whole: Whole, scale: Floats) -> npt.NDArray[np.bool_]:
    """Tell of each row whether its values come back bit for bit."""
    same: npt.NDArray[np.bool_] = (_unscaled(whole, scale).view(np.int64) == values.view(np.int64)).all(-1)
    return same
