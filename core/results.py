"""The answers of a detector, to samples and to labels."""

from dataclasses import dataclass

from core.arrays import BoolArray, FloatArray, IntArray
from core.records import Records
from core.views.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer to n samples, in columns of length n.

    score and threshold are in nats, NaN during the warm-up, when ready is False; is_anomaly is score > threshold.
    samples_needed says how many more samples the warm-up needs. Keep records: feedback wants them with the labels.
    explanation explains the flagged samples, in their order, by the model that scored them; None if not asked for.
    """

    seq: IntArray
    score: FloatArray
    threshold: FloatArray
    is_anomaly: BoolArray
    ready: BoolArray
    samples_needed: int
    records: Records
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """The answer to n labels.

    outcome says of each what it did: applied, duplicate (the same label as before), revised or withdrawn. retracted
    (n,) says which samples left the density. threshold_before and threshold_after are in nats, NaN during the warm-up.
    Keep records in place of those that were passed in.
    """

    outcome: list[str]
    retracted: BoolArray
    threshold_before: float
    threshold_after: float
    records: Records
