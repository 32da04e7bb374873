"""The rule that a config names."""

from core.config import DetectorConfig
from core.threshold.base import Threshold
from core.threshold.fixed import FixedThreshold
from core.threshold.gradient import GradientThreshold
from core.threshold.hindsight import HindsightThreshold
from core.threshold.weighted import WeightedThreshold


def threshold_of(config: DetectorConfig, log_volume: float) -> Threshold:
    """The rule that a config names; log_volume, in nats, is that of the stream's scaling, eq. (2)."""
    match config.threshold:
        case "fixed":
            assert config.threshold_value is not None
            return FixedThreshold(config.threshold_value)
        case "ogd":
            costs = config.cost_false_negative, config.cost_false_positive
            return GradientThreshold(*config.threshold_range, *costs, log_volume=log_volume)
        case "hindsight":
            return HindsightThreshold(config)
    return WeightedThreshold(config)
