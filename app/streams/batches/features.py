"""The features of a stream, by name."""

from app.streams.errors import InvalidSamples
from core import MAX_FEATURES, DetectorConfig


def names_in(config: DetectorConfig) -> tuple[str, ...]:
    """Give the names of a stream's features; none if they have none."""
    return () if config.features is None else tuple(feature.name for feature in config.features)


def feature_names(config: DetectorConfig) -> list[str]:
    """Give the names of a stream's features; those without go by their number from 0."""
    return list(names_in(config)) or [str(i) for i in range(config.n_features)]


def refuse_many_features(n: int, field: str) -> None:
    """Raise InvalidSamples for a first sample wider than a stream can be."""
    if n > MAX_FEATURES:
        raise InvalidSamples(f"{field}[0]", f"a sample of {n} values", f"a sample of 1 to {MAX_FEATURES} values")
