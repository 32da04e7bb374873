"""What statistics keep of a sample: the Gaussian features as they are, then the columns of every other one."""

from itertools import pairwise
from typing import Final

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.bernoulli import Bernoulli
from core.families.categorical import Categorical
from core.families.exponential import Exponential
from core.families.factor import Factor
from core.families.gamma import Gamma
from core.families.poisson import Poisson

BLOCK_KINDS: Final = ("gaussian", "lognormal")
FACTORS: Final[dict[str, type[Factor]]] = {c.kind: c for c in (Gamma, Exponential, Poisson, Bernoulli, Categorical)}


class Layout:
    """Rows of width columns: a block of b features that are Gaussian in their coordinates, then f factors.

    block (b,) and apart (f,) are the features of the block and of the factors; spans (f,) says which of the columns
    after the block are a factor's. Without factors a row is the sample itself.
    """

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self.kinds = kinds
        is_block = np.array([kind in BLOCK_KINDS for kind in kinds])
        self.block: IntArray = np.flatnonzero(is_block)
        self.apart: IntArray = np.flatnonzero(~is_block)
        self.factors = [FACTORS[kinds[feature]]() for feature in self.apart]
        ends = np.cumsum([0, *(factor.width for factor in self.factors)]).tolist()
        self.spans = [slice(*pair) for pair in pairwise(ends)]
        self.n_apart: int = ends[-1]

    @property
    def width(self) -> int:
        """How many columns a row has."""
        return len(self.block) + self.n_apart

    @property
    def n_features(self) -> int:
        """m."""
        return len(self.kinds)

    def part(self, features: list[int]) -> "Layout":
        """The layout of some of the features alone."""
        return Layout(tuple(self.kinds[feature] for feature in features))

    def columns(self, Z: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows (n, width) of samples (n, m), and the variance (n, b) of filled values in their block.

        A factor's columns are zero where its feature was filled, spread (n, m) above 0: it is not counted.
        """
        if not self.factors:
            return Z, spread
        rows = np.zeros((len(Z), self.width))
        rows[:, : len(self.block)] = Z[:, self.block]
        for feature, factor, columns in zip(self.apart, self.factors, self._after_block(rows), strict=True):
            known = spread[:, feature] == 0
            columns[known] = factor.columns(Z[known, feature])
        return rows, spread[:, self.block]

    def start(self) -> FloatArray:
        """What the root expects of the factors' columns before any sample: (n_apart,)."""
        return np.concatenate([np.zeros(0), *(factor.start() for factor in self.factors)])

    def expecting(self, location: FloatArray, spread: FloatArray) -> FloatArray:
        """The same after a warm-up with these medians and spreads (m,) of the coordinates."""
        told = zip(self.factors, location[self.apart].tolist(), spread[self.apart].tolist(), strict=True)
        return np.concatenate([np.zeros(0), *(factor.expecting(at, width) for factor, at, width in told)])

    def posterior(self, count: FloatArray, mean: FloatArray, expected: FloatArray) -> FloatArray:
        """What k groups expect of the factors' columns after their samples: (k, n_apart).

        count (k,) and mean (k, width) are those of the samples, expected (k, n_apart) what the groups expected before.
        """
        after = expected.copy()
        for factor, span, columns in zip(self.factors, self.spans, self._after_block(mean), strict=True):
            after[:, span] = factor.posterior(count, columns, expected[:, span])[1]
        return after

    def log_evidence(
        self, count: FloatArray, mean: FloatArray, expected: FloatArray, only: IntArray | None = None
    ) -> FloatArray:
        """Log marginal likelihoods (k,) of these groups' factors, eq. (17), without what no grouping changes.

        only are the features whose factors count, all if not given.
        """
        total = np.zeros(len(count))
        after_block = self._after_block(mean)
        for feature, factor, span, columns in zip(self.apart, self.factors, self.spans, after_block, strict=True):
            if only is None or feature in only:
                total += factor.log_evidence(count, columns, expected[:, span])
        return total

    def _after_block(self, rows: FloatArray) -> list[FloatArray]:
        """Views of each factor's columns."""
        return [rows[:, len(self.block) :][:, span] for span in self.spans]
