"""The schema of the config says what the config takes."""

from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from core import DetectorConfig, InvalidConfig
from core.config.profiles import PROFILES
from core.config.schema import TEXTS, config_schema

SCHEMA = config_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
TWO = {"n_features": 2}
ALIKE: list[dict[str, Any]] = [
    {},
    TWO,
    {"features": None},
    {"n_features": None, "features": [{"name": "a"}, {"name": "b", "kind": "poisson"}]},
    {"features": [{"name": "a", "kind": "other"}]},
    {"features": [{"name": ""}]},
    {"features": [{"kind": "gamma"}]},
    {"features": []},
    {"features": [{"name": "a", "unit": "m"}]},
    {"n_features": 0},
    {"n_features": 257},
    {"n_features": True},
    {"n_features": "2"},
    {"features": [{"name": "a"}, {"name": "b", "role": "context"}]},
    {"features": [{"name": "a", "role": "calendar"}]},
    TWO | {"calendar": None},
    TWO | {"calendar": {"periods": ["day", "week", 3600], "timezone": "Europe/Berlin"}},
    TWO | {"calendar": {"periods": ["day", "day"]}},
    TWO | {"calendar": {"periods": ["month"]}},
    TWO | {"calendar": {"periods": [0]}},
    TWO | {"calendar": {"periods": []}},
    TWO | {"calendar": {"periods": [float(p) for p in range(1, 10)]}},
    TWO | {"calendar": {"periods": ["day"], "zone": "UTC"}},
    TWO | {"calendar": {"timezone": "UTC"}},
    TWO | {"unknown": 1},
    TWO | {"threshold": "fixed"},
    TWO | {"threshold": "fixed", "threshold_value": None},
    TWO | {"threshold": "fixed", "threshold_value": 3},
    TWO | {"threshold_value": 3},
    TWO | {"threshold": "ogd", "threshold_value": 3},
    TWO | {"threshold": None, "threshold_value": None},
    TWO | {"half_life_samples": 10, "half_life_seconds": 10},
    TWO | {"half_life_samples": 10, "half_life_seconds": None},
    TWO | {"half_life_seconds": 0.5},
    TWO | {"scaling": "auto"},
    TWO | {"scaling": {"location": [0, 0], "scale": [1, 1]}},
    TWO | {"scaling": {"location": [0, 0]}},
    TWO | {"scaling": {"location": [0, 0], "scale": [0, 1]}},
    TWO | {"scaling": "none"},
    TWO | {"threshold_range": [1e-6, 1]},
    TWO | {"threshold_range": [0, 1]},
    TWO | {"threshold_range": [1]},
    TWO | {"threshold_range": None},
    TWO | {"profile": "paper"},
    TWO | {"profile": None},
    TWO | {"labels_trusted": 1},
    TWO | {"labels_trusted": None},
    TWO | {"cost_false_negative": 0},
    TWO | {"expected_anomaly_rate": 0.5},
    TWO | {"max_nodes": 1024},
    TWO | {"learn_from": "nobody"},
    TWO | {"learn_from": None},
]


def is_taken(config: dict[str, Any]) -> bool:
    """Tell whether the detector takes a config."""
    try:
        DetectorConfig.from_dict(config)
    except InvalidConfig:
        return False
    return True


@pytest.mark.parametrize("config", ALIKE, ids=str)
def test_the_schema_judges_as_the_config_does(config: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(config) == is_taken(config)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_resolved_config_is_valid(profile: str) -> None:
    resolved = DetectorConfig(n_features=2, profile=profile).to_dict()
    VALIDATOR.validate(resolved)
    assert list(SCHEMA["properties"]) == list(resolved)


def test_defaults_are_those_of_the_config() -> None:
    resolved = DetectorConfig(n_features=2).to_dict()
    described = {name: schema["default"] for name, schema in SCHEMA["properties"].items() if "default" in schema}
    assert described == {name: resolved[name] for name in described}
    by_features = {"n_features", "features", "calendar", "warmup", "family"}
    periods = {"half_life_samples", "half_life_seconds", "incident_close_seconds"}
    assert set(resolved) - set(described) == by_features | periods | {"threshold_value"}


def test_what_the_paper_has_otherwise_is_told() -> None:
    for field, value in PROFILES["paper"].items():
        differs = value != PROFILES["default"][field]
        assert (f"({value} under the profile paper)" in SCHEMA["properties"][field]["description"]) == differs


def test_every_field_is_explained() -> None:
    assert list(TEXTS) == [field.name for field in fields(DetectorConfig)]
