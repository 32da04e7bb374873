"""What a node's statistics and prior say together of the mean and covariance of its Gaussian."""

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.base import Prior
from core.families.statistics import Statistics, outer


def posterior(statistics: Statistics, prior: Prior, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """MAP means (k, m) and covariances of these nodes: the moments of samples and pseudo-samples together."""
    n, k0, a = statistics.count[nodes], prior.mean_count[nodes], prior.strength[nodes]
    b = statistics.n_block
    mean = (n[:, None] * statistics.mean[nodes, :b] + k0[:, None] * prior.mean[nodes, :b]) / (n + k0)[:, None]
    covariance = scatter_about_prior(statistics, prior, nodes)
    ones = (-1, *(1,) * (covariance.ndim - 1))
    covariance += a.reshape(ones) * prior.scale[nodes]
    covariance /= (n + a).reshape(ones)
    return mean, covariance + prior.floor * (1.0 if statistics.diagonal else np.eye(mean.shape[1]))


def scatter_about_prior(statistics: Statistics, prior: Prior, nodes: IntArray) -> FloatArray:
    """The scatter of these nodes, with what the prior mean adds by being elsewhere: (k, m, m), or (k, m)."""
    n, k0 = statistics.count[nodes], prior.mean_count[nodes]
    b = statistics.n_block
    off = outer(statistics.mean[nodes, :b] - prior.mean[nodes, :b], statistics.diagonal)
    off *= (n * k0 / (n + k0)).reshape(-1, *(1,) * (off.ndim - 1))
    off += statistics.scatter[nodes]
    return off
