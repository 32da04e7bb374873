"""A situation: a stream with its truth, and the labels that come; and the list of all situations."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray

ROWS: Final = 3000
NEVER: Final = np.iinfo(np.int64).max
QUARTER: Final = 900.0
MONDAY: Final = 1_736_121_600.0
"""Midnight of 2025-01-06, UTC."""
SHARE, DELAY = 0.2, 200
"""This share of the rows gets a label, this many rows later."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The label of each row, (n,), and the row after which it comes, (n,); only_flagged: only flagged rows get one."""

    due: NDArray[np.int64]
    said: BoolArray
    only_flagged: bool = False


LabelRule = Callable[[np.random.Generator, BoolArray], Labels]


def some_rows(rng: np.random.Generator, anomalous: BoolArray, wrong: float = 0.0) -> Labels:
    """A fifth of the rows, 200 rows late, a share of the labels wrong."""
    n = len(anomalous)
    due = np.where(rng.random(n) < SHARE, np.arange(n) + DELAY, NEVER)
    return Labels(due, anomalous ^ (rng.random(n) < wrong))


@dataclass(frozen=True, slots=True)
class Situation:
    """Samples X (n, m) in raw units, NaN = missing, and their truth (n,); labels: the rule for who gives them when.

    times (n,) are timestamps in seconds, a quarter of an hour apart if not given. context is what the config says of
    the stream's context, if it is told.
    """

    X: FloatArray
    anomalous: BoolArray
    labels: LabelRule = some_rows
    config: dict[str, Any] = field(default_factory=dict)
    times: FloatArray | None = None
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def clock(self) -> FloatArray:
        """Timestamps in seconds, (n,)."""
        return self.times if self.times is not None else MONDAY + QUARTER * np.arange(float(len(self.X)))


Generator = Callable[[np.random.Generator], Situation]
SITUATIONS: Final[dict[str, Generator]] = {}
CONTEXTS: Final[dict[str, Generator]] = {}


def situation(make: Generator) -> Generator:
    """List a generator by its name; its docstring says what happens there."""
    name = make.__name__.replace("_", " ")
    if name in SITUATIONS:
        raise ValueError(f"two situations are called {name!r}")
    SITUATIONS[name] = make
    return make


def in_context(make: Generator) -> Generator:
    """List a generator among those whose streams have a context, which its situations tell."""
    CONTEXTS[make.__name__.replace("_", " ")] = make
    return make


def none(n: int = ROWS) -> BoolArray:
    """No row is anomalous."""
    return np.zeros(n, bool)


def marked(rows: Any, n: int = ROWS) -> BoolArray:
    """These rows are anomalous: indices, or a slice."""
    truth = np.zeros(n, bool)
    truth[rows] = True
    return truth


def spread(rng: np.random.Generator, count: int, first: int = 500, last: int = ROWS) -> NDArray[np.intp]:
    """Rows of so many single anomalies, at least ten rows apart."""
    places = np.sort(rng.choice((last - first) // 10, count, replace=False))
    return np.asarray(first + 10 * places + rng.integers(0, 3, count), np.intp)


def signs(rng: np.random.Generator, *shape: int) -> FloatArray:
    """Up or down, by chance."""
    return np.asarray(rng.choice([-1.0, 1.0], shape), float)


def host(rng: np.random.Generator, n: int = ROWS) -> FloatArray:
    """Three metrics of a host, (n, 3): CPU in percent, latency in ms, free memory in bytes; DEVIATIONS are theirs."""
    return np.asarray(rng.normal([40.0, 20.0, 8e9], [5.0, 3.0, 2e8], (n, 3)), float)


DEVIATIONS: Final = np.array([5.0, 3.0, 2e8])
