"""The config as a JSON Schema, made of the checks that judge it."""

from dataclasses import fields
from typing import Any, Final

from core.config.changes import CANNOT_CHANGE
from core.config.checks import Flag, Number, OneOf, Whole
from core.config.config import DetectorConfig
from core.config.profiles import PROFILES
from core.config.ranges import (
    CHECKS,
    CLOSE_SECONDS,
    DENSITY,
    HALF_LIFE,
    KIND,
    LOCATION,
    MAX_FEATURES,
    MAX_PERIODS,
    N_FEATURES,
    NAME,
    NAMED_PERIOD,
    PERIOD,
    PROFILE,
    ROLE,
    SCALE,
    THRESHOLD_VALUE,
)

FEATURE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": NAME.schema,
        "kind": KIND.schema | {"default": "gaussian"},
        "role": ROLE.schema | {"default": "value", "description": "context is known and not scored"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
AFFINE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "a number a feature: (x - location) / scale",
    "properties": {
        "location": {"type": "array", "items": LOCATION.schema},
        "scale": {"type": "array", "items": SCALE.schema},
    },
    "required": ["location", "scale"],
    "additionalProperties": False,
}
CALENDAR_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "periods that a stream may follow; day and week by the clock of the time zone, seconds by UTC",
    "properties": {
        "periods": {
            "type": "array",
            "items": {"anyOf": [NAMED_PERIOD.schema, PERIOD.schema]},
            "minItems": 1,
            "maxItems": MAX_PERIODS,
            "uniqueItems": True,
        },
        "timezone": {"type": "string", "default": "UTC", "description": "a name of the IANA database"},
    },
    "required": ["periods"],
    "additionalProperties": False,
}
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    field: check.schema for field, check in CHECKS.items() if isinstance(check, OneOf | Whole | Number | Flag)
} | {
    "n_features": N_FEATURES.schema,
    "profile": PROFILE.schema,
    "half_life_samples": HALF_LIFE.schema,
    "half_life_seconds": HALF_LIFE.schema,
    "incident_close_seconds": CLOSE_SECONDS.schema,
    "threshold_value": THRESHOLD_VALUE.schema,
    "threshold_range": {"type": "array", "items": DENSITY.schema, "minItems": 2, "maxItems": 2},
}
IS_FIXED: Final[dict[str, Any]] = {"properties": {"threshold": {"const": "fixed"}}, "required": ["threshold"]}
TEXTS: Final = {
    "n_features": "number of features; optional if features is given",
    "features": "names, kinds and roles of the features; default: features without names, all gaussian values",
    "calendar": "periods that are context: a value is judged by what is usual at its time; needs timestamps",
    "profile": "gives the values of fields that are left out; paper follows the paper to the letter, all gaussian",
    "learn_from": "which samples are learned",
    "scaling": "auto: from the samples, first those of the warm-up",
    "warmup": "samples that set the first scaling; default 32 to 64, by the features; 0 unless scaling is auto",
    "family": "covariance of each node; default: diagonal above 64 features",
    "mixture": "odds along the tree, or a weight of its own for each node; tree is not for the profile paper",
    "split": "when a leaf is split; the profile paper takes only scheduled",
    "beta": "a scheduled split comes when the number of learned samples reaches a power of beta",
    "xi": "share of its weight that a split node keeps, unless mixture is tree",
    "prior_count": "pseudo-samples of the root's prior",
    "round_growth": "the model is estimated again once it has learned this share more",
    "max_round": "most samples between two estimates",
    "max_nodes": "most nodes of the tree",
    "half_life_samples": "what was learned counts half after this many samples; not together with half_life_seconds",
    "half_life_seconds": "what was learned counts half after this many seconds",
    "threshold": "how the threshold moves with labels",
    "threshold_value": "in nats; required if threshold is fixed, and only then",
    "threshold_range": "lowest and highest density of the scaled space that the threshold ogd may take",
    "cost_false_negative": "cost of a miss",
    "cost_false_positive": "cost of a false alarm",
    "expected_anomaly_rate": "share of samples that are anomalous",
    "labels_trusted": "true: no label is wrong",
    "drift_relative": "true: a score counts by how far it is above the median of the 1000 before it",
    "incident_close_samples": "an incident is over after so many samples in a row that are not flagged",
    "incident_close_seconds": "an incident is also over so many seconds after its last flagged sample",
    "incident_accept_samples": "an incident is the new normal after so many flagged samples; those in which a value "
    "stands still longer than it ever did count a tenth",
}


def config_schema(
    feature: dict[str, Any] = FEATURE_SCHEMA,
    affine: dict[str, Any] = AFFINE_SCHEMA,
    calendar: dict[str, Any] = CALENDAR_SCHEMA,
) -> dict[str, Any]:
    """Write the JSON Schema of a config: every field with type, range, default and meaning.

    A field without a default of its own may be null. A document with named schemas passes references to those of a
    feature, of a scaling and of a calendar.
    """
    schemas = SCHEMAS | {
        "features": {"type": "array", "items": feature, "minItems": 1, "maxItems": MAX_FEATURES},
        "scaling": {"anyOf": [{"type": "string", "enum": ["auto", "none"]}, affine]},
        "calendar": calendar,
    }
    return {
        "type": "object",
        "description": "How a stream is detected; what is left out takes its value from the profile.",
        "properties": {
            field.name: _described(field.name, schemas[field.name], field.default) for field in fields(DetectorConfig)
        },
        "additionalProperties": False,
        # no anyOf of the whole, of which generators of clients would make several classes
        "if": _left_out("features"),
        "then": _given("n_features"),
        "dependentSchemas": {
            "half_life_seconds": {"anyOf": [_left_out("half_life_seconds"), _left_out("half_life_samples")]},
            "threshold": {"if": IS_FIXED, "then": _given("threshold_value")},
            "threshold_value": {"anyOf": [_left_out("threshold_value"), IS_FIXED]},
        },
    }


def changes_schema(
    feature: dict[str, Any] = FEATURE_SCHEMA,
    affine: dict[str, Any] = AFFINE_SCHEMA,
    calendar: dict[str, Any] = CALENDAR_SCHEMA,
) -> dict[str, Any]:
    """Write the JSON Schema of changes of a config: any of its fields, without defaults."""
    properties = config_schema(feature, affine, calendar)["properties"]
    for name, field in properties.items():
        field.pop("default", None)
        if name in CANNOT_CHANGE:
            field["description"] += f"; cannot change, for {CANNOT_CHANGE[name]}"
    return {
        "type": "object",
        "description": "Fields of a stream's config with their new values; what is left out stays as it is.",
        "properties": properties,
        "additionalProperties": False,
    }


def _described(field: str, schema: dict[str, Any], default: object) -> dict[str, Any]:
    text = TEXTS[field]
    usual, papers = (PROFILES[profile].get(field) for profile in ("default", "paper"))
    if papers != usual:
        text += f" ({papers} under the profile paper)"
    if default is None:
        schema = {"anyOf": [schema, {"type": "null"}]}
    default = usual if default is None else default
    known = {} if default is None else {"default": list(default) if isinstance(default, tuple) else default}
    return schema | {"description": text} | known


def _left_out(field: str) -> dict[str, Any]:
    return {"properties": {field: {"type": "null"}}}


def _given(field: str) -> dict[str, Any]:
    return {"required": [field], "properties": {field: {"not": {"type": "null"}}}}
