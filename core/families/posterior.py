"""The mean and covariance of a node's Gaussian, by its statistics and prior."""

import numpy as np

from core.arrays import FloatArray, IntArray
from core.families.base import Prior
from core.families.statistics import Statistics, outer


def posterior(statistics: Statistics, prior: Prior, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """MAP means (k, b) and covariances, (k, b, b) or (k, b), of these nodes (k,): eq. (5).

    Deviations, under the default profile: the covariance has pseudo-samples of its own, strength in place of
    mean_count, and the least variance is added.
    """
    n, k0, a = statistics.count[nodes], prior.mean_count[nodes], prior.strength[nodes]
    b = statistics.n_block
    mean = (n[:, None] * statistics.mean[nodes, :b] + k0[:, None] * prior.mean[nodes, :b]) / (n + k0)[:, None]
    covariance = scatter_about_prior(statistics, prior, nodes)
    ones = (-1, *(1,) * (covariance.ndim - 1))
    covariance += a.reshape(ones) * prior.scale[nodes]
    covariance /= (n + a).reshape(ones)
    return mean, covariance + prior.floor * (1.0 if statistics.diagonal else np.eye(mean.shape[1]))


def scatter_about_prior(statistics: Statistics, prior: Prior, nodes: IntArray) -> FloatArray:
    """The scatter of these nodes about the prior mean, (k, b, b) or (k, b): the terms of eq. (5) without Sigma_0."""
    n, k0 = statistics.count[nodes], prior.mean_count[nodes]
    b = statistics.n_block
    off = outer(statistics.mean[nodes, :b] - prior.mean[nodes, :b], statistics.diagonal)
    off *= (n * k0 / (n + k0)).reshape(-1, *(1,) * (off.ndim - 1))
    off += statistics.scatter[nodes]
    return off
