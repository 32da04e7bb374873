"""Checks of what callers pass in: complete, before anything changes. Samples are copied."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray
from core.config import Feature
from core.errors import InvalidObservation
from core.kinds import KINDS

LATEST: Final = 1e15
"""Timestamps are from -LATEST to LATEST seconds: there, doubles still tell one second from the next."""
LEAST_LEVEL: Final = 1e-9
"""Levels of quantiles keep this distance from 0 and 1: no model knows more, and scipy's quantiles of t end at inf."""
LEVELS_LIMIT: Final = f"a list of numbers from {LEAST_LEVEL:g} to 1 - {LEAST_LEVEL:g}"


def checked_samples(X: Any, n_features: int, features: tuple[Feature, ...] | None = None) -> FloatArray:
    """Copy samples into a float64 matrix (n, n_features), NaN where a value is missing.

    Raises InvalidObservation, with row and column, for another shape, what is no number, an infinity, a row without any
    value but context, or a value that the kind of its feature excludes. Without features every number is allowed.
    """
    samples = _finite(X, n_features)
    scored = [feature.role == "value" for feature in features or ()]
    values, known = (samples, "feature") if all(scored) else (samples[:, scored], "feature that is no context")
    if (empty := np.isnan(values).all(1)).any():
        raise InvalidObservation("X", "nothing but NaN", f"known in at least one {known}", row=int(empty.argmax()))
    _check_kinds(samples, features or ())
    return samples


def checked_contexts(contexts: Any, features: Sequence[Feature]) -> FloatArray:
    """Copy contexts into a float64 matrix (n, c), one column for each of these features, NaN where one is not known.

    Raises InvalidObservation, as checked_samples does, but for rows in which nothing is known.
    """
    values = _finite(contexts, len(features), "contexts")
    _check_kinds(values, features, "contexts")
    return values


def _check_kinds(samples: FloatArray, features: Sequence[Feature], field: str = "X") -> None:
    for column, feature in enumerate(features):
        if feature.kind != "gaussian":
            _check_kind(samples[:, column], column, feature, field)


def _check_kind(values: FloatArray, column: int, feature: Feature, field: str) -> None:
    """Raise InvalidObservation for the first of the values (n,) that the kind of their feature excludes."""
    outside = ~(KINDS[feature.kind].inside(values) | np.isnan(values))
    if outside.any():
        row = int(outside.argmax())
        limit = f"{KINDS[feature.kind].limit}, since {feature.name!r} is {feature.kind}"
        raise InvalidObservation(field, float(values[row]), limit, row=row, column=column)


def _finite(X: Any, width: int, field: str = "X") -> FloatArray:
    samples = _numbers(X, field)
    if samples.ndim != 2 or samples.shape[1] != width:
        raise InvalidObservation(field, samples.shape, f"of shape (n, {width})")
    if (infinite := np.isinf(samples)).any():
        row, column = (int(k) for k in np.argwhere(infinite)[0])
        value = float(samples[row, column])
        raise InvalidObservation(field, value, "finite, or NaN if missing", row=row, column=column)
    return samples


def checked_times(times: Any, n: int, *, needed: bool, may_be_nan: bool = False) -> FloatArray:
    """Give timestamps of n samples in seconds, (n,); NaN if there are none and none are needed.

    Raises InvalidObservation if they are needed and missing, not n numbers, not finite, or beyond LATEST; some of them
    may be NaN if may_be_nan.
    """
    if times is None and not needed:
        return np.full(n, np.nan)
    seconds = np.asarray(times)
    if seconds.dtype.kind not in "iuf" or seconds.shape != (n,):
        raise InvalidObservation("times", times, f"{n} numbers, one a sample")
    outside = ~(np.abs(seconds) <= LATEST)
    if may_be_nan:
        outside &= ~np.isnan(seconds)
    if outside.any():
        row = int(outside.argmax())
        raise InvalidObservation(
            "times", float(seconds[row]), f"a number of seconds from -{LATEST:g} to {LATEST:g}", row=row
        )
    return seconds.astype(np.float64)


def checked_mask(held_out: Any, n: int) -> BoolArray | None:
    """Give which of n samples are held out, (n,); None if none is. Raises InvalidObservation if it is no such mask."""
    if held_out is None:
        return None
    mask = np.asarray(held_out)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise InvalidObservation("held_out", held_out, f"{n} booleans, one a sample")
    return mask if mask.any() else None


def checked_levels(levels: Any) -> FloatArray:
    """Give levels of quantiles, (q,). Raises InvalidObservation if there is none, or one is too near to 0 or 1."""
    chosen = np.asarray(levels)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iuf" or not len(chosen):
        raise InvalidObservation("levels", levels, LEVELS_LIMIT)
    if not ((chosen >= LEAST_LEVEL) & (chosen <= 1 - LEAST_LEVEL)).all():
        raise InvalidObservation("levels", levels, LEVELS_LIMIT)
    return chosen.astype(np.float64)


def _numbers(X: Any, field: str) -> FloatArray:
    try:
        given = np.asarray(X)
        # strings, booleans, dates and complex numbers would be converted without a word
        if given.dtype.kind not in "iuf" and not (given.dtype.kind == "O" and all(map(_is_number, given.flat))):
            raise TypeError(f"an array of {given.dtype}")
        if given.dtype == np.float64:
            return np.array(given, order="C", ndmin=2)
        with np.errstate(over="ignore"):  # a long double of 1e400
            return np.array(given, dtype=np.float64, order="C", ndmin=2)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidObservation(field, X, "a matrix of numbers") from error


def _is_number(value: object) -> bool:
    """A number, or None for one that is missing."""
    return value is None or (isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool))


def checked_labels(labels: Sequence[bool | None], seqs: IntArray, first_seq: int, next_seq: int) -> list[int]:
    """Give labels as +1 (anomalous), -1 (normal) and 0 (withdrawn), one for each of the samples seqs (n,).

    Raises InvalidObservation if a label is not True, False or None, if a sample was never observed, or if it gets two
    different labels.
    """
    if not isinstance(labels, Sequence | np.ndarray) or isinstance(labels, str) or len(labels) != len(seqs):
        raise InvalidObservation("labels", labels, f"{len(seqs)} labels, one a record")
    said: dict[int, bool | None] = {}
    for i, (seq, label) in enumerate(zip(seqs.tolist(), labels, strict=True)):
        if not first_seq <= seq < next_seq:
            raise InvalidObservation("records", seq, f"from seq {first_seq} to {next_seq - 1}", row=i)
        if label is not None and not isinstance(label, bool | np.bool_):
            raise InvalidObservation("labels", label, "True, False or None", row=i)
        if said.setdefault(seq, label) != label:
            raise InvalidObservation("labels", label, f"the same as before for seq {seq}", row=i)
    return [0 if label is None else 1 if label else -1 for label in labels]
