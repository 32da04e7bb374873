"""The density of values given their context: p(values | context) = p(values, context) / p(context), eq. (37)."""

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray
from core.families.base import NodeDensities


def of_context(C: FloatArray, densities: NodeDensities, n_nodes: int) -> FloatArray:
    """Log densities (n, N), by the nodes' densities of the context alone, of what is known of contexts (n, c).

    Where nothing is known they are 0.
    """
    log_density = np.zeros((len(C), n_nodes))
    for pattern, rows in patterns(np.isnan(C)):
        if not pattern.any():
            log_density[rows] = densities.log_density(C[rows])
        elif not pattern.all():
            log_density[rows] = densities.conditional(C[rows], pattern).known
    return log_density


def of_whole(Z: FloatArray, log_density: FloatArray, densities: NodeDensities, context: BoolArray) -> FloatArray:
    """Log densities (n, N) of samples (n, m), with missing context, a mask (m,), integrated out.

    Of missing values the expected log density counts, eq. (22), as in log_density (n, N): a missing context is not
    scored, so nothing is expected of it.
    """
    whole = log_density.copy()
    for pattern, rows in patterns(np.isnan(Z)):
        if not pattern[context].any():
            continue
        if pattern[~context].any():
            kept = ~(pattern & context)
            part = densities.marginal(np.flatnonzero(kept).tolist())
            whole[rows] = part.conditional(Z[np.ix_(rows, kept)], pattern[kept]).log_density
        else:
            whole[rows] = densities.conditional(Z[rows], pattern).known
    return whole


def patterns(missing: BoolArray) -> list[tuple[BoolArray, IntArray]]:
    """Each pattern (m,) of missing features (n, m), and the rows that have it."""
    return [(pattern, np.flatnonzero((missing == pattern).all(1))) for pattern in np.unique(missing, axis=0)]
