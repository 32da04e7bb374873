"""How much memory a stream takes."""

import gc
from sys import getsizeof
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np

SESSION_BYTES = 4_000
"""What a session takes beside its state: itself, its lock, its ledger, its place among the others."""
ARRAY_BYTES = 64
"""What an array takes beside what it says of itself: its shape, and what the allocator adds."""
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def held_bytes(root: object) -> int:
    """Give the bytes of all that an object leads to, each thing once; classes and functions belong to nobody.

    >>> held_bytes([1.5, 2.5]) - held_bytes([])
    64
    """
    seen: set[int] = set()
    todo, total = [root], 0
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, _SHARED):
            continue
        seen.add(id(thing))
        total += getsizeof(thing)
        if isinstance(thing, np.ndarray):
            # the collector does not look into arrays; a view's numbers are those of its base
            todo.append(thing.base)
            total += ARRAY_BYTES
        else:
            todo += gc.get_referents(thing)
    return total
