"""Which fields of a config can change while a detector keeps what it has learned, and why the others cannot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.config.config import DetectorConfig
from core.errors import InvalidConfig, shown

CANNOT_CHANGE: Final = {
    "n_features": "the model has a column for each feature",
    "calendar": "its columns are part of the model",
    "profile": "the model grows by it",
    "scaling": "the model is in its units",
    "warmup": "it sets the scaling once",
    "family": "the nodes have it",
    "mixture": "the weights of the nodes follow it",
    "prior_count": "the root has begun with it",
    "drift_relative": "the ordinary scores are measured by it",
}
"""Why these fields stay as they are for good."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """The fields that differ between two configs, as JSON-able values."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def __bool__(self) -> bool:
        return bool(self.after)

    @classmethod
    def between(cls, old: DetectorConfig, new: DetectorConfig) -> "ConfigChange":
        """Compare two configs."""
        before, after = old.to_dict(), new.to_dict()
        differing = [field for field in after if before[field] != after[field]]
        return cls({field: before[field] for field in differing}, {field: after[field] for field in differing})


def changed(config: DetectorConfig, changes: Mapping[str, Any]) -> DetectorConfig:
    """Give the config with some fields changed; None means what it means in a config.

    Raises InvalidConfig for a value out of range, and for a field that cannot change, with the reason.
    """
    if (profile := changes.get("profile", config.profile)) != config.profile:  # its other fields would not fit either
        raise _fixed("profile", profile, config.profile, CANNOT_CHANGE["profile"])
    merged = config.to_dict() | dict(changes)
    if changes.get("features") is not None and "n_features" not in changes:
        merged["n_features"] = None
    if "threshold" in changes and "threshold_value" not in changes and changes["threshold"] != "fixed":
        merged["threshold_value"] = None
    new = DetectorConfig.from_dict(merged)
    difference = ConfigChange.between(config, new)
    for field, value in difference.after.items():
        if field in CANNOT_CHANGE:
            raise _fixed(field, value, difference.before[field], CANNOT_CHANGE[field])
    _refuse_other_features(config, new)
    _refuse_other_clock(config, new)
    _refuse_other_learning(config, new)
    return new


def _refuse_other_features(config: DetectorConfig, new: DetectorConfig) -> None:
    """Names may change, kinds and roles are those of the model's columns."""
    for i in range(config.n_features):
        roles = ["value" if i in each.values else "context" for each in (config, new)]
        if config.kinds[i] != new.kinds[i]:
            raise _fixed(f"features[{i}].kind", new.kinds[i], config.kinds[i], "the column of the model has this kind")
        if roles[0] != roles[1]:
            raise _fixed(f"features[{i}].role", roles[1], roles[0], "the model scores the values alone")


def _refuse_other_clock(config: DetectorConfig, new: DetectorConfig) -> None:
    """The clock of forgetting counts samples or seconds, for good."""
    before, after = config.half_life_seconds, new.half_life_seconds
    if (before is None) != (after is None):
        clock = "samples" if before is None else "seconds"
        raise _fixed("half_life_seconds", after, before, f"what was learned ages by {clock}")


def _refuse_other_learning(config: DetectorConfig, new: DetectorConfig) -> None:
    if config.corrects_scores != new.corrects_scores:
        why = "with labelled_normal scores are made without labels"
        raise _fixed("learn_from", new.learn_from, config.learn_from, why)


def _fixed(field: str, value: object, present: object, why: str) -> InvalidConfig:
    return InvalidConfig(field, value, f"{_said(present)}, as it is: it cannot change, for {why}")


def _said(present: object) -> str:
    match present:
        case None:
            return "left out"
        case bool():
            return str(present).lower()
        case str() | int() | float():
            return shown(present)
    return "the same"
