"""The recent samples of every leaf, which the search for hyperplanes looks at."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray, grown
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.tree.subspaces import SubspaceTree
from core.validation import LATEST

TOTAL: Final = 1024
"""Samples over all leaves. Chosen by hand."""
LEAST_A_FEATURE: Final = 4
LEAST: Final = 32
"""Each leaf keeps at least LEAST samples, and LEAST_A_FEATURE (m + 1): a search needs 2 (m + 1). Chosen by hand."""


class Reservoir:
    """R samples as they were learned, by rising ordinal: x and spread (R, m), ordinal, moment and leaf (R,).

    A leaf keeps its last TOTAL / leaves samples, or its least number if that is more. These are all that it counted
    from ordinal window[leaf] on.
    """

    _ROWS: Final = ("x", "spread", "ordinal", "moment", "leaf")

    def __init__(self, n_features: int) -> None:
        self.x, self.spread = np.zeros((0, n_features)), np.zeros((0, n_features))
        self.ordinal, self.leaf = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.moment = np.zeros(0)
        self.window = np.zeros(1, np.int64)

    def of(self, leaf: int) -> IntArray:
        """The rows of a leaf."""
        return np.flatnonzero(self.leaf == leaf)

    def add(self, x: FloatArray, spread: FloatArray, ordinal: IntArray, moment: FloatArray, leaf: IntArray) -> None:
        """Add new samples (n, m), with ordinals above all others."""
        new = {"x": x, "spread": spread, "ordinal": ordinal, "moment": moment, "leaf": leaf}
        for name, rows in new.items():
            setattr(self, name, np.concatenate([getattr(self, name), rows]))

    def trim(self, n_leaves: int) -> None:
        """Drop the oldest samples of each leaf that has more than its share."""
        share = max(LEAST, LEAST_A_FEATURE * (self.x.shape[1] + 1), TOTAL // n_leaves)
        crowded = np.flatnonzero(np.bincount(self.leaf) > share)
        if crowded.size:
            kept = np.ones(len(self.leaf), bool)
            for leaf in crowded.tolist():
                old = self.of(leaf)[:-share]
                self.window[leaf] = max(self.window[leaf], self.ordinal[old[-1]] + 1)
                kept[old] = False
            self._keep(kept)

    def grow(self, n_nodes: int) -> None:
        """Make room for more leaves."""
        self.window = grown(self.window, n_nodes)

    def drop(self, leaf: int) -> None:
        """Drop all samples of a leaf."""
        self._keep(self.leaf != leaf)

    def begin_warm(self, n_learned: int) -> None:
        """Drop all samples; the next one has the ordinal after n_learned."""
        self._keep(np.zeros(len(self.leaf), bool))
        self.window[:] = n_learned + 1

    def remove(self, ordinal: int) -> None:
        """Drop the sample of this ordinal, if it is here."""
        if (self.ordinal == ordinal).any():
            self._keep(self.ordinal != ordinal)

    def insert(self, x: FloatArray, spread: FloatArray, ordinal: int, moment: float, leaf: int) -> None:
        """Put one sample back in its place, unless it is older than its leaf's window."""
        if ordinal < self.window[leaf]:
            return
        at = int(self.ordinal.searchsorted(ordinal))
        for name, value in zip(self._ROWS, (x, spread, ordinal, moment, leaf), strict=True):
            rows = getattr(self, name)
            setattr(self, name, np.concatenate([rows[:at], np.asarray(value, rows.dtype)[None], rows[at:]]))

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays of a snapshot, by name; without spreads that are all 0, and moments that equal the ordinals."""
        arrays: dict[str, NDArray[Any]] = {"recent_x": self.x, "recent_ordinal": self.ordinal}
        arrays["recent_spread"] = self.spread if self.spread.any() else self.spread[:0]
        arrays["recent_moment"] = self.moment if (self.moment != self.ordinal).any() else self.moment[:0]
        return arrays | {"recent_window": self.window}

    def check(self, arrays: Arrays, n_nodes: int, n_learned: int) -> None:
        """Raise InvalidSnapshot if a state does not fit a tree of so many nodes, and so many learned samples."""
        x = take(arrays, "recent_x", np.float64, (-1, self.x.shape[1]))
        n, m = x.shape
        ordinal = take(arrays, "recent_ordinal", np.int64, (n,))
        spread = take(arrays, "recent_spread", np.float64, (-1, m))
        moment = take(arrays, "recent_moment", np.float64, (-1,))
        window = take(arrays, "recent_window", np.int64, (n_nodes,))
        if not {len(spread), len(moment)} <= {0, n} or (spread < 0).any() or (np.abs(moment) > LATEST).any():
            raise InvalidSnapshot("its recent samples do not fit together")
        rising = (ordinal[1:] > ordinal[:-1]).all() and (not n or 1 <= ordinal[0] <= ordinal[-1] <= n_learned)
        if not rising or ((window < 0) | (window > n_learned + 1)).any():
            raise InvalidSnapshot("its recent samples are not in the order in which they were learned")

    def load(self, arrays: Arrays, tree: SubspaceTree) -> None:
        """Continue from a state that check has passed; the tree says which leaf holds which sample."""
        self.x, self.ordinal, self.window = (arrays[f"recent_{name}"] for name in ("x", "ordinal", "window"))
        spread, moment = arrays["recent_spread"], arrays["recent_moment"]
        self.spread = spread if len(spread) else np.zeros_like(self.x)
        self.moment = moment if len(moment) else self.ordinal.astype(float)
        self.leaf = tree.leaf_of(tree.membership(self.x))

    def _keep(self, kept: BoolArray) -> None:
        for name in self._ROWS:
            setattr(self, name, getattr(self, name)[kept])
