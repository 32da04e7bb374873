"""The rule that a config names."""

from typing import Final

from core.config import DetectorConfig
from core.mixture.base import MEMORY, Mixture
from core.mixture.exponentiated_gradient import ExponentiatedGradient
from core.mixture.soft_bayes import SoftBayes
from core.mixture.tree_odds import TreeOdds
from core.tree.subspaces import SubspaceTree

MIXTURES: Final[dict[str, type[Mixture]]] = {c.name: c for c in (ExponentiatedGradient, SoftBayes, TreeOdds)}


def mixture_of(config: DetectorConfig, tree: SubspaceTree) -> Mixture:
    """The rule that a config names, over the nodes of a tree; it remembers no more samples than a half-life."""
    memory = MEMORY if config.half_life_samples is None else min(MEMORY, config.half_life_samples)
    return MIXTURES[config.mixture](tree, memory)
