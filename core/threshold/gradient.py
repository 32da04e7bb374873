"""The paper's threshold: online gradient descent on a smooth stand-in for the cost (Alg. 3)."""

from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from core.arrays import FloatArray
from core.errors import InvalidSnapshot
from core.snapshot import Arrays, take
from core.threshold.base import Threshold


class GradientThreshold(Threshold):
    """Alg. 3: online gradient descent on C_d log(1 + exp((p - tau) d)), tau held in G = [low, high].

    tau <- P_G(tau + a_t d C_d / (1 + exp((tau - p) d))), a_t = (1 + e^D)^2 / (t C_min e^D), D = high - low, t counting
    labels (Theorem 2). p is the density of the scaled space at decision time, clipped to G, where the theorem needs it;
    log_volume is the Jacobian, in nats, between that and a score. A label that is revised takes a step of its own; one
    that is withdrawn cannot: a step is not undone. tau starts at G's geometric middle.
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
        """-log tau, in the user's units."""
        return self.log_volume - log(self.tau)

    def pass_by(self, scores: FloatArray) -> FloatArray:
        return np.full(len(scores), self.value)

    def label(self, seq: int, score: float, label: int, level: float = 0.0) -> None:
        if label == 0:
            return
        self.n_labels += 1
        p = exp(-min(max(score - self.log_volume, -log(self.high)), -log(self.low)))
        pull = label * self.cost[label] * float(expit((p - self.tau) * label))
        self.tau = min(max(self.tau + self._step_size() * pull, self.low), self.high)

    def _step_size(self) -> float:
        """a_t, in logs: e^D overflows from D = 709 on."""
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
