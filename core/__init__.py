"""The ITAN algorithm: a tree of subspaces, a density per node, their mixture, and a threshold moved by labels.

What stands here is all that a service needs; core.sizes says beforehand how much a detector takes. Read on in this
order: detector, the face; engine, the path of a sample and of a label; families, tree, mixture and density, the density
estimate; threshold, the decision; feedback, what labels say beyond it; views, the model for people.
"""

from core.config import MAX_FEATURES, DetectorConfig, Feature
from core.config.schema import AFFINE_SCHEMA, FEATURE_SCHEMA, config_schema
from core.detector import Detector
from core.errors import InvalidConfig, InvalidObservation, InvalidSnapshot, InvalidState, ItanError, NotReady, shown
from core.feedback.costs import Costs
from core.kinds import KINDS
from core.records import Records
from core.results import Feedback, Observation
from core.snapshot import decode_snapshot, encode_snapshot, readable_metas
from core.trial import try_out
from core.views.explanation import Explanation

__all__ = [
    "AFFINE_SCHEMA",
    "FEATURE_SCHEMA",
    "KINDS",
    "MAX_FEATURES",
    "Costs",
    "Detector",
    "DetectorConfig",
    "Explanation",
    "Feature",
    "Feedback",
    "InvalidConfig",
    "InvalidObservation",
    "InvalidSnapshot",
    "InvalidState",
    "ItanError",
    "NotReady",
    "Observation",
    "Records",
    "config_schema",
    "decode_snapshot",
    "encode_snapshot",
    "readable_metas",
    "shown",
    "try_out",
]
