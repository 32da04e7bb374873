"""Models of the same shape, stacked: each evaluates a sample of its own, and numpy is called once for all of them."""

from collections.abc import Sequence

import numpy as np

from core.arrays import BoolArray, FloatArray
from core.density.model import DensityModel
from core.density.round import Batch
from core.families.student_stack import StudentStack
from core.mixture.log_sum import log_sum_exp


def evaluate_each(models: Sequence[DensityModel], Z: FloatArray, time: FloatArray) -> tuple[Batch, BoolArray]:
    """Evaluate a sample (S, m), with timestamps (S,), by each of S models whose stack_shape is the same.

    Says also for which samples (S,) this is what the model's own evaluate gives, to the last bit: for those that are
    learned as they are.
    """
    n_nodes, n_features = models[0].densities.moments()[0].shape
    stack = StudentStack(_stacked([model.row for model in models]), n_nodes, n_features)
    log_density, holds = stack.log_density(Z)
    log_p = log_sum_exp(log_density + _stacked([model.log_weights for model in models]))
    return Batch(Z, log_density, log_p, time, Z, np.zeros(Z.shape), np.zeros((len(Z), 0), bool)), holds


def _stacked(rows: Sequence[FloatArray]) -> FloatArray:
    """Rows (w,) as a matrix (S, w); np.stack takes five times as long."""
    return rows[0][None] if len(rows) == 1 else np.concatenate(rows).reshape(len(rows), -1)
