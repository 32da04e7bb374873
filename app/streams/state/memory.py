"""How much memory a stream takes."""

import gc
from sys import getsizeof
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np

SESSION_BYTES = 4_000
"""What a session takes beside its state: itself, its lock, its parts, its place in the registry."""
ARRAY_BYTES = 64
"""What an array takes beyond its own size: its shape, and the allocator's overhead."""
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)


def held_bytes(root: object) -> int:
    """Give the bytes of everything that an object refers to, each object once; classes and functions are not counted.

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
            # the garbage collector does not look into arrays; a view's numbers belong to its base
            todo.append(thing.base)
            total += ARRAY_BYTES
        else:
            todo += gc.get_referents(thing)
    return total
