"""The answers of a detector, to samples and to labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.arrays import BoolArray, FloatArray, IntArray
from core.records import Records
from core.views.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer to n samples, in columns of length n.

    score and threshold are in nats, NaN during the warm-up, when ready is False; is_anomaly is score > threshold.
    severity is -log10 of the chance that an ordinary sample scores as high, NaN during the warm-up: 2 is 1 in 100.
    incident is the seq of the sample that opened the incident which a sample belongs to, 0 for none; event is the place
    in INCIDENT_EVENTS of what happened to that incident there.
    held_out is True where the caller held a sample out: it is scored and decided, and belongs to no incident.
    samples_needed says how many more samples the warm-up needs. Keep records: feedback wants them with the labels.
    explanation explains the flagged samples, in their order, by the model that scored them; None if not asked for.
    """

    seq: IntArray
    score: FloatArray
    threshold: FloatArray
    severity: FloatArray
    is_anomaly: BoolArray
    ready: BoolArray
    incident: IntArray
    event: NDArray[np.int8]
    samples_needed: int
    records: Records
    explanation: Explanation | None = None

    @property
    def held_out(self) -> BoolArray:
        """Whether each sample was held out, (n,)."""
        return self.records.held_out


@dataclass(frozen=True, slots=True)
class Feedback:
    """The answer to n labels.

    outcome says of each what it did: applied, duplicate (the same label as before), revised, withdrawn, or not_learned
    for a sample that was held out. retracted (n,) says which samples left the density. threshold_before and
    threshold_after are in nats, NaN during the warm-up.
    accepted holds the incidents that a label ended: what they showed is the new normal.
    Keep records in place of those that were passed in.
    """

    outcome: list[str]
    retracted: BoolArray
    threshold_before: float
    threshold_after: float
    accepted: list[int]
    records: Records
