"""Between which values a feature is expected, given the context: quantiles of the conditional density, eq. (39)."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray
from core.calendar import calendar_columns
from core.density.context import patterns
from core.density.model import DensityModel
from core.errors import InvalidObservation
from core.families.base import NodeDensities
from core.families.layout import BLOCK_KINDS
from core.families.product import ProductNodes
from core.kinds import KINDS
from core.scaling import Scaling
from core.validation import checked_contexts, checked_levels, checked_times
from core.views.description import finite
from core.views.quantiles import NodeMixtures


class ExpectedBand:
    """Quantiles of one feature that is no context, given contexts and times. The model is copied: it may learn on."""

    def __init__(self, model: DensityModel, scaling: Scaling, feature: int) -> None:
        if feature not in model.config.values:
            allowed = ", ".join(map(str, model.config.values))
            raise InvalidObservation("feature", feature, f"a feature that is no context: one of {allowed}")
        self._config, self._scaling, self._feature = model.config, scaling, feature
        self._columns = np.sort([*model.config.context, feature])
        self._densities = deepcopy(model.densities.marginal(self._columns.tolist()))
        self._log_weights = model.log_weights.copy()

    def quantiles(self, levels: Sequence[float], contexts: Any = None, times: Any = None) -> FloatArray:
        """Give the values (n, q), in the user's units, below which the feature lies with chances levels (q,).

        contexts (n, c) are values of the features that are context, in their order, NaN where one is not known; times
        (n,) are timestamps in seconds for the calendar, NaN where one is not known. What is left out is not known; with
        nothing at all it is n = 1.

        Raises InvalidObservation for levels nearer to 0 or 1 than LEAST_LEVEL, and for contexts and times that
        Detector.observe refuses.
        """
        chosen = checked_levels(levels)
        Z = self._given(contexts, times)
        missing = np.isnan(Z)
        missing[:, self._place] = False
        z = np.empty((len(Z), len(chosen)))
        for pattern, rows in patterns(missing):
            z[rows] = self._of_pattern(Z[rows], pattern, chosen)
        kind = KINDS[self._config.kinds[self._feature]]
        values = finite(self._scaling.values(self._feature, z))
        values = kind.nearest(values) if kind.whole else values
        rising = np.argsort(chosen, kind="stable")
        values[:, rising] = np.maximum.accumulate(values[:, rising], 1)
        return values

    @property
    def _place(self) -> int:
        """Where the feature is among the columns."""
        return int(self._columns.searchsorted(self._feature))

    def _given(self, contexts: Any, times: Any) -> FloatArray:
        """Scaled contexts in the columns (n, c + 1) of the densities; the feature's is NaN."""
        config = self._config
        chosen = {i: feature for i, feature in enumerate(config.features or ()) if feature.role == "context"}
        known = None if contexts is None else checked_contexts(contexts, [*chosen.values()])
        n = len(known) if known is not None else 1 if times is None else np.size(times)
        time = checked_times(times, n, needed=False, may_be_nan=True)
        X = np.full((n, config.n_features), np.nan)
        if known is not None:
            X[:, [*chosen]] = known
        Z = self._scaling.apply(X)
        if config.calendar is not None:
            Z = np.concatenate([Z, calendar_columns(config.calendar, time)], 1)
        return Z[:, self._columns]

    def _of_pattern(self, Z: FloatArray, pattern: BoolArray, levels: FloatArray) -> FloatArray:
        """Scaled quantiles (n, q) given contexts (n, c + 1), of which a pattern (c + 1,) of columns is not known."""
        kept = np.flatnonzero(~pattern)
        part = self._densities.marginal(kept.tolist()) if pattern.any() else self._densities
        place = int(kept.searchsorted(self._place))
        given = part.conditional(Z[:, kept], np.arange(len(kept)) == place)
        mixtures = NodeMixtures(given.known + self._log_weights, levels)
        kind = self._config.kinds[self._feature]
        if kind in BLOCK_KINDS:
            return mixtures.of_student(given, *self._freedom(part, kept))
        assert isinstance(part, ProductNodes)
        return mixtures.of_factor(KINDS[kind], part.predictive(place))

    def _freedom(self, part: NodeDensities, kept: IntArray) -> tuple[FloatArray, int]:
        """The nodes' degrees of freedom (N,), and how many known columns add one to them."""
        kinds = [self._config.column_kinds[column] for column in self._columns[kept]]
        n_known = sum(kind in BLOCK_KINDS for kind in kinds) - 1
        freedom = np.full(len(self._log_weights), np.inf) if part.freedom is None else part.freedom
        return freedom, 0 if self._config.family == "gaussian_diagonal" else n_known
