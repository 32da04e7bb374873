"""Scales that follow the samples: features that move late, and spreads that are not any more what they were."""

from typing import Final

import numpy as np

from core.arrays import FloatArray
from core.engine.learning import surprise
from core.engine.state import DetectorState
from core.scaling import Scaling, coordinates
from core.threshold.ordinary_scores import ENOUGH

RESCORED: Final = 256
"""Newest learned samples whose scores the ordinary ones begin again with when a spread has changed. Chosen by hand."""


def own_scalings(state: DetectorState, X: FloatArray) -> dict[int, Scaling]:
    """The scalings, by row, of those samples (n, m) that would change it if they came next."""
    own = {}
    if state.unscaled.any:
        U = coordinates(X, state.config.kinds)
        for row in np.flatnonzero(state.unscaled.wakes(U, state.scaling.location)).tolist():
            own[row] = state.unscaled.woken(state.scaling, U[row])
    return own


def wake(state: DetectorState, X: FloatArray) -> int:
    """Change the scaling if the first of samples (n, m), which are next, wants it; how many of them it then fits."""
    if not state.unscaled.any:
        return len(X)
    U = coordinates(X, state.config.kinds)
    if (scaling := state.unscaled.woken(state.scaling, U[0])) is not state.scaling:
        state.rescale(scaling)
    return state.unscaled.watch(U, scaling.location)


def settle(state: DetectorState) -> None:
    """After samples were learned or labelled: if a spread has changed, let ordinary scores be those of today's model.

    The newest learned samples are scored again, as those of the warm-up were.
    """
    if told := state.unscaled.told(state.scaling):
        state.density.tell(told)
    if not state.density.followed:
        return
    state.density.followed = False
    Z = state.density.growth.newest(RESCORED)
    if len(Z) >= ENOUGH:
        batch = state.density.evaluate(Z, np.full(len(Z), np.nan))
        state.rule.begin_again(state.resemblance.raised(batch.learned, surprise(state, batch)))
