"""The search for the hyperplane that best parts a leaf's recent samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.arrays import BoolArray, FloatArray, IntArray
from core.tree.subspaces import direction, distances

AXES: Final = 2
QUANTILES: Final = np.arange(1, 8) / 8
LLOYD_STEPS: Final = 3
REFINEMENTS: Final = 2
"""Axes of most variance, quantiles at which they are cut, steps of 2-means, rounds of refinement. Chosen by hand."""
LEAST_VARIANCE: Final = 1e-3
"""Of a side, as a share of the variance of all projections: a side of equal values is not infinitely good. Chosen by
hand."""
RIDGE: Final = 0.1
"""Added to the scatter within the sides when samples are few: a share of the leaf's variances. Chosen by hand."""


@dataclass(slots=True)
class Hyperplanes:
    """P hyperplanes: unit normals (P, m) and offsets (P,)."""

    normal: FloatArray
    offset: FloatArray

    def left(self, X: FloatArray) -> BoolArray:
        """Which samples (n, m) lie on the left of each hyperplane: (n, P)."""
        side: BoolArray = distances(X, self.normal) >= self.offset
        return side

    def stretched(self, spread: FloatArray) -> "Hyperplanes":
        """The same hyperplanes where each feature is multiplied by its spread (m,)."""
        normals = self.normal / spread
        largest = np.abs(normals).max(1)  # first, since squares of 1e170 are no doubles
        part = normals / largest[:, None]
        length = np.sqrt((part * part).sum(1))
        return Hyperplanes(part / length[:, None], self.offset / length / largest)


Judge = Callable[[BoolArray], FloatArray]
"""The worth (P,) of each of P cuts of n samples, given as masks (n, P) of their left sides."""


def best_hyperplane(
    X: FloatArray, covariance: FloatArray, least: int, judge: Judge, apart: IntArray | None = None, tie: float = 0.0
) -> Hyperplanes | None:
    """The hyperplane that the judge likes best, with at least so many samples of (n, m) on each side; None without one.

    It tries cuts across the axes of most variance of this covariance, (m, m) or (m,), and across each of the features
    apart: at quantiles, where two one-dimensional Gaussians fit best, and by 2-means. Then, twice, it tries cuts across
    the direction that best separates the two sides of the best cut so far. Of cuts whose worths differ by no more than
    tie the first one is taken.
    """
    best, worth = None, -np.inf
    found = _first(X, covariance, least, np.zeros(0, np.int64) if apart is None else apart)
    for _ in range(1 + REFINEMENTS):
        left = found.left(X)
        sizes = left.sum(0)
        fits = (sizes >= least) & (len(X) - sizes >= least)
        if not fits.any():
            break
        values = np.where(fits, judge(left), -np.inf)
        at = int((values >= values.max() - tie).argmax())
        if values[at] <= worth + tie:
            break
        best, worth = Hyperplanes(found.normal[at : at + 1], found.offset[at : at + 1]), values[at]
        found = _refined(X, left[:, at], best.normal[0], covariance, least)
    return best


def _first(X: FloatArray, covariance: FloatArray, least: int, apart: IntArray) -> Hyperplanes:
    normals, offsets = [], []
    for axis in [*_principal_axes(covariance), *np.eye(X.shape[1])[apart]]:
        along = X @ axis
        ordered = np.sort(along)
        cuts = [*_quantile_cuts(ordered, least), _best_cut(ordered, least)]
        normals += [axis] * len(cuts)
        offsets += cuts
        median = 0.5 * (ordered[(len(X) - 1) // 2] + ordered[len(X) // 2])
        plane = _two_means(X, along >= median)
        if plane is not None:
            normals.append(plane[0])
            offsets.append(plane[1])
    return Hyperplanes(np.array(normals), np.array(offsets))


def _principal_axes(covariance: FloatArray) -> FloatArray:
    """The directions of most variance (axes, m), of a covariance (m, m) or a diagonal (m,)."""
    if covariance.ndim == 1:
        return np.eye(len(covariance))[np.argsort(-covariance, kind="stable")[:AXES]]
    axes: FloatArray = np.linalg.eigh(covariance)[1][:, ::-1].T[:AXES]
    largest = np.abs(axes).argmax(1)
    turned: FloatArray = axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]
    return turned


def _quantile_cuts(ordered: FloatArray, least: int) -> list[float]:
    n = len(ordered)
    return [_between(ordered, min(max(int(n * q), least), n - least)) for q in QUANTILES]


def _between(ordered: FloatArray, k: int) -> float:
    """The cut halfway above the k lowest values."""
    return 0.5 * float(ordered[k - 1] + ordered[k])


def _best_cut(ordered: FloatArray, least: int) -> float:
    """The cut of projections (n,), in rising order, whose sides two one-dimensional Gaussians fit best."""
    n = len(ordered)
    p = ordered - ordered.mean()
    k = np.arange(least, n - least + 1)
    sums, squares = np.cumsum(p), np.cumsum(p * p)
    floor = max(LEAST_VARIANCE * squares[-1] / n, 1e-300)
    below = squares[k - 1] / k - (sums[k - 1] / k) ** 2
    above = (squares[-1] - squares[k - 1]) / (n - k) - ((sums[-1] - sums[k - 1]) / (n - k)) ** 2
    loss = k * (0.5 * np.log(np.maximum(below, 0.0) + floor) - np.log(k))
    loss += (n - k) * (0.5 * np.log(np.maximum(above, 0.0) + floor) - np.log(n - k))
    return _between(ordered, int(k[loss.argmin()]))


def _two_means(X: FloatArray, left: BoolArray) -> tuple[FloatArray, float] | None:
    """The hyperplane halfway between two means, after a few steps of Lloyd's algorithm; None if they coincide."""
    for _ in range(LLOYD_STEPS):
        n_left = int(np.count_nonzero(left))
        if n_left in (0, len(X)):
            return None
        a, b = X[left].sum(0) / n_left, X[~left].sum(0) / (len(X) - n_left)
        gap = a - b
        along = direction(gap)
        if along is None:
            return None
        normal, offset = along[0], float(gap @ (a + b)) / (2 * along[1])
        left = X @ normal >= offset
    return normal, offset


def _refined(X: FloatArray, left: BoolArray, normal: FloatArray, covariance: FloatArray, least: int) -> Hyperplanes:
    """The best cuts across Fisher's direction of the two sides, and across the present normal."""
    a, b = X[left], X[~left]
    center_a, center_b = a.mean(0), b.mean(0)
    a, b, gap = a - center_a, b - center_b, center_a - center_b
    few = min(1.0, X.shape[1] / len(X))
    if covariance.ndim == 1:
        within = ((a * a).sum(0) + (b * b).sum(0)) / len(X)
        apart = gap / (within + RIDGE * few * covariance)
    else:
        within = (a.T @ a + b.T @ b) / len(X)
        apart = _solved(within + RIDGE * few * np.diag(np.diag(covariance)), gap)
    along = direction(apart)
    normals = np.stack([along[0], normal]) if along is not None else normal[None]
    return Hyperplanes(normals, np.array([_best_cut(np.sort(X @ axis), least) for axis in normals]))


def _solved(matrix: FloatArray, v: FloatArray) -> FloatArray:
    """The solution u of matrix u = v; with the diagonal alone if the matrix has no inverse.

    It has none if two features are equal, and large beside the leaf's faded variances.
    """
    try:
        return np.asarray(np.linalg.solve(matrix, v), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(v / np.diag(matrix), np.float64)
