"""The ITAN algorithm: a tree of subspaces, a density per node, their mixture, and a threshold that labels move.

A service needs what is named here, and core.sizes, which says beforehand how much a detector takes. From the top down:

detector   the face: samples and labels in, scores and decisions out
engine     the state, and the path of a sample and of a label over it
views      the model for people: description, density grids, explanations
feedback   what labels do beyond the threshold, and what decisions cost
records    of each sample what a later label needs to know
decision   what is flagged, how rare it is, and incidents
threshold  from which score on samples are flagged (Alg. 3 is one of the rules)
density    p(x), learned round by round
growth     how the tree grows (Alg. 2)
mixture    the nodes and their weights
tree       the nested subspaces
families   the density of a node (Alg. 1)
scaling    from the user's units to the space of the densities
calendar   where in its day or week a moment lies
config     the settings
"""

from core.config import MAX_FEATURES, Calendar, DetectorConfig, Feature
from core.config.changes import CANNOT_CHANGE, ConfigChange
from core.config.schema import AFFINE_SCHEMA, CALENDAR_SCHEMA, FEATURE_SCHEMA, changes_schema, config_schema
from core.decision.incidents import INCIDENT_EVENTS, OUTVOTED
from core.detector import Detector, observe_together
from core.engine.state import VERSION as SNAPSHOT_VERSION
from core.errors import InvalidConfig, InvalidObservation, InvalidSnapshot, InvalidState, ItanError, NotReady, shown
from core.feedback.costs import Costs
from core.kinds import KINDS
from core.records import Records
from core.results import Feedback, Observation
from core.snapshot import decode_snapshot, encode_snapshot, readable_metas
from core.trial import try_out
from core.validation import LEAST_LEVEL
from core.views.explanation import Explanation

__all__ = [
    "AFFINE_SCHEMA",
    "CALENDAR_SCHEMA",
    "CANNOT_CHANGE",
    "FEATURE_SCHEMA",
    "INCIDENT_EVENTS",
    "KINDS",
    "LEAST_LEVEL",
    "MAX_FEATURES",
    "OUTVOTED",
    "SNAPSHOT_VERSION",
    "Calendar",
    "ConfigChange",
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
    "changes_schema",
    "config_schema",
    "decode_snapshot",
    "encode_snapshot",
    "observe_together",
    "readable_metas",
    "shown",
    "try_out",
]
