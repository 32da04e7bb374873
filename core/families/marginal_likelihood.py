"""The marginal likelihood of Gaussian samples, eq. (19), and the normal-inverse-Wishart prior that it prefers."""

from dataclasses import dataclass
from math import log, pi
from typing import Final

import numpy as np
from scipy.special import gammaln

from core.arrays import FloatArray, IntArray
from core.families.cholesky import factor
from core.families.statistics import outer

STRENGTHS: Final[FloatArray] = np.array([2.0**k for k in range(9)])
"""Pseudo-samples that a prior scale may count as. Chosen by hand; section 10 of docs/method.md has the losses of 1
and of 16 alone."""
MEAN_COUNT: Final = 0.1
"""Pseudo-samples that the prior mean of a node below the root counts as. Chosen by hand."""
OWN_COUNT: Final = 1.0
"""Pseudo-samples that the expected variances count as in the prior scale, beside the samples' own. Chosen by hand."""


@dataclass(slots=True)
class Choice:
    """The best priors of k groups: log marginal likelihoods (k,), scales (k, m, m) or (k, m), and strengths (k,).

    of_context (k,) are those of the context alone, under the same priors.
    """

    log_evidence: FloatArray
    of_context: FloatArray
    scale: FloatArray
    strength: FloatArray


@dataclass(slots=True)
class Expectation:
    """What k groups expect before their samples: variances (k, m), correlations (k, m, m), and their credit (k,).

    The correlations are those of the parent, None when diagonal. Their credit, 0 to 1, is n / (n + m (m + 1) / 2) for
    a parent of n samples.
    """

    variance: FloatArray
    correlation: FloatArray | None
    credit: FloatArray


def choose_prior(
    count: FloatArray,
    scatter: FloatArray,
    expected: Expectation,
    floor: FloatArray,
    mean_count: FloatArray,
    context: IntArray,
) -> Choice:
    """The scale and strength of the highest evidence, eq. (19), for each of k groups of samples, given their context.

    count (k,); scatter about the prior mean, (k, m, m) or (k, m); mean_count (k,), the pseudo-samples of the prior
    mean; context (c,), the columns that are context. A scale has the group's own variances, shrunk to the expected ones
    and at least floor (m,), either without correlations or with the expected ones.
    """
    scales = _scales(count, scatter, expected, floor)
    kinds, k = len(scales), len(count)
    n, squares, weight = (np.concatenate([array] * kinds) for array in (count, scatter, mean_count))

    def tried(of: FloatArray, scale: FloatArray) -> FloatArray:
        values = log_evidence(n, of, scale, STRENGTHS, weight)
        return values.reshape(kinds, k, -1).transpose(1, 0, 2)

    whole = tried(squares, np.concatenate(scales))
    if context.size:
        given = tried(sub_block(squares, context), sub_block(np.concatenate(scales), context))
    else:
        given = np.zeros_like(whole)
    best = (whole - given).reshape(k, -1).argmax(1)
    kind, strength = np.divmod(best, len(STRENGTHS))
    at = np.arange(k), kind, strength
    return Choice(whole[at], given[at], np.stack(scales, 1)[at[:2]], STRENGTHS[strength])


def sub_block(matrices: FloatArray, columns: IntArray) -> FloatArray:
    """The rows and columns (c,) of matrices (k, m, m), or those of diagonals (k, m)."""
    return matrices[:, columns] if matrices.ndim == 2 else matrices[:, columns][:, :, columns]


def log_evidence(
    count: FloatArray, scatter: FloatArray, scale: FloatArray, strengths: FloatArray, mean_count: FloatArray
) -> FloatArray:
    """Log marginal likelihoods (k, s) of k groups with their prior scales under each of s strengths: eq. (19), in nats.

    The eigenvalues of T^-1/2 S T^-1/2 serve all strengths. When diagonal, the product over the features of the same
    with m = 1.
    """
    m, a = scatter.shape[1], strengths
    if scatter.ndim == 2:
        spread, log_volume = np.maximum(scatter / scale, 0.0), 0.5 * np.log(scale).sum(1)
        nu, gammas = a, m * _log_gamma_growth(a, count, 1)
    else:
        spread, log_volume = _relative_spread(scatter, scale)
        nu, gammas = a + m - 1, _log_gamma_growth(a + m - 1, count, m)
    constant = gammas + 0.5 * nu * m * np.log(a) - 0.5 * m * (count * log(pi) + np.log1p(count / mean_count))[:, None]
    total = np.log(a[:, None] + spread[:, None, :]).sum(2)
    value: FloatArray = constant - 0.5 * (nu + count[:, None]) * total - (count * log_volume)[:, None]
    return value


def _scales(count: FloatArray, scatter: FloatArray, expected: Expectation, floor: FloatArray) -> list[FloatArray]:
    variance = own_scale(count, scatter, expected.variance, floor)
    if expected.correlation is None:
        return [variance]
    plain = variance[:, :, None] * np.eye(variance.shape[1])
    deviation = np.sqrt(variance)
    correlated = expected.correlation * outer(deviation, diagonal=False)
    credit = expected.credit[:, None, None]
    return [plain, (1 - credit) * plain + credit * correlated]


def own_scale(count: FloatArray, scatter: FloatArray, expected: FloatArray, floor: FloatArray) -> FloatArray:
    """The variances (k, m) that groups have themselves, shrunk to the expected ones, and at least floor (m,)."""
    own = scatter if scatter.ndim == 2 else np.einsum("kii->ki", scatter)
    variance: FloatArray = (OWN_COUNT * expected + own) / (OWN_COUNT + count)[:, None] + floor
    # what is left of 1e24 less 1e24 for a side of small values may be far below zero
    return np.maximum(variance, floor)


def _relative_spread(scatter: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (k, m) of T^-1/2 S T^-1/2, and half the log determinants (k,) of T."""
    factors, deviations = factor(scale)
    whitening = np.linalg.inv(factors) / deviations[:, None, :]
    spread = np.linalg.eigvalsh(whitening @ scatter @ whitening.transpose(0, 2, 1))
    log_volume = np.log(np.einsum("kii->ki", factors)).sum(1) + np.log(deviations).sum(1)
    return np.maximum(spread, 0.0), log_volume


def _log_gamma_growth(nu: FloatArray, count: FloatArray, m: int) -> FloatArray:
    """log Gamma_m((nu + n) / 2) - log Gamma_m(nu / 2), (k, s), for nu (s,) and n (k,)."""
    j = np.arange(m)
    grown = gammaln((nu[:, None] + count[:, None, None] - j) / 2).sum(2)
    value: FloatArray = grown - gammaln((nu[:, None] - j) / 2).sum(1)
    return value


def quick_evidence(
    count: FloatArray, scatter: FloatArray, expected: FloatArray, strengths: FloatArray, floor: FloatArray
) -> FloatArray:
    """Log marginal likelihoods (k, s), in nats, up to a constant that grouping the samples otherwise does not change.

    The scale has the group's own variances, shrunk to the expected ones (m,), and no correlations. It serves to rank
    cuts, not to decide on one.
    """
    m, a = scatter.shape[1], strengths
    variance = own_scale(count, scatter, expected, floor)
    if scatter.ndim == 2:
        total = np.log(a[:, None] + (scatter / variance)[:, None, :]).sum(2)
        nu, gammas = a, m * _log_gamma_growth(a, count, 1)
    else:
        deviation = np.sqrt(variance)
        relative = scatter / outer(deviation, diagonal=False)
        total = np.linalg.slogdet(relative[:, None] + a[:, None, None] * np.eye(m))[1]
        nu, gammas = a + m - 1, _log_gamma_growth(a + m - 1, count, m)
    common = m * np.log1p(count / MEAN_COUNT) + count * np.log(variance).sum(1)
    value: FloatArray = gammas + 0.5 * (nu * m * np.log(a) - (nu + count[:, None]) * total - common[:, None])
    return value


def log_share(left: FloatArray, right: FloatArray) -> FloatArray:
    """The log evidence (k,) of how many samples fall on which side, the Beta term of eq. (20).

    >>> log_share(np.array([1.0, 10.0]), np.array([0.0, 10.0])).round(3)
    array([ -0.693, -15.599])
    """
    value: FloatArray = gammaln(left + 0.5) + gammaln(right + 0.5) - gammaln(left + right + 1.0) - log(pi)
    return value
