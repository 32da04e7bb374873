"""A trial run of a detector from elsewhere: its state can pass every check and still be unusable."""

from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.config import DetectorConfig
from core.detector import Detector
from core.errors import InvalidSnapshot, InvalidState
from core.kinds import KINDS

ROWS: Final = 64
GRID: Final = 4
"""Samples of a trial, and points along each axis of its grid. Chosen by hand."""


def try_out(detector: Detector) -> None:
    """Raise InvalidSnapshot unless a copy can score, explain, learn, be labelled and saved, with finite answers only.

    A numpy warning counts as a failure: states that samples have led to give none. The detector stays as it is.
    """
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            _live(Detector.from_bytes(detector.to_bytes()))
    except InvalidState as error:
        raise InvalidSnapshot(error.reason) from error
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        raise InvalidSnapshot(f"it failed when it was tried: {error}") from error


def _live(detector: Detector) -> None:
    rng = np.random.default_rng(0)
    _read(detector, _samples(detector, rng, ROWS))
    for _ in range(2):
        X = _samples(detector, rng, max(detector.samples_needed, ROWS))
        records = detector.observe(X, _times(detector, len(X))).records
        labels = [i % 3 == 0 for i in range(ROWS)]
        records = detector.feedback(records[-ROWS:], labels).records
        detector.feedback(records[: ROWS // 2], [None] * (ROWS // 2))
        detector = Detector.from_bytes(detector.to_bytes())
        _read(detector, X)


def _read(detector: Detector, X: FloatArray) -> None:
    """Ask everything that can be asked without learning. Raises ArithmeticError for an answer that is not finite."""
    if not detector.ready:
        return
    times, values = _times(detector, len(X)), [*detector.config.values]
    said = [detector.score(X, times), np.array(detector.threshold), np.array(detector.costs().cost)]
    explained = detector.explain(X, times)
    contribution = explained.contribution[:, values][~np.isnan(X[:, values])]
    said += [contribution, explained.expected, explained.labels_contribution]
    said.append(detector.band(values[0]).quantiles((0.1, 0.9), times=times[:GRID]))
    for node in detector.describe()["nodes"]:
        said += [np.array(node["mean"]), np.array(node["covariance"])]
    if detector.config.n_features > 1:
        said += detector.density_grid(0, 1, GRID)
    if not all(np.isfinite(numbers).all() for numbers in said):
        raise ArithmeticError("it answers with a number that is not finite")


def _times(detector: Detector, n: int) -> FloatArray:
    """Give n timestamps, some of them unknown if they are for a calendar alone."""
    times = np.full(n, detector.newest_time or 0.0)
    if detector.config.calendar is not None and detector.config.half_life_seconds is None:
        times[::3] = np.nan
    return times


def _samples(detector: Detector, rng: np.random.Generator, n: int) -> FloatArray:
    """Draw samples (n, m) like those that were learned, some with values missing, one of them far off."""
    U = rng.normal(size=(n, detector.config.n_features))
    U[n // 2] *= 1e6
    nodes = detector.describe()["nodes"]
    if nodes:
        U = np.array(nodes[0]["mean"]) + np.sqrt(np.diag(nodes[0]["covariance"])) * U
    X = _values(U, detector.config)
    if X.shape[1] > 1 and detector.config.values != (1,):
        X[::5, 1] = np.nan
    return X


def _values(U: FloatArray, config: DetectorConfig) -> FloatArray:
    """Give values (n, m) near these coordinates (n, m) that the features of the config can have."""
    kinds = [KINDS[name] for name in config.kinds]
    most = np.finfo(np.float64).max
    columns = [
        kind.nearest(kind.value(np.abs(u) if kind.least >= 0 else u)) for kind, u in zip(kinds, U.T, strict=True)
    ]
    return np.clip(np.stack(columns, 1), -most, most)
