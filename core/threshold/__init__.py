"""The threshold: a sample is flagged when its score, eq. (1), is above it. The revealed labels move it.

base             what every rule does
fixed            the user's number
gradient         online gradient descent: the paper's Alg. 3
hindsight        the cheapest threshold on the labelled scores
weighted         the weighted median of all thresholds: the default
factory          the rule that a config names
cuts             thresholds between labelled scores, and their costs
recent_scores    the last scores: median and ranks
ordinary_scores  the last scores of ordinary samples, and their tail
labelled_scores  the last labelled scores

Scores and thresholds are in nats, in the user's units.
"""

from core.threshold.base import Threshold
from core.threshold.factory import threshold_of

__all__ = ["Threshold", "threshold_of"]
