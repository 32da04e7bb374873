"""Which pair of children a full tree can best do without."""

from dataclasses import dataclass
from typing import Final

from core.growth.evidence.worth import Worth
from core.tree.subspaces import Pair, SubspaceTree

WORTH_OF_USE: Final = 3.0
"""A leaf is taken to save so many nats for each sample that reaches it. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A pair of children that can be given up, and its price: what it saves now, in nats a sample.

    If idle is None, both children merge into their parent. Otherwise the leaf idle goes, and its sibling takes their
    parent's place.
    """

    price: float
    pair: Pair
    idle: int | None


def cheapest(tree: SubspaceTree, worth: Worth, leaf: int) -> Offer | None:
    """The offer of least price that leaves this leaf alone; None without one, or while worth knows too little."""
    offers = [offer for pair in tree.pairs() for offer in _offers(tree, worth, pair, leaf)]
    return min(offers, key=lambda offer: offer.price) if offers and worth.known else None


def _offers(tree: SubspaceTree, worth: Worth, pair: Pair, leaf: int) -> list[Offer]:
    leaves = [child for child in (pair.left, pair.right) if tree.leaf[child]]
    if leaf in leaves:
        return []
    whole = [Offer(float(worth.saved[pair.node]), pair, None)] if len(leaves) == 2 else []
    idle = leaves if pair.node != 0 else []
    return whole + [Offer(WORTH_OF_USE * float(worth.used[child]), pair, child) for child in idle]
