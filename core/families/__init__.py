"""Exponential families: the densities of the nodes."""

from core.config import DetectorConfig
from core.families.base import Family
from core.families.gaussian import DiagonalGaussian, Gaussian
from core.families.layout import BLOCK_KINDS, Layout
from core.families.product import Product

__all__ = ["DiagonalGaussian", "Family", "Gaussian", "Layout", "Product", "family_of"]


def family_of(config: DetectorConfig) -> Family:
    """The family that a config names: the Gaussian, or where there are features of other kinds a product with it."""
    block = DiagonalGaussian if config.family == "gaussian_diagonal" else Gaussian
    return block(config.n_features) if set(config.kinds) <= set(BLOCK_KINDS) else Product(block, config.kinds)
