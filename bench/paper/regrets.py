"""Regret measured against the paper's bounds: Theorem 1 for the weights, Theorem 2 for the threshold."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Final

import numpy as np
from scipy.optimize import minimize_scalar

from bench.detectors import ItanModel
from bench.paper.experiments import itan_config
from bench.paper.opponents import gaussian_log_density
from bench.paper.roc import RANGE
from bench.paper.streams import three_gaussians
from bench.protocol import prequential
from core.arrays import BoolArray, FloatArray
from core.mixture import Mixture
from core.mixture.log_sum import log_mixture
from core.threshold.gradient import GradientThreshold
from core.tree.subspaces import SubspaceTree

SEED: Final = 100
ROUNDS: Final = 3000
FIRST: Final = 10
CHECKPOINTS: Final = 30
EM_STEPS: Final = 50


@dataclass(frozen=True, slots=True)
class Regret:
    """Measured regret, and its bound, after each of some numbers of rounds."""

    rounds: Sequence[int]
    measured: FloatArray
    bound: FloatArray


def checkpoints(rounds: int) -> list[int]:
    """Numbers of rounds, evenly spaced in logs."""
    return sorted({int(t) for t in np.geomspace(FIRST, rounds, CHECKPOINTS).round()})


def node_log_densities(model: ItanModel, rounds: int) -> FloatArray:
    """Log densities (n, N) of a grown tree's nodes, held fixed, on fresh normals of experiment 1."""
    X, anomalous = three_gaussians(SEED, rounds)
    nodes = model.detector.describe()["nodes"]
    parts = [gaussian_log_density(X[~anomalous], np.array(n["mean"]), np.array(n["covariance"])) for n in nodes]
    return np.stack(parts, 1)


def weights_regret(rule: type[Mixture], log_density: FloatArray) -> Regret:
    """Log-loss beyond the best fixed weights in hindsight, and its bound, eq. (13).

    A is the mean loss in the unit in which the largest density so far is 1; R is the largest ratio f_i / p so far.
    """
    n, mixture = log_density.shape[1], rule(SubspaceTree(1))
    mixture.weights = np.full(n, 1 / n)
    loss, largest = np.empty(len(log_density)), np.empty(len(log_density))
    for t, row in enumerate(log_density):
        log_p = float(log_mixture(row[None], mixture.weights)[0])
        loss[t], largest[t] = -log_p, exp(float(row.max()) - log_p)
        mixture.learn(mixture.shares(row[None]))
    loss, largest = loss.cumsum(), np.maximum.accumulate(largest)
    rounds = checkpoints(len(loss))
    at = np.array(rounds) - 1
    ratio, summed = largest[at], loss[at] + np.array(rounds) * log_density.max()
    bound = (ratio / 2 + 1) * np.sqrt(2 * summed * log(n)) + ratio**2 * log(n) / 2
    return Regret(rounds, loss[at] - _best_weights_losses(log_density, rounds), bound)


def _best_weights_losses(log_density: FloatArray, rounds: Sequence[int]) -> FloatArray:
    """The least loss that any fixed weights have on each prefix: EM on the weights, started from the prefix before."""
    density = np.exp(log_density)
    weights = np.full(density.shape[1], 1 / density.shape[1])
    least = np.empty(len(rounds))
    for k, t in enumerate(rounds):
        for _ in range(EM_STEPS):
            weights = (density[:t] * weights / (density[:t] @ weights)[:, None]).mean(0)
        least[k] = -np.log(density[:t] @ weights).sum()
    return least


def scored_stream(rounds: int) -> tuple[FloatArray, BoolArray]:
    """The default profile's scores of experiment 1, and the truth."""
    X, anomalous = three_gaussians(SEED, rounds)
    run = prequential(ItanModel(itan_config(2)), X, anomalous, normals_only=True)
    return run.scores, anomalous


def random_stream(rounds: int) -> tuple[FloatArray, BoolArray]:
    """Densities and labels drawn without regard to each other, uniform over G and even."""
    rng = np.random.default_rng(SEED)
    return -np.log(rng.uniform(*RANGE, rounds)), rng.random(rounds) < 0.5


def threshold_regret(scores: FloatArray, anomalous: BoolArray, cost_anomalous: float, cost_normal: float) -> Regret:
    """The loss of eq. (23) by Alg. 3 beyond that of the best fixed tau, and its bound, eq. (25)."""
    low, high = RANGE
    rule = GradientThreshold(low, high, cost_anomalous, cost_normal)
    p = np.clip(np.exp(-scores), low, high)
    sign = np.where(anomalous, 1.0, -1.0)
    cost = np.where(anomalous, cost_anomalous, cost_normal)
    tau = np.empty(len(p))
    for t, (score, d) in enumerate(zip(scores.tolist(), sign, strict=True)):
        tau[t] = rule.tau
        rule.label(t + 1, score, int(d))
    loss = (cost * np.logaddexp(0.0, (p - tau) * sign)).cumsum()
    rounds = checkpoints(len(p))
    best = [_least_surrogate(p[:t], sign[:t], cost[:t]) for t in rounds]
    worst_cost = max(cost_anomalous, cost_normal) ** 2 / min(cost_anomalous, cost_normal)
    bound = exp(high - low) * worst_cost * (1 + np.log(rounds)) / 2
    return Regret(rounds, loss[np.array(rounds) - 1] - np.array(best), bound)


def _least_surrogate(p: FloatArray, sign: FloatArray, cost: FloatArray) -> float:
    def loss(tau: float) -> float:
        return float((cost * np.logaddexp(0.0, (p - tau) * sign)).sum())

    inner = minimize_scalar(loss, bounds=RANGE, method="bounded", options={"xatol": sqrt(1e-16)})
    return min(float(inner.fun), loss(RANGE[0]), loss(RANGE[1]))
