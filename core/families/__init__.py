"""Exponential families: the densities of the nodes.

base                 what a family is, and what the tree asks of the densities of its nodes
gaussian             the Gaussian, with a full or a diagonal covariance
gaussian_nodes       MAP Gaussians of many nodes, with full covariances
diagonal_nodes       MAP Gaussians of many nodes, without correlations
student_nodes        posterior predictives of many nodes: Student t
node_arrays          what these have in common
statistics           counts, means and scatters
posterior            MAP mean and covariance
marginal_likelihood  the evidence of samples, and the prior that it prefers
cholesky             a Cholesky factor that always exists
product              a Gaussian block and a factor for each feature of another kind
layout               which columns statistics keep of a sample
factor               what every such factor is: exponential, gamma, poisson, bernoulli, categorical
"""

from core.config import DetectorConfig
from core.families.base import Family
from core.families.gaussian import DiagonalGaussian, Gaussian
from core.families.layout import BLOCK_KINDS, Layout
from core.families.product import Product

__all__ = ["DiagonalGaussian", "Family", "Gaussian", "Layout", "Product", "family_of"]


def family_of(config: DetectorConfig) -> Family:
    """The family that a config names: the Gaussian, or where there are features of other kinds a product with it."""
    block = DiagonalGaussian if config.family == "gaussian_diagonal" else Gaussian
    kinds = config.column_kinds
    return block(len(kinds)) if set(kinds) <= set(BLOCK_KINDS) else Product(block, kinds)
