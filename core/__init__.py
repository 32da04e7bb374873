"""The ITAN algorithm: a tree of subspaces, a density per node, their mixture, and a threshold moved by labels."""

from core.config import DetectorConfig, Feature
from core.detector import Detector
from core.errors import InvalidConfig, InvalidObservation, InvalidSnapshot, InvalidState, ItanError, NotReady
from core.records import Records
from core.views.contributions import Explanation

__all__ = [
    "Detector",
    "DetectorConfig",
    "Explanation",
    "Feature",
    "InvalidConfig",
    "InvalidObservation",
    "InvalidSnapshot",
    "InvalidState",
    "ItanError",
    "NotReady",
    "Records",
]
