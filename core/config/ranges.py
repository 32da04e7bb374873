"""What each field of a config may hold."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any, Final

from core.config.checks import Flag, Name, Number, OneOf, Whole
from core.config.profiles import PROFILES
from core.config.values import SECONDS, AffineScaling, Calendar, Feature
from core.errors import InvalidConfig
from core.kinds import KINDS

MAX_FEATURES: Final = 256
MAX_NAME_LENGTH: Final = 128
MAX_PERIODS: Final = 8

N_FEATURES: Final = Whole(1, MAX_FEATURES)
NAME: Final = Name(MAX_NAME_LENGTH)
KIND: Final = OneOf(*KINDS)
ROLE: Final = OneOf("value", "context")
PERIOD: Final = Number(1e-3, 1e12)
NAMED_PERIOD: Final = OneOf(*SECONDS)
LOCATION: Final = Number(-1e300, 1e300)
SCALE: Final = Number(1e-150, 1e150)
DENSITY: Final = Number(0.0, 1e6, above=True)
THRESHOLD_VALUE: Final = Number(-1e300, 1e300)
HALF_LIFE: Final = Number(1.0, 1e12)
CLOSE_SECONDS: Final = Number(1.0, 1e12)
PROFILE: Final = OneOf(*PROFILES)


def _scaling(field: str, value: Any) -> Any:
    if isinstance(value, AffineScaling | Mapping) or value in ("auto", "none"):
        return value
    raise InvalidConfig(field, value, "'auto', 'none' or {location, scale}")


def affine_scaling(value: Any, kinds: tuple[str, ...]) -> AffineScaling:
    """Read a scaling of features of these kinds. Raises InvalidConfig for numbers that one of them cannot have."""
    if isinstance(value, AffineScaling):
        value = asdict(value)
    if set(value) != {"location", "scale"}:
        raise InvalidConfig("scaling", dict(value), "'auto', 'none' or {location, scale}")
    location = _row("scaling.location", value["location"], len(kinds), LOCATION)
    scale = _row("scaling.scale", value["scale"], len(kinds), SCALE)
    for i, kind in enumerate(kinds):
        if location[i] != 0 and not KINDS[kind].located:
            raise InvalidConfig(f"scaling.location[{i}]", location[i], f"0 for a feature of kind {kind}")
        if scale[i] != 1 and not KINDS[kind].scaled:
            raise InvalidConfig(f"scaling.scale[{i}]", scale[i], f"1 for a feature of kind {kind}")
    return AffineScaling(location, scale)


def _row(field: str, value: Any, length: int, check: Callable[[str, Any], float]) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or len(value) != length:
        raise InvalidConfig(field, value, f"a list of {length} numbers, one a feature")
    return tuple(check(f"{field}[{i}]", v) for i, v in enumerate(value))


def _range(field: str, value: Any) -> tuple[float, float]:
    low, high = _row(field, value, 2, DENSITY)
    if not low < high:
        raise InvalidConfig(field, value, "two densities, the lower one first")
    return low, high


def feature_list(field: str, value: Any) -> tuple[Feature, ...]:
    """Read features from a list. Raises InvalidConfig for an empty or too long one, and for repeated names."""
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_FEATURES:
        raise InvalidConfig(field, value, f"a list of 1 to {MAX_FEATURES} features")
    features = tuple(_feature(f"{field}[{i}]", v) for i, v in enumerate(value))
    names = [f.name for f in features]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InvalidConfig(f"{field}[{i}].name", name, "different from the names before it")
    return features


def _feature(field: str, value: Any) -> Feature:
    if isinstance(value, Feature):
        value = asdict(value)
    if not isinstance(value, Mapping) or "name" not in value or not set(value) <= {"name", "kind", "role"}:
        raise InvalidConfig(field, value, "an object with name and, if wanted, kind and role")
    kind = KIND(f"{field}.kind", value.get("kind", "gaussian"))
    role = ROLE(f"{field}.role", value.get("role", "value"))
    return Feature(NAME(f"{field}.name", value["name"]), kind, role)


def calendar(field: str, value: Any) -> Calendar:
    """Read a calendar. Raises InvalidConfig for repeated, too many or no periods, and for an unknown zone."""
    if isinstance(value, Calendar):
        value = asdict(value)
    if not isinstance(value, Mapping) or "periods" not in value or not set(value) <= {"periods", "timezone"}:
        raise InvalidConfig(field, value, "an object with periods and, if wanted, timezone")
    given = value["periods"]
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= MAX_PERIODS:
        raise InvalidConfig(f"{field}.periods", given, f"a list of 1 to {MAX_PERIODS} periods")
    periods = tuple(_period(f"{field}.periods[{i}]", period) for i, period in enumerate(given))
    for i, period in enumerate(periods):
        if period in periods[:i]:
            raise InvalidConfig(f"{field}.periods[{i}]", period, "different from the periods before it")
    return Calendar(periods, _timezone(f"{field}.timezone", value.get("timezone", "UTC")))


def _period(field: str, value: Any) -> str | float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidConfig(field, value, "'day', 'week' or a number of seconds")
    return NAMED_PERIOD(field, value) if isinstance(value, str) else PERIOD(field, value)


def _timezone(field: str, value: Any) -> str:
    if not isinstance(value, str) or value not in timezones():
        raise InvalidConfig(field, value, "a time zone of the IANA database, such as 'Europe/Berlin'")
    return value


@cache
def timezones() -> frozenset[str]:
    """The names of all time zones that the package tzdata has."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


CHECKS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "learn_from": OneOf("all", "decided_normal", "labelled_normal"),
    "scaling": _scaling,
    "warmup": Whole(0, 4096),
    "family": OneOf("gaussian", "gaussian_diagonal"),
    "mixture": OneOf("tree", "soft_bayes", "eg"),
    "split": OneOf("evidence", "scheduled", "both"),
    "beta": Number(1.05, 1000.0),
    "xi": Number(0.01, 0.99),
    "prior_count": Number(1e-3, 1e3),
    "round_growth": Number(0.0, 1.0),
    "max_round": Whole(1, 1024),
    "max_nodes": Whole(1, 1023),
    "threshold": OneOf("weighted", "hindsight", "ogd", "fixed"),
    "threshold_range": _range,
    "cost_false_negative": Number(1e-6, 1e6),
    "cost_false_positive": Number(1e-6, 1e6),
    "expected_anomaly_rate": Number(1e-6, 0.5),
    "labels_trusted": Flag(),
    "drift_relative": Flag(),
    "incident_close_samples": Whole(1, 10_000),
    "incident_accept_samples": Whole(2, 1_000_000),
}
