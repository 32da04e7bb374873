"""Work of several steps: all at once, or so that other tasks run in between."""

import asyncio
from collections.abc import Generator

Steps = Generator[None, None, bytes]


def at_once(steps: Steps) -> bytes:
    """Do all steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bytes(end.value)


async def in_turns(steps: Steps) -> bytes:
    """Do all steps; other tasks run in between."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bytes(end.value)
        await asyncio.sleep(0)
