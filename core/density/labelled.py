"""The samples that were labelled last, and what they say of the nodes of a tree."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.tree.subspaces import SubspaceTree

CAPACITY: Final = 512
"""Labelled samples that are remembered. Chosen by hand."""
RARITY: Final = 0.2
"""Before any label a node that holds this share of all samples is as likely anomalous as normal. Chosen by hand."""
PRIOR_LABELS: Final = 2.0
"""Labels that this counts as. Chosen by hand."""


class LabelledSamples:
    """The last CAPACITY labelled samples, by seq in order of labelling.

    label (L,) is +1 or -1; x (L, m) the sample as it is learned; gain (L,) by how much the second model ranked it
    higher when it came.
    """

    _ROWS: Final = ("seq", "label", "gain", "x")

    def __init__(self, n_features: int) -> None:
        self.seq, self.label = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.gain, self.x = np.zeros(0), np.zeros((0, n_features))
        self._held: tuple[int, BoolArray] | None = None

    def put(self, seq: int, label: int, gain: float, x: FloatArray) -> None:
        """Set the label of a sample; 0 takes it away."""
        kept = self.seq != seq
        if label != 0:
            kept[: max(np.count_nonzero(kept) + 1 - CAPACITY, 0)] = False
        new = (seq, label, gain, x) if label != 0 else None
        for name, value in zip(self._ROWS, new or self._ROWS, strict=True):
            rows = getattr(self, name)[kept]
            setattr(self, name, rows if new is None else np.concatenate([rows, np.asarray(value)[None]]))
        self._held = None

    def normality(self, tree: SubspaceTree, counts: FloatArray) -> FloatArray:
        """The chance (N,) that a sample of each node is normal, above 0: eq. (34); counts (N,) are those of the nodes.

        Anomalies are rare: before any label a node is the less to be trusted the fewer of all samples it holds. That
        weighs as much as PRIOR_LABELS labels; those that fell into a node's subspace say the rest.
        """
        prior: FloatArray = (counts + 1.0) / (counts + 1.0 + RARITY * (counts[0] + 1.0))
        if not len(self.seq):
            return prior
        if self._held is None or self._held[0] != tree.version:
            self._held = tree.version, tree.membership(self.x)
        held = self._held[1]
        normal = held[self.label < 0].sum(0) + PRIOR_LABELS * prior
        chance: FloatArray = normal / (held.sum(0) + PRIOR_LABELS)
        return chance

    def gained(self) -> float:
        """By how much the second model ranked the known anomalies higher, summed."""
        return float(self.gain[self.label > 0].sum())

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that a continuation needs, by name."""
        return {f"labelled_{name}": getattr(self, name) for name in self._ROWS}

    def check(self, arrays: Arrays) -> None:
        """InvalidSnapshot if a state's samples cannot have been labelled."""
        seq = take(arrays, "labelled_seq", np.int64, (-1,))
        n = len(seq)
        label = take(arrays, "labelled_label", np.int64, (n,))
        gain = take(arrays, "labelled_gain", np.float64, (n,))
        take(arrays, "labelled_x", np.float64, (n, self.x.shape[1]))
        unique = len(set(seq.tolist())) == n <= CAPACITY
        if not unique or not (np.abs(label) == 1).all() or not (np.abs(gain) <= 1).all():
            raise InvalidSnapshot("its labelled samples are not valid")

    def load(self, arrays: Arrays) -> None:
        """Take over a state."""
        for name in self._ROWS:
            setattr(self, name, arrays[f"labelled_{name}"])
        self._held = None
