"""The paper's threshold: online gradient descent on a smooth stand-in for the cost (Alg. 3)."""

from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.base import Threshold


class GradientThreshold(Threshold):
    """Alg. 3: online gradient descent on the loss of eq. (23) by the steps of eq. (24), tau held in G = [low, high].

    tau is a threshold on the density p of the scaled space, at the time of the decision; log_volume, in nats, leads
    from there to scores: value is log_volume - log tau. Its regret in that loss is at most eq. (25).

    Deviations: p is clipped to G, where the theorem needs it but densities have no bound. tau starts at the geometric
    middle of G; the paper does not say where. A revised label takes another step, and a withdrawn one leaves its step,
    since steps cannot be undone.
    """

    def __init__(
        self, low: float, high: float, cost_anomalous: float, cost_normal: float, *, log_volume: float = 0.0
    ) -> None:
        self.low, self.high, self.log_volume = low, high, log_volume
        self.cost = {1: cost_anomalous, -1: cost_normal}
        self.n_labels = 0
        self.tau = sqrt(low) * sqrt(high)

    @property
    def value(self) -> float:  # type: ignore[override]
        """The threshold as a score, in nats."""
        return self.log_volume - log(self.tau)

    def adopt(self, other: Threshold) -> None:
        """Go on from the same rule of other costs or another range, into which tau moves; any other has no tau."""
        if isinstance(other, GradientThreshold):
            self.tau, self.n_labels = min(max(other.tau, self.low), self.high), other.n_labels

    def label(self, seq: int, score: float, label: int) -> None:
        if label == 0:
            return
        self.n_labels += 1
        p = exp(-min(max(score - self.log_volume, -log(self.high)), -log(self.low)))
        pull = label * self.cost[label] * float(expit((p - self.tau) * label))
        self.tau = min(max(self.tau + self.step_size() * pull, self.low), self.high)

    def step_size(self) -> float:
        """a_t of eq. (24), in logs: e^D overflows from D = 709 on."""
        diameter = self.high - self.low
        log_step = 2 * float(np.logaddexp(0.0, diameter)) - diameter - log(self.n_labels) - log(min(self.cost.values()))
        return exp(min(log_step, 700.0))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"threshold": np.array([self.tau]), "threshold_labels": np.array([self.n_labels])}

    def check(self, arrays: Arrays) -> None:
        tau = float(take(arrays, "threshold", np.float64, (1,))[0])
        if not self.low <= tau <= self.high:
            raise InvalidSnapshot(f"its threshold {tau!r} lies outside of its range")
        if not 0 <= take(arrays, "threshold_labels", np.int64, (1,))[0] < 2**53:
            raise InvalidSnapshot("its count of labels is out of range")

    def load(self, arrays: Arrays) -> None:
        self.tau, self.n_labels = float(arrays["threshold"][0]), int(arrays["threshold_labels"][0])
