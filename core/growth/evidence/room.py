"""Which nodes a full tree can best do without."""

from dataclasses import dataclass
from typing import Final

from core.growth.evidence.worth import Worth
from core.tree.subspaces import Pair, SubspaceTree

WORTH_OF_USE: Final = 3.0
"""A leaf that hardly anything reaches saves so many nats for each sample that does."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A pair of children that can be given up: what it saves, in nats a sample, and its idle leaf.

    Without an idle leaf both children return into their node; with one, the other child takes the node's place.
    """

    price: float
    pair: Pair
    idle: int | None


def cheapest(tree: SubspaceTree, worth: Worth, leaf: int) -> Offer | None:
    """The pair that saves least, of those that this leaf is not of; None if there is none, or too little is known."""
    offers = [offer for pair in tree.pairs() for offer in _offers(tree, worth, pair, leaf)]
    return min(offers, key=lambda offer: offer.price) if offers and worth.known else None


def _offers(tree: SubspaceTree, worth: Worth, pair: Pair, leaf: int) -> list[Offer]:
    leaves = [child for child in (pair.left, pair.right) if tree.leaf[child]]
    if leaf in leaves:
        return []
    whole = [Offer(float(worth.saved[pair.node]), pair, None)] if len(leaves) == 2 else []
    idle = leaves if pair.node != 0 else []
    return whole + [Offer(WORTH_OF_USE * float(worth.used[child]), pair, child) for child in idle]
