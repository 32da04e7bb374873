"""The samples that were labelled last."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import FloatArray, IntArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take

CAPACITY: Final = 256
"""Samples that are remembered of those labelled anomalous, and of those labelled normal. Chosen by hand."""
_LABELS: Final = (-1, 1)


class LabelledSamples:
    """The last CAPACITY samples of either label, normal (-1) and anomalous (+1), in order of labelling.

    >>> known = LabelledSamples(n_features=2)
    >>> known.put(17, 1, np.array([3.0, 4.0]))
    >>> known.n_anomalies, known.anomalies.tolist(), known.normals.shape
    (1, [[3.0, 4.0]], (0, 2))
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._known: dict[int, dict[int, FloatArray]] = {label: {} for label in _LABELS}
        self._stacked: dict[int, FloatArray] = {}

    @property
    def n_anomalies(self) -> int:
        """How many are labelled anomalous."""
        return len(self._known[1])

    @property
    def anomalies(self) -> FloatArray:
        """Those labelled anomalous, (a, m)."""
        return self._rows(1)

    @property
    def normals(self) -> FloatArray:
        """Those labelled normal, (n, m)."""
        return self._rows(-1)

    @property
    def anomalous_seq(self) -> IntArray:
        """The numbers of those labelled anomalous, (a,)."""
        return self._numbers(1)

    def put(self, seq: int, label: int, x: FloatArray) -> None:
        """Set the label of a sample, x (m,) as it is learned; 0 takes it away."""
        for before, known in self._known.items():
            if known.pop(seq, None) is not None:
                self._stacked.pop(before, None)
        if label != 0:
            self._stacked.pop(label, None)
            alike = self._known[label]
            if len(alike) == CAPACITY:
                del alike[next(iter(alike))]
            alike[seq] = x.copy()

    def renumber(self, shift: int) -> None:
        """Follow the numbers of the samples when they are numbered anew."""
        for label, known in self._known.items():
            self._known[label] = {seq + shift: x for seq, x in known.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {
            "labelled_seq": np.concatenate([self._numbers(label) for label in _LABELS]),
            "labelled_label": np.repeat(np.array(_LABELS), [len(self._known[label]) for label in _LABELS]),
            "labelled_x": np.concatenate([self._rows(label) for label in _LABELS]),
        }

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if a state's samples cannot have been labelled."""
        seq = take(arrays, "labelled_seq", np.int64, (-1,))
        n = len(seq)
        label = take(arrays, "labelled_label", np.int64, (n,))
        take(arrays, "labelled_x", np.float64, (n, self._n_features))
        n_alike = [int((label == kind).sum()) for kind in _LABELS]
        if len(set(seq.tolist())) != n or sum(n_alike) != n or max(n_alike) > CAPACITY:
            raise InvalidSnapshot("its labelled samples are not valid")

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        seq, label, X = (arrays[f"labelled_{name}"] for name in ("seq", "label", "x"))
        for kind in _LABELS:
            rows = label == kind
            self._known[kind] = dict(zip(seq[rows].tolist(), X[rows], strict=True))
        self._stacked = {}

    def _rows(self, label: int) -> FloatArray:
        """Those of one label, (k, m), put together when they are first wanted after a change."""
        if label not in self._stacked:
            rows = list(self._known[label].values())
            self._stacked[label] = np.array(rows, float).reshape(-1, self._n_features)
        return self._stacked[label]

    def _numbers(self, label: int) -> IntArray:
        return np.array(list(self._known[label]), np.int64)
