"""The mixture of the nodes' densities, eq. (10): the nodes, their weights, and the rules that move the weights.

nodes                   the nodes: subspace, statistics, prior, density and weight of each
learned                 samples as the nodes learn them, and as they take them back
base                    what every rule does
exponentiated_gradient  the paper's rule, with the rate of Theorem 1
soft_bayes              Soft-Bayes
tree_odds               odds along the tree: the default
flat                    what the first two share: every node competes with all others
factory                 the rule that a config names
learning_rates          how far the weights move in one round
shares                  which nodes the samples of a round belong to
log_sum                 mixtures in the log domain
"""

from core.mixture.base import Mixture
from core.mixture.factory import MIXTURES, mixture_of

__all__ = ["MIXTURES", "Mixture", "mixture_of"]
