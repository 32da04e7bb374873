"""Our Detector as a model of the protocol."""

import numpy as np

from core import Detector, DetectorConfig, Records
from core.arrays import FloatArray


class ItanModel:
    """Observes sample by sample; `learn` sends the label 'normal' at once if the config waits for labels."""

    block = 1

    def __init__(self, config: DetectorConfig) -> None:
        self.detector = Detector(config)
        self._waits = config.learn_from == "labelled_normal"
        self._records: Records | None = None

    def score(self, X: FloatArray) -> FloatArray:
        seen = self.detector.observe(X)
        self._records = seen.records
        return seen.score

    def learn(self, X: FloatArray) -> None:
        if self._waits:
            assert self._records is not None
            self.detector.feedback(self._records, [False] * len(X))

    @property
    def state_bytes(self) -> int:
        return len(self.detector.to_bytes())

    def density(self, X: FloatArray) -> FloatArray:
        """The density at some points, (n,)."""
        p: FloatArray = np.exp(self.detector.log_density(X))
        return p
