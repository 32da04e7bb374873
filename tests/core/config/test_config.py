"""DetectorConfig: defaults by profile, ranges, types, and the way through JSON and back."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import AffineScaling, Calendar, DetectorConfig, Feature
from core.errors import InvalidConfig

INF, NAN = float("inf"), float("nan")
NOT_NUMBERS = [True, False, "1", None, [1], {}, NAN, INF, -INF, 10**400, -(10**400)]

DEFAULTS = {
    "learn_from": ("all", "labelled_normal"),
    "scaling": ("auto", "none"),
    "warmup": (32, 0),
    "family": ("gaussian", "gaussian"),
    "mixture": ("tree", "eg"),
    "split": ("evidence", "scheduled"),
    "beta": (1.2, 2.0),
    "xi": (0.2, 0.8),
    "prior_count": (1.0, 0.1),
    "round_growth": (0.01, 0.0),
    "max_round": (512, 256),
    "max_nodes": (127, 1023),
    "half_life_samples": (None, None),
    "half_life_seconds": (None, None),
    "threshold": ("weighted", "ogd"),
    "threshold_value": (None, None),
    "threshold_range": ((1e-6, 1.0), (1e-6, 1.0)),
    "cost_false_negative": (1.0, 1.0),
    "cost_false_positive": (1.0, 1.0),
    "expected_anomaly_rate": (0.01, 0.01),
    "labels_trusted": (False, False),
    "drift_relative": (False, False),
    "incident_close_samples": (8, 8),
    "incident_close_seconds": (None, None),
    "incident_accept_samples": (32, 32),
    "features": (None, None),
    "calendar": (None, None),
}
NUMBERS = {  # lowest and highest allowed
    "beta": (1.05, 1000.0),
    "xi": (0.01, 0.99),
    "prior_count": (1e-3, 1e3),
    "round_growth": (0.0, 1.0),
    "cost_false_negative": (1e-6, 1e6),
    "cost_false_positive": (1e-6, 1e6),
    "expected_anomaly_rate": (1e-6, 0.5),
    "incident_close_seconds": (1.0, 1e12),
}
INTEGERS = {
    "n_features": (1, 256),
    "max_round": (1, 1024),
    "max_nodes": (1, 1023),
    "warmup": (2, 4096),
    "incident_close_samples": (1, 10_000),
    "incident_accept_samples": (2, 1_000_000),
}
CHOICES = {
    "profile": ("default", "paper"),
    "learn_from": ("all", "decided_normal", "labelled_normal"),
    "family": ("gaussian", "gaussian_diagonal"),
    "mixture": ("tree", "soft_bayes", "eg"),
    "split": ("evidence", "scheduled", "both"),
    "threshold": ("weighted", "hindsight", "ogd", "fixed"),
}


def config(**given_fields) -> DetectorConfig:
    return DetectorConfig.from_dict({"n_features": 2} | given_fields)


def refused(field: str, value: object, **others) -> InvalidConfig:
    with pytest.raises(InvalidConfig) as caught:
        config(**({field: value} | others))
    assert caught.value.field.startswith(field)
    assert caught.value.limit
    assert len(str(caught.value)) < 500
    return caught.value


@pytest.mark.parametrize("field", DEFAULTS)
def test_every_default_of_both_profiles(field):
    assert (getattr(config(), field), getattr(config(profile="paper"), field)) == DEFAULTS[field]


def test_no_field_goes_untested():
    tested = {*DEFAULTS, *NUMBERS, *INTEGERS, *CHOICES}
    assert tested == {f.name for f in fields(DetectorConfig)}


@pytest.mark.parametrize(("m", "warmup"), [(1, 32), (16, 32), (17, 34), (32, 64), (256, 64)])
def test_the_warmup_grows_with_the_features(m, warmup):
    assert DetectorConfig(n_features=m).warmup == warmup


@pytest.mark.parametrize("m", [64, 65])
def test_many_features_make_the_default_family_diagonal(m):
    assert DetectorConfig(n_features=m).family == ("gaussian" if m == 64 else "gaussian_diagonal")
    assert DetectorConfig(n_features=m, profile="paper").family == "gaussian"


@pytest.mark.parametrize("field", NUMBERS)
def test_numbers_take_their_range_and_nothing_else(field):
    low, high = NUMBERS[field]
    for value in (low, high):
        kept = getattr(config(**{field: value}), field)
        assert kept == value
        assert type(kept) is float
    for value in (low - abs(low) * 1e-9 - 1e-12, high * (1 + 1e-9), *NOT_NUMBERS):
        if value is not None or field.startswith(("cost", "expected")):  # None asks the profile
            refused(field, value)


@pytest.mark.parametrize("field", INTEGERS)
def test_whole_numbers_take_their_range_and_nothing_else(field):
    low, high = INTEGERS[field]
    for value in (low, high):
        assert getattr(config(**{field: value}), field) == value
    for value in (low - 1, high + 1, float(low), *NOT_NUMBERS):
        if value is not None or field == "n_features":
            refused(field, value)


@pytest.mark.parametrize("field", CHOICES)
def test_choices_take_what_is_listed_and_nothing_else(field):
    for value in CHOICES[field]:
        extra = {"threshold_value": 1.0} if value == "fixed" else {}
        assert getattr(config(**{field: value}, **extra), field) == value
    for value in ("", CHOICES[field][0].upper(), CHOICES[field][0] + "\n", 1, True, [], {}, ["default"]):
        refused(field, value)


@pytest.mark.parametrize("value", [0, 1, "true", "", [], NAN, None])
@pytest.mark.parametrize("field", ["labels_trusted", "drift_relative"])
def test_booleans_take_nothing_else(field, value):
    refused(field, value)


@pytest.mark.parametrize("value", [0, "x", NAN, INF, [], None, 10**400, True])
def test_a_fixed_threshold_needs_a_finite_number(value):
    if value == 0 and value is not True and value != "":
        assert config(threshold="fixed", threshold_value=0).threshold_value == 0.0
    else:
        refused("threshold_value", value, threshold="fixed")


@pytest.mark.parametrize("field", ["half_life_samples", "half_life_seconds"])
def test_a_half_life_is_a_number_from_one_on(field):
    for value in (1, 1.0, 1e12):
        assert getattr(config(**{field: value}), field) == value
        assert type(getattr(config(**{field: value}), field)) is float
    assert getattr(config(**{field: None}), field) is None
    for value in (0, 0.99, -1.0, 1.1e12, True, "5", [], NAN, INF, 10**400):
        refused(field, value)


def test_there_is_one_half_life():
    """Which clock would it be?"""
    assert refused("half_life_seconds", 5.0, half_life_samples=5.0).limit.startswith("left out")


@pytest.mark.parametrize(("field", "value"), [("mixture", "tree"), ("split", "evidence"), ("split", "both")])
def test_the_papers_tree_has_its_own_growth_and_weights(field, value):
    """It cuts a node again, so that weights along the tree mean nothing, and has no candidates."""
    refused(field, value, profile="paper")
    for kept in ("eg", "soft_bayes"):
        assert config(profile="paper", mixture=kept).mixture == kept


def test_a_threshold_value_is_for_fixed_thresholds_only():
    refused("threshold_value", 1.0)


@pytest.mark.parametrize(
    "value", [None, [], [1.0], [1.0, 1.0], [2.0, 1.0], [0.0, 1.0], [-1.0, 1.0], [1.0, INF], [NAN, 1.0], "ab", [1, 2, 3]]
)
def test_threshold_range_is_two_positive_densities_in_order(value):
    refused("threshold_range", value)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("Auto", "scaling"),
        (1, "scaling"),
        ([], "scaling"),
        ({}, "scaling"),
        ({"location": [0, 0]}, "scaling"),
        ({"location": [0, 0], "scale": [1, 1], "x": 1}, "scaling"),
        ({"location": [0], "scale": [1, 1]}, "scaling.location"),
        ({"location": 0, "scale": [1, 1]}, "scaling.location"),
        ({"location": [0, NAN], "scale": [1, 1]}, "scaling.location[1]"),
        ({"location": [0, "0"], "scale": [1, 1]}, "scaling.location[1]"),
        ({"location": [0, 0], "scale": [1, 0]}, "scaling.scale[1]"),
        ({"location": [0, 0], "scale": [-1, 1]}, "scaling.scale[0]"),
        ({"location": [0, 0], "scale": [True, 1]}, "scaling.scale[0]"),
        ({"location": [0, 0], "scale": [1, 1e151]}, "scaling.scale[1]"),
    ],
)
def test_a_wrong_scaling_is_refused_by_place(value, field):
    assert refused("scaling", value).field == field


def test_a_given_scaling_is_kept_as_numbers_and_needs_no_warmup():
    kept = config(scaling={"location": [1, 2], "scale": [3, 4.5]})
    assert (kept.scaling, kept.warmup) == (AffineScaling((1.0, 2.0), (3.0, 4.5)), 0)
    refused("warmup", 5, scaling="none")
    refused("warmup", 1)
    refused("warmup", 0)


def test_feature_names_give_the_number_of_features():
    named = DetectorConfig(features=[{"name": "cpu"}, Feature("mem")])
    assert (named.n_features, named.features) == (2, (Feature("cpu"), Feature("mem")))
    refused("n_features", 3, features=[{"name": "cpu"}])


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "features"),
        ("ab", "features"),
        ([{"name": str(i)} for i in range(257)], "features"),
        (["cpu"], "features[0]"),
        ([{"kind": "gaussian"}], "features[0]"),
        ([{"name": "a", "unit": "s"}], "features[0]"),
        ([{"name": ""}], "features[0].name"),
        ([{"name": 1}], "features[0].name"),
        ([{"name": "a\n"}], "features[0].name"),
        ([{"name": "a" * 129}], "features[0].name"),
        ([{"name": "a"}, {"name": "a"}], "features[1].name"),
        ([{"name": "a", "kind": "normal"}], "features[0].kind"),
        ([{"name": "a", "kind": []}], "features[0].kind"),
        ([{"name": "a", "role": "calendar"}], "features[0].role"),
        ([{"name": "a", "role": None}], "features[0].role"),
        ([{"name": "a", "role": "context"}, {"name": "b", "role": "context"}], "features"),
    ],
)
def test_wrong_features_are_refused_by_place(value, field):
    with pytest.raises(InvalidConfig) as caught:
        DetectorConfig.from_dict({"features": value})
    assert caught.value.field == field


def test_a_feature_is_a_value_unless_it_is_context():
    made = DetectorConfig(features=[{"name": "a"}, {"name": "b", "role": "context"}, {"name": "c", "role": "value"}])
    assert (made.values, made.context, made.n_columns) == ((0, 2), (1,), 3)
    assert (config().values, config().context) == ((0, 1), ())
    assert made.to_dict()["features"][1] == {"name": "b", "kind": "gaussian", "role": "context"}


def test_a_calendar_adds_columns_of_context_that_nothing_else_counts():
    made = config(calendar={"periods": ["day", "week", 3600]})
    assert made.calendar == Calendar(("day", "week", 3600.0), "UTC")
    assert made.calendar.seconds == (86_400.0, 604_800.0, 3600.0)
    assert (made.n_features, made.values, made.context) == (2, (0, 1), tuple(range(2, 14)))
    assert made.column_kinds == ("gaussian",) * 14
    assert (made.warmup, made.kinds) == (config().warmup, config().kinds)
    wide = DetectorConfig(n_features=64, calendar={"periods": ["day", "week"]})
    assert (wide.family, wide.warmup) == ("gaussian", DetectorConfig(n_features=64).warmup)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("day", "calendar"),
        (["day"], "calendar"),
        ({}, "calendar"),
        ({"timezone": "UTC"}, "calendar"),
        ({"periods": ["day"], "zone": "UTC"}, "calendar"),
        ({"periods": []}, "calendar.periods"),
        ({"periods": "day"}, "calendar.periods"),
        ({"periods": [float(p) for p in range(1, 10)]}, "calendar.periods"),
        ({"periods": ["day", "month"]}, "calendar.periods[1]"),
        ({"periods": [0]}, "calendar.periods[0]"),
        ({"periods": [-60]}, "calendar.periods[0]"),
        ({"periods": [NAN]}, "calendar.periods[0]"),
        ({"periods": [INF]}, "calendar.periods[0]"),
        ({"periods": [True]}, "calendar.periods[0]"),
        ({"periods": [None]}, "calendar.periods[0]"),
        ({"periods": ["day", "week", "day"]}, "calendar.periods[2]"),
        ({"periods": [60, 60.0]}, "calendar.periods[1]"),
        *(
            ({"periods": ["day"], "timezone": zone}, "calendar.timezone")
            for zone in ("Berlin", "Europe", "europe/berlin", "", "../zones", "/etc/localtime", None, 1, ["UTC"])
        ),
    ],
)
def test_a_wrong_calendar_is_refused_by_place(value, field):
    assert refused("calendar", value).field == field


def test_a_period_that_is_forgotten_before_it_returns_is_refused():
    hourly = {"periods": [3600, "day"]}
    assert refused("calendar", hourly, half_life_seconds=86_399.0).field == "calendar.periods[1]"
    assert config(calendar=hourly, half_life_seconds=86_400.0).calendar is not None
    assert config(calendar=hourly, half_life_samples=5.0).calendar is not None


def test_the_paper_knows_no_context():
    refused("calendar", {"periods": ["day"]}, profile="paper")
    with pytest.raises(InvalidConfig, match="role"):
        DetectorConfig(features=[{"name": "a"}, {"name": "b", "role": "context"}], profile="paper")


def test_an_unknown_field_is_named():
    assert refused("max_node", 3).field == "max_node"


@pytest.mark.parametrize("value", [[10**5000], [[10**5000]], {"location": [10**5000], "scale": [1]}])
def test_numbers_too_long_to_print_are_refused_and_not_printed(value):
    """Python refuses to write out 5,000 digits: the error's own message raised another error."""
    refused("scaling", value)
    refused("threshold_range", value)


def numbers(field):
    return st.floats(*NUMBERS[field])


PROFILED = ("threshold", "profile", "mixture", "split")
"""Not every value goes with every other."""

CONFIGS = st.fixed_dictionaries(
    {},
    optional={field: st.floats(*limits) for field, limits in NUMBERS.items()}
    | {"max_nodes": st.integers(1, 1023), "max_round": st.integers(1, 1024), "labels_trusted": st.booleans()}
    | {field: st.sampled_from(allowed) for field, allowed in CHOICES.items() if field not in PROFILED}
    | {
        "scaling": st.sampled_from(["auto", "none", {"location": [0.1, 1e300], "scale": [1e-150, 3]}]),
        "threshold_range": st.tuples(st.floats(1e-300, 1.0), st.floats(1.5, 1e6)).map(list),
        "features": st.lists(st.text("abc \u00e9", min_size=1), min_size=2, max_size=2, unique=True).map(
            lambda names: [{"name": n} for n in names]
        ),
    },
)


@given(
    CONFIGS,
    st.sampled_from(
        [
            {},
            {"profile": "paper"},
            {"mixture": "eg", "split": "both"},
            {"half_life_samples": 7.5},
            {"half_life_seconds": 9},
            {"calendar": {"periods": ["week", 7.5], "timezone": "America/New_York"}},
        ]
    ),
)
def test_a_config_survives_json(chosen, more):
    made = config(**chosen, **more)
    plain = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert DetectorConfig.from_dict(plain) == made
    assert DetectorConfig.from_dict(plain).to_dict() == made.to_dict()


def test_a_config_is_frozen():
    with pytest.raises(AttributeError):
        config().beta = 3.0  # type: ignore[misc]
