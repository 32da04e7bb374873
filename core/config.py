"""DetectorConfig: every setting of one detector, validated once and frozen."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from core.checks import Flag, Name, Number, OneOf, Whole
from core.errors import InvalidConfig
from core.kinds import KINDS

MAX_FEATURES: Final = 256
MAX_NAME_LENGTH: Final = 128
DIAGONAL_ABOVE: Final = 64
"""With more features the default family is diagonal. Chosen by hand: a full covariance has m (m + 1) / 2 numbers."""

N_FEATURES: Final = Whole(1, MAX_FEATURES)
NAME: Final = Name(MAX_NAME_LENGTH)
KIND: Final = OneOf(*KINDS)
LOCATION: Final = Number(-1e300, 1e300)
SCALE: Final = Number(1e-150, 1e150)
DENSITY: Final = Number(0.0, 1e6, above=True)
THRESHOLD_VALUE: Final = Number(-1e300, 1e300)
HALF_LIFE: Final = Number(1.0, 1e12)

_FROM_PROFILE: Final[Any] = None
PROFILES: Final[dict[str, dict[str, Any]]] = {
    "default": {
        "learn_from": "all",
        "scaling": "auto",
        "mixture": "tree",
        "split": "evidence",
        "beta": 1.2,
        "xi": 0.2,
        "prior_count": 1.0,
        "round_growth": 0.01,
        "max_round": 512,
        "max_nodes": 127,
        "threshold": "weighted",
    },
    "paper": {
        "learn_from": "labelled_normal",
        "scaling": "none",
        "mixture": "eg",
        "split": "scheduled",
        "beta": 2.0,
        "xi": 0.8,
        "prior_count": 0.1,
        "round_growth": 0.0,
        "max_round": 256,
        "max_nodes": 1023,
        "threshold": "ogd",
    },
}
PROFILE: Final = OneOf(*PROFILES)


@dataclass(frozen=True, slots=True)
class Feature:
    """A named feature and its kind, one of core.kinds.KINDS."""

    name: str
    kind: str = "gaussian"


@dataclass(frozen=True, slots=True)
class AffineScaling:
    """A scaling by the user, one number a feature: (u - location) / scale of the coordinate u, x itself if gaussian."""

    location: tuple[float, ...]
    scale: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DetectorConfig:
    """The settings of a detector; a field that is left out takes its value from the profile.

    core.schema.TEXTS says what each field means, CHECKS its range. cost_false_negative and cost_false_positive are the
    paper's C_1 and C_-1, beta and xi those of Alg. 2, threshold_range G of Alg. 3, as densities of the scaled space.
    Raises InvalidConfig, with field, value and limit, for a value out of its range or one that does not fit another.

    >>> DetectorConfig(n_features=2).mixture, DetectorConfig(n_features=2, profile="paper").mixture
    ('tree', 'eg')
    """

    n_features: int = _FROM_PROFILE
    features: tuple[Feature, ...] | None = None
    profile: str = "default"
    learn_from: str = _FROM_PROFILE
    scaling: str | AffineScaling = _FROM_PROFILE
    warmup: int = _FROM_PROFILE
    family: str = _FROM_PROFILE
    mixture: str = _FROM_PROFILE
    split: str = _FROM_PROFILE
    beta: float = _FROM_PROFILE
    xi: float = _FROM_PROFILE
    prior_count: float = _FROM_PROFILE
    round_growth: float = _FROM_PROFILE
    max_round: int = _FROM_PROFILE
    max_nodes: int = _FROM_PROFILE
    half_life_samples: float | None = None
    half_life_seconds: float | None = None
    threshold: str = _FROM_PROFILE
    threshold_value: float | None = None
    threshold_range: tuple[float, float] = (1e-6, 1.0)
    cost_false_negative: float = 1.0
    cost_false_positive: float = 1.0
    expected_anomaly_rate: float = 0.01
    labels_trusted: bool = False
    drift_relative: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each feature; gaussian if only their number is given."""
        return ("gaussian",) * self.n_features if self.features is None else tuple(f.kind for f in self.features)

    def __post_init__(self) -> None:
        """Validate what was given, then fill in the profile."""
        self._settle("profile", PROFILE)
        self._settle_features()
        for field, value in self._defaults().items():
            if getattr(self, field) is None:
                object.__setattr__(self, field, value)
        for field, check in CHECKS.items():
            self._settle(field, check)
        self._settle_scaling()
        self._settle_threshold()
        self._settle_half_life()
        self._settle_growth()

    def _settle(self, field: str, check: Callable[[str, Any], Any]) -> None:
        object.__setattr__(self, field, check(field, getattr(self, field)))

    def _settle_features(self) -> None:
        if self.features is not None:
            self._settle("features", _features)
            assert self.features is not None
            if self.n_features is not None and self.n_features != len(self.features):
                raise InvalidConfig("n_features", self.n_features, f"{len(self.features)}, the number of features")
            object.__setattr__(self, "n_features", len(self.features))
        self._settle("n_features", N_FEATURES)
        for i, kind in enumerate(self.kinds):
            if self.profile == "paper" and kind != "gaussian":
                raise InvalidConfig(f"features[{i}].kind", kind, "'gaussian' under the profile 'paper'")

    def _defaults(self) -> dict[str, Any]:
        family = "gaussian_diagonal" if self.n_features > DIAGONAL_ABOVE and self.profile == "default" else "gaussian"
        return PROFILES[self.profile] | {"family": family, "warmup": self._default_warmup()}

    def _default_warmup(self) -> int:
        scaling = PROFILES[self.profile]["scaling"] if self.scaling is None else self.scaling
        return max(32, min(2 * self.n_features, 64)) if scaling == "auto" else 0

    def _settle_scaling(self) -> None:
        if self.scaling not in ("auto", "none"):
            object.__setattr__(self, "scaling", _affine(self.scaling, self.kinds))
        if self.scaling == "auto" and self.warmup < 2:
            raise InvalidConfig("warmup", self.warmup, "at least 2 when scaling is 'auto'")
        if self.scaling != "auto" and self.warmup != 0:
            raise InvalidConfig("warmup", self.warmup, "0 unless scaling is 'auto'")

    def _settle_threshold(self) -> None:
        if self.threshold == "fixed":
            self._settle("threshold_value", THRESHOLD_VALUE)
        elif self.threshold_value is not None:
            raise InvalidConfig("threshold_value", self.threshold_value, "left out unless threshold is 'fixed'")

    def _settle_half_life(self) -> None:
        for field in ("half_life_samples", "half_life_seconds"):
            if getattr(self, field) is not None:
                self._settle(field, HALF_LIFE)
        if self.half_life_samples is not None and self.half_life_seconds is not None:
            raise InvalidConfig("half_life_seconds", self.half_life_seconds, "left out beside half_life_samples")

    def _settle_growth(self) -> None:
        """The paper's tree may cut a node again and has no candidates to weigh."""
        if self.profile == "paper":
            for field, value, limit in (
                ("mixture", "tree", "'eg' or 'soft_bayes'"),
                ("split", "scheduled", "'scheduled'"),
            ):
                if (getattr(self, field) == value) == (field == "mixture"):
                    raise InvalidConfig(field, getattr(self, field), f"{limit} under the profile 'paper'")

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> "DetectorConfig":
        """Read a config from a JSON-like mapping, as to_dict writes it. Raises InvalidConfig for unknown fields too."""
        if not isinstance(mapping, Mapping):
            raise InvalidConfig("config", mapping, "an object")
        known = [f.name for f in fields(cls)]
        for field in mapping:
            if field not in known:
                raise InvalidConfig(str(field), mapping[field], "left out: the fields are " + ", ".join(known))
        return cls(**mapping)

    def to_dict(self) -> dict[str, Any]:
        """Write every field, resolved, as JSON-able values."""
        plain = asdict(self)
        plain["threshold_range"] = list(self.threshold_range)
        if self.features is not None:
            plain["features"] = [asdict(f) for f in self.features]
        if isinstance(self.scaling, AffineScaling):
            plain["scaling"] = {k: list(v) for k, v in asdict(self.scaling).items()}
        return plain


def _scaling(field: str, value: Any) -> Any:
    if isinstance(value, AffineScaling | Mapping) or value in ("auto", "none"):
        return value
    raise InvalidConfig(field, value, "'auto', 'none' or {location, scale}")


def _affine(value: Any, kinds: tuple[str, ...]) -> AffineScaling:
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


def _features(field: str, value: Any) -> tuple[Feature, ...]:
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
    if not isinstance(value, Mapping) or "name" not in value or not set(value) <= {"name", "kind"}:
        raise InvalidConfig(field, value, "an object with name and, if wanted, kind")
    kind = KIND(f"{field}.kind", value.get("kind", "gaussian"))
    return Feature(NAME(f"{field}.name", value["name"]), kind)


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
}
