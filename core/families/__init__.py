"""Exponential families: the densities of the nodes."""

from core.config import DetectorConfig
from core.families.base import Family
from core.families.gaussian import DiagonalGaussian, Gaussian

__all__ = ["DiagonalGaussian", "Family", "Gaussian", "family_of"]


def family_of(config: DetectorConfig) -> Family:
    """The family that a config names."""
    return (DiagonalGaussian if config.family == "gaussian_diagonal" else Gaussian)(config.n_features)
