"""Some entries of a block that are read only when they are looked at."""

from collections.abc import Sequence
from typing import overload

from app.storage import Entry, Position
from app.streams.log.blocks.block import Block
from app.streams.log.seen import Seen


class Part(Sequence[Entry]):
    """The entries at consecutive places of a block; each is decoded when it is asked for."""

    def __init__(self, block: Block, places: range) -> None:
        self._block, self._places = block, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> "Part": ...

    def __getitem__(self, index: int | slice) -> "Entry | Part":
        if isinstance(index, slice):
            return Part(self._block, self._places[index])
        return self._block.entries([self._places[index]])[0]

    @property
    def end(self) -> Position:
        """The position of the last entry."""
        return self._block.position(self._places[-1])

    def seen(self) -> Seen | None:
        """Give what seen_in gives of these entries, without reading their values."""
        return self._block.seen(self._places)
