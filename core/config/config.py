"""DetectorConfig: every setting of one detector, validated once and frozen."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from core.config.profiles import PROFILES
from core.config.ranges import (
    CHECKS,
    CLOSE_SECONDS,
    HALF_LIFE,
    N_FEATURES,
    PROFILE,
    THRESHOLD_VALUE,
    affine_scaling,
    calendar,
    feature_list,
)
from core.config.values import AffineScaling, Calendar, Feature
from core.errors import InvalidConfig

DIAGONAL_ABOVE: Final = 64
"""With more features the default family is diagonal. Chosen by hand: a full covariance has m (m + 1) / 2 numbers."""
FALSE_SHARE: Final = 0.1
"""Of the expected anomalies so many false alarms are wanted where both errors cost the same. Chosen by hand."""
_FROM_PROFILE: Final[Any] = None


@dataclass(frozen=True, slots=True)
class DetectorConfig:
    """The settings of a detector; a field that is left out takes its value from the profile.

    core.config.schema.TEXTS says what each field means, core.config.ranges.CHECKS its range. cost_false_negative and
    cost_false_positive are the paper's C_1 and C_-1, beta and xi those of Alg. 2, threshold_range G of Alg. 3, as
    densities of the scaled space.

    Raises InvalidConfig, with field, value and limit, for a value out of its range or one that does not fit another.

    >>> DetectorConfig(n_features=2).mixture, DetectorConfig(n_features=2, profile="paper").mixture
    ('tree', 'eg')
    """

    n_features: int = _FROM_PROFILE
    features: tuple[Feature, ...] | None = None
    calendar: Calendar | None = None
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
    incident_close_samples: int = 8
    incident_close_seconds: float | None = None
    incident_accept_samples: int = 32

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each feature; gaussian if only their number is given."""
        return ("gaussian",) * self.n_features if self.features is None else tuple(f.kind for f in self.features)

    @property
    def column_kinds(self) -> tuple[str, ...]:
        """The kind of each column of the model: the features, then what the calendar adds to them."""
        return self.kinds + ("gaussian",) * (0 if self.calendar is None else self.calendar.n_columns)

    @property
    def n_columns(self) -> int:
        """How many columns the model has, m."""
        return len(self.column_kinds)

    @property
    def values(self) -> tuple[int, ...]:
        """The columns that are scored: the features of the role value."""
        features = range(self.n_features)
        return tuple(features if self.features is None else (i for i in features if self.features[i].role == "value"))

    @property
    def context(self) -> tuple[int, ...]:
        """The columns that are known and not scored: features of the role context, and the calendar's."""
        return tuple(sorted({*range(self.n_columns)} - {*self.values}))

    @property
    def false_alarm_rate(self) -> float:
        """The share of ordinary samples that may be flagged as long as no label says otherwise, eq. (33)."""
        costs = self.cost_false_negative / self.cost_false_positive
        return min(0.5, FALSE_SHARE * self.expected_anomaly_rate * costs)

    @property
    def corrects_scores(self) -> bool:
        """Whether scores make up for learned anomalies: not if labelled normals alone are learned, nor in the paper."""
        return self.profile != "paper" and self.learn_from != "labelled_normal"

    def __post_init__(self) -> None:
        """Validate what was given, then fill in the profile."""
        self._settle("profile", PROFILE)
        self._settle_features()
        if self.calendar is not None:
            self._settle("calendar", calendar)
        for field, value in self._defaults().items():
            if getattr(self, field) is None:
                object.__setattr__(self, field, value)
        for field, check in CHECKS.items():
            self._settle(field, check)
        self._settle_scaling()
        self._settle_threshold()
        self._settle_half_life()
        self._settle_calendar()
        self._settle_growth()
        if self.incident_close_seconds is not None:
            self._settle("incident_close_seconds", CLOSE_SECONDS)

    def _settle(self, field: str, check: Callable[[str, Any], Any]) -> None:
        object.__setattr__(self, field, check(field, getattr(self, field)))

    def _settle_features(self) -> None:
        if self.features is not None:
            self._settle("features", feature_list)
            assert self.features is not None
            if self.n_features is not None and self.n_features != len(self.features):
                raise InvalidConfig("n_features", self.n_features, f"{len(self.features)}, the number of features")
            object.__setattr__(self, "n_features", len(self.features))
        self._settle("n_features", N_FEATURES)
        for i, kind in enumerate(self.kinds):
            if self.profile == "paper" and kind != "gaussian":
                raise InvalidConfig(f"features[{i}].kind", kind, "'gaussian' under the profile 'paper'")
        self._settle_roles()

    def _settle_roles(self) -> None:
        if not self.values:
            raise InvalidConfig("features", "nothing but context", "at least one feature of the role 'value'")
        for i, feature in enumerate(self.features or ()):
            if self.profile == "paper" and feature.role != "value":
                raise InvalidConfig(f"features[{i}].role", feature.role, "'value' under the profile 'paper'")

    def _defaults(self) -> dict[str, Any]:
        family = "gaussian_diagonal" if self.n_features > DIAGONAL_ABOVE and self.profile == "default" else "gaussian"
        return PROFILES[self.profile] | {"family": family, "warmup": self._default_warmup()}

    def _default_warmup(self) -> int:
        scaling = PROFILES[self.profile]["scaling"] if self.scaling is None else self.scaling
        return max(32, min(2 * self.n_features, 64)) if scaling == "auto" else 0

    @property
    def follows_spread(self) -> bool:
        """Whether the usual size of a feature's differences is what it is now, not what it was in the warm-up."""
        return self.scaling == "auto" and self.profile != "paper"

    def _settle_scaling(self) -> None:
        if self.scaling not in ("auto", "none"):
            object.__setattr__(self, "scaling", affine_scaling(self.scaling, self.kinds))
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

    def _settle_calendar(self) -> None:
        """A period that is forgotten before it returns tells nothing."""
        if self.calendar is None:
            return
        if self.profile == "paper":
            raise InvalidConfig("calendar", asdict(self.calendar), "left out under the profile 'paper'")
        most = self.half_life_seconds
        for i, seconds in enumerate(self.calendar.seconds):
            if most is not None and seconds > most:
                period = self.calendar.periods[i]
                raise InvalidConfig(f"calendar.periods[{i}]", period, f"at most half_life_seconds, {most:g} seconds")

    def _settle_growth(self) -> None:
        """The paper's tree may cut a node again and has no candidates to weigh."""
        if self.profile == "paper":
            for field, value, limit in (
                ("mixture", "tree", "'eg' or 'soft_bayes'"),
                ("split", "scheduled", "'scheduled'"),
            ):
                if (getattr(self, field) == value) == (field == "mixture"):
                    raise InvalidConfig(field, getattr(self, field), f"{limit} under the profile 'paper'")

    def ordered_as(self, other: "DetectorConfig") -> "DetectorConfig":
        """Give the config with its features in the order of another one, if both have features of the same names."""
        if self.features is None or other.features is None:
            return self
        places = {feature.name: place for place, feature in enumerate(other.features)}
        if {feature.name for feature in self.features} != places.keys():
            return self
        return replace(self, features=tuple(sorted(self.features, key=lambda feature: places[feature.name])))

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
        if self.calendar is not None:
            plain["calendar"] = {"periods": list(self.calendar.periods), "timezone": self.calendar.timezone}
        if isinstance(self.scaling, AffineScaling):
            plain["scaling"] = {k: list(v) for k, v in asdict(self.scaling).items()}
        return plain
