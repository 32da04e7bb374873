"""Marginal likelihood of Gaussian samples, and the prior that it prefers (normal-inverse-Wishart)."""

from dataclasses import dataclass
from math import log, pi
from typing import Final

import numpy as np
from scipy.special import gammaln

from core.arrays import FloatArray
from core.families.cholesky import factor
from core.families.statistics import outer

STRENGTHS: Final[FloatArray] = np.array([2.0**k for k in range(9)])
"""Candidates for how many pseudo-samples the prior scale counts as."""
MEAN_COUNT: Final = 0.1
"""How many pseudo-samples the prior mean of a node below the root counts as."""
OWN_COUNT: Final = 1.0
"""Pseudo-samples of the inherited variances in the prior scale, which otherwise takes the samples' own."""


@dataclass(slots=True)
class Choice:
    """The best prior of each of k groups: its log marginal likelihood, its scale (k, m, m) or (k, m), its strength."""

    log_evidence: FloatArray
    scale: FloatArray
    strength: FloatArray


@dataclass(slots=True)
class Expectation:
    """What k groups expect before their samples: variances (k, m); correlations (k, m, m) and their credit (k,).

    The correlations are those of the parent, credible at n / (n + m (m + 1) / 2) of its n samples; None when diagonal.
    """

    variance: FloatArray
    correlation: FloatArray | None
    credit: FloatArray


def choose_prior(
    count: FloatArray, scatter: FloatArray, expected: Expectation, floor: float, mean_count: FloatArray
) -> Choice:
    """The scale and strength of highest evidence for groups of samples.

    count (k,); scatter (k, m, m) about the prior mean, or (k, m); mean_count (k,) the weight of the prior mean. The
    scale is the group's own variances, shrunk to the expected ones, without correlations or with those expected.
    """
    scales = _scales(count, scatter, expected, floor)
    kinds, k = len(scales), len(count)
    n, squares, weight = (np.concatenate([array] * kinds) for array in (count, scatter, mean_count))
    values = log_evidence(n, squares, np.concatenate(scales), STRENGTHS, weight)
    values = values.reshape(kinds, k, -1).transpose(1, 0, 2)
    best = values.reshape(k, -1).argmax(1)
    kind, strength = np.divmod(best, len(STRENGTHS))
    groups = np.arange(k)
    return Choice(values[groups, kind, strength], np.stack(scales, 1)[groups, kind], STRENGTHS[strength])


def log_evidence(
    count: FloatArray, scatter: FloatArray, scale: FloatArray, strengths: FloatArray, mean_count: FloatArray
) -> FloatArray:
    """Log marginal likelihoods, (k, s), of k groups under a prior of their scale and each of s strengths.

    With a pseudo-samples of scale T, nu = a + m - 1: log ml = log G_m((nu+n)/2) - log G_m(nu/2) + nu/2 log|aT|
    - (nu+n)/2 log|aT+S| - nm/2 log pi + m/2 log(k0/(k0+n)). The eigenvalues of T^-1/2 S T^-1/2 serve every strength.
    Diagonal: the product of the same for every feature alone.
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


def _scales(count: FloatArray, scatter: FloatArray, expected: Expectation, floor: float) -> list[FloatArray]:
    variance = _own_scale(count, scatter, expected.variance, floor)
    if expected.correlation is None:
        return [variance]
    plain = variance[:, :, None] * np.eye(variance.shape[1])
    deviation = np.sqrt(variance)
    correlated = expected.correlation * outer(deviation, diagonal=False)
    credit = expected.credit[:, None, None]
    return [plain, (1 - credit) * plain + credit * correlated]


def _own_scale(count: FloatArray, scatter: FloatArray, expected: FloatArray, floor: float) -> FloatArray:
    own = scatter if scatter.ndim == 2 else np.einsum("kii->ki", scatter)
    variance: FloatArray = (OWN_COUNT * expected + own) / (OWN_COUNT + count)[:, None] + floor
    # what is left of 1e24 less 1e24 for a side of small values may be far below zero
    return np.maximum(variance, floor)


def _relative_spread(scatter: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (k, m) of T^-1/2 S T^-1/2, and half the log determinants of T."""
    factors, deviations = factor(scale)
    whitening = np.linalg.inv(factors) / deviations[:, None, :]
    spread = np.linalg.eigvalsh(whitening @ scatter @ whitening.transpose(0, 2, 1))
    log_volume = np.log(np.einsum("kii->ki", factors)).sum(1) + np.log(deviations).sum(1)
    return np.maximum(spread, 0.0), log_volume


def _log_gamma_growth(nu: FloatArray, count: FloatArray, m: int) -> FloatArray:
    """log G_m((nu + n) / 2) - log G_m(nu / 2), (k, s), without the part that cancels."""
    j = np.arange(m)
    grown = gammaln((nu[:, None] + count[:, None, None] - j) / 2).sum(2)
    value: FloatArray = grown - gammaln((nu[:, None] - j) / 2).sum(1)
    return value


def quick_evidence(
    count: FloatArray, scatter: FloatArray, expected: FloatArray, strengths: FloatArray, floor: float
) -> FloatArray:
    """Log marginal likelihoods (k, s) with the group's own variances, shrunk to the expected ones (m,), as the scale.

    No correlations, and without what does not depend on how samples are grouped: to rank, not to decide.
    """
    m, a = scatter.shape[1], strengths
    variance = _own_scale(count, scatter, expected, floor)
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
    """log B(l + 1/2, r + 1/2) / B(1/2, 1/2): the evidence of how many samples fall on which side, (k,)."""
    value: FloatArray = gammaln(left + 0.5) + gammaln(right + 0.5) - gammaln(left + right + 1.0) - log(pi)
    return value
