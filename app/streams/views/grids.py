"""The density over two features on a grid: computed in slices, one grid at a time, and cached."""

import asyncio
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from app.storage import Position
from app.streams.slices import slices
from app.streams.state.state import StreamState
from core import Detector

MAX_CACHED = 32
"""Streams whose last grid is cached: at most 1.3 MB each."""
MAX_VALUES = 2**17
"""Densities, nodes times points, in one slice."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid as of a sample. Its numbers are JSON: writing 65,536 of them takes most of the time of an answer.

    log_density (size, size) has y along the rows.
    """

    as_of_seq: int
    x_values: Raw
    y_values: Raw
    log_density: Raw


@dataclass(frozen=True, slots=True)
class GridKey:
    """What a grid shows, and of which moment: labels move the log's position, samples also next_seq."""

    detector: "weakref.ref[Detector]"
    position: Position
    next_seq: int
    pair: tuple[int, int]
    size: int

    def has_same_view(self, other: "GridKey") -> bool:
        """Tell whether the other shows the same, perhaps of another moment."""
        return (self.detector, self.pair, self.size) == (other.detector, other.pair, other.size)


@dataclass(frozen=True, slots=True)
class CachedGrid:
    """A grid, and its number among all that were computed since the start."""

    key: GridKey
    number: int
    grid: Grid

    def serves(self, key: GridKey, begun_before: int) -> bool:
        """Tell whether it answers a request that came after `begun_before` grids had been begun.

        A grid that was begun while the request waited is new enough, though the stream may have gone on since.
        """
        return self.key == key or (self.number > begun_before and self.key.has_same_view(key))


class GridCache:
    """Computes grids one at a time, so that many requests together never hold the loop for long."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, CachedGrid] = OrderedDict()
        self._turn = asyncio.Lock()
        self._begun = 0

    async def grid(self, stream: str, state: StreamState, pair: tuple[int, int], size: int) -> Grid:
        """Give a grid of a model that is no older than the request. Raises NotReady before there is a density."""
        begun_before = self._begun
        async with self._turn:
            key = grid_key(state, pair, size)
            cached = self._cache.get(stream)
            if cached is None or not cached.serves(key, begun_before):
                self._begun += 1
                cached = CachedGrid(key, self._begun, await computed(state.detector, pair, size))
                self._keep(stream, cached)
        return cached.grid

    def _keep(self, stream: str, cached: CachedGrid) -> None:
        self._cache[stream] = cached
        self._cache.move_to_end(stream)
        if len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)


def grid_key(state: StreamState, pair: tuple[int, int], size: int) -> GridKey:
    """Name the grid of this state."""
    return GridKey(weakref.ref(state.detector), state.position, state.detector.next_seq, pair, size)


async def computed(detector: Detector, pair: tuple[int, int], size: int) -> Grid:
    """Compute a grid of the present model; other requests have their turn in between."""
    grid, as_of_seq = detector.grid(*pair, size), detector.next_seq - 1
    most = max(1, MAX_VALUES // grid.n_nodes)
    parts = [grid.log_density(part) async for part in slices(size * size, most, most)]
    log_density = np.concatenate(parts).reshape(size, size)
    return Grid(as_of_seq, in_json(grid.x), in_json(grid.y), in_json(log_density))


def in_json(numbers: npt.NDArray[np.float64]) -> Raw:
    """Write numbers as JSON."""
    return Raw(msgspec.json.encode(numbers.tolist()))
