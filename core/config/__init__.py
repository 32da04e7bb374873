"""The settings of a detector.

config    DetectorConfig: all of them, validated once and frozen
values    features, scalings and calendars, which are more than a number or a word
changes   which fields can change later, and why the others cannot
profiles  where the fields that are left out come from
ranges    what each field may hold
checks    the kinds of range: one of a few words, a number, a name
schema    all of this as a JSON Schema
"""

from core.config.config import DetectorConfig
from core.config.ranges import MAX_FEATURES
from core.config.values import AffineScaling, Calendar, Feature

__all__ = ["MAX_FEATURES", "AffineScaling", "Calendar", "DetectorConfig", "Feature"]
