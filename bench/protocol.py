"""The prequential protocol that every benchmark shares: score a sample, then learn it, or not."""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Final, Protocol

import numpy as np

from core.arrays import BoolArray, FloatArray

CLIPPED_AT: Final = 50.0
"""Nats at which the clipped mean cuts the loss of a round."""


class Model(Protocol):
    """Scores samples, high = anomalous, by what it has learned before; block samples at a time."""

    block: int

    def score(self, X: FloatArray) -> FloatArray:
        """Score (k,) of samples (k, m), k <= block."""

    def learn(self, X: FloatArray) -> None:
        """Learn samples that were just scored, or the normal ones of them."""


@dataclass(frozen=True, slots=True)
class Run:
    """Scores (n,) of the first n samples of a stream, their truth, and the CPU seconds of scoring and learning."""

    scores: FloatArray
    anomalous: BoolArray
    seconds: float
    stopped: bool = False


def prequential(
    model: Model,
    X: FloatArray,
    anomalous: BoolArray,
    *,
    normals_only: bool,
    budget_seconds: float = np.inf,
    clock: Callable[[], float] = process_time,
) -> Run:
    """Pass a stream through a model: score each block and only then learn it, without its anomalies if wanted.

    Stops after the block that uses up the budget.
    """
    scores = np.empty(len(X))
    start = clock()
    done, seconds = 0, 0.0
    while done < len(X) and seconds < budget_seconds:
        block = slice(done, done + model.block)
        scores[block] = model.score(X[block])
        wanted = X[block][~anomalous[block]] if normals_only else X[block]
        if len(wanted):
            model.learn(wanted)
        done, seconds = min(done + model.block, len(X)), clock() - start
    return Run(scores[:done], anomalous[:done], seconds, stopped=done < len(X))


@dataclass(frozen=True, slots=True)
class Loss:
    """Log-loss in nats, of normal rounds: their mean, median and clipped mean; and the paper's convention.

    The paper's is their sum over ALL rounds: an anomalous round counts as 0.
    """

    per_normal_round: float
    papers: float
    median: float
    clipped: float


def log_loss(scores: FloatArray, anomalous: BoolArray) -> Loss:
    """Loss of a density model, whose scores are -log p.

    >>> log_loss(np.array([1.0, 3.0, 7.0, 100.0]), np.array([False, False, True, False]))
    Loss(per_normal_round=34.666666666666664, papers=26.0, median=3.0, clipped=18.0)
    """
    loss = scores[~anomalous]
    clipped = np.minimum(loss, CLIPPED_AT).mean()
    return Loss(float(loss.mean()), float(loss.sum() / len(scores)), float(np.median(loss)), float(clipped))


def z_scored(X: FloatArray) -> FloatArray:
    """The samples with mean 0 and deviation 1 in each feature, over the whole stream; a constant feature becomes 0."""
    deviation = X.std(0)
    scaled: FloatArray = (X - X.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    return scaled


def min_max_scaled(X: FloatArray) -> FloatArray:
    """The samples with each feature from 0 to 1 over the whole stream; a constant feature becomes 0."""
    low, width = X.min(0), np.ptp(X, 0)
    scaled: FloatArray = (X - low) / np.where(width > 0, width, 1.0)
    return scaled
