"""The density over two features on a grid: computed in slices, one grid at a time, and the last ones kept."""

import asyncio
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from app.storage import Position
from app.streams.open.state import StreamState
from app.streams.slices import slices
from core import Detector

MOST_KEPT = 32
"""Streams whose last grid is kept: 1.3 MB each at most."""
MOST_VALUES = 2**17
"""Densities, nodes times points, that are computed in one slice."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid as of a sample, its numbers as JSON: to write 65,536 of them takes longer than all else of an answer.

    log_density (size, size) has y along the rows.
    """

    as_of_seq: int
    x_values: Raw
    y_values: Raw
    log_density: Raw


@dataclass(frozen=True, slots=True)
class GridKey:
    """A grid that is asked for, by how far its stream has come: labels move the log, samples also the next seq."""

    detector: "weakref.ref[Detector]"
    position: Position
    next_seq: int
    pair: tuple[int, int]
    size: int

    def is_like(self, other: "GridKey") -> bool:
        """Tell whether the other is the same, if maybe of another moment."""
        return (self.detector, self.pair, self.size) == (other.detector, other.pair, other.size)


@dataclass(frozen=True, slots=True)
class CachedGrid:
    """A grid, what it is of, and which one it was since the start."""

    wanted: GridKey
    number: int
    grid: Grid

    def serves(self, wanted: GridKey, begun_before: int) -> bool:
        """Tell whether it is what a request wants that came when so many had been begun.

        One that was begun while the request waited is new enough, though the stream may have gone on since.
        """
        return self.wanted == wanted or (self.number > begun_before and self.wanted.is_like(wanted))


class GridCache:
    """Computes grids one after another, whoever asks, so that all of them together never hold the loop for long."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, CachedGrid] = OrderedDict()
        self._turn = asyncio.Lock()
        self._begun = 0

    async def grid(self, stream: str, state: StreamState, pair: tuple[int, int], size: int) -> Grid:
        """Give a grid of a model that is no older than the request; NotReady before there is a density."""
        begun_before = self._begun
        async with self._turn:
            wanted = grid_key(state, pair, size)
            kept = self._cache.get(stream)
            if kept is None or not kept.serves(wanted, begun_before):
                self._begun += 1
                kept = CachedGrid(wanted, self._begun, await computed(state.detector, pair, size))
                self._keep(stream, kept)
        return kept.grid

    def _keep(self, stream: str, kept: CachedGrid) -> None:
        self._cache[stream] = kept
        self._cache.move_to_end(stream)
        if len(self._cache) > MOST_KEPT:
            self._cache.popitem(last=False)


def grid_key(state: StreamState, pair: tuple[int, int], size: int) -> GridKey:
    """Say what is asked for."""
    return GridKey(weakref.ref(state.detector), state.position, state.detector.next_seq, pair, size)


async def computed(detector: Detector, pair: tuple[int, int], size: int) -> Grid:
    """Compute a grid of the model as it is now, letting other requests in between."""
    grid, as_of_seq = detector.grid(*pair, size), detector.next_seq - 1
    most = max(1, MOST_VALUES // grid.n_nodes)
    parts = [grid.log_density(part) async for part in slices(size * size, most, most)]
    log_density = np.concatenate(parts).reshape(size, size)
    return Grid(as_of_seq, in_json(grid.x), in_json(grid.y), in_json(log_density))


def in_json(numbers: npt.NDArray[np.float64]) -> Raw:
    """Write numbers as JSON."""
    return Raw(msgspec.json.encode(numbers.tolist()))
