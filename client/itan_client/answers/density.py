"""What was learned: log densities, the model, and what is expected."""

from typing import TYPE_CHECKING, Any

import msgspec

from itan_client.columns import Columns

if TYPE_CHECKING:
    import pandas as pd


class LogDensity(Columns, frozen=True):
    """The log density at points, in nats and the units of the samples."""

    __columns__ = ("log_density",)

    stream: str
    as_of_seq: int
    log_density: list[float]


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the space and the density in it; a Student t if degrees_of_freedom is given."""

    id: int
    parent: int | None
    level: int
    leaf: bool
    count: float
    weight: float
    mean: list[float]
    degrees_of_freedom: float | None
    covariance: list[list[float]] | None = None
    factors: list[dict[str, Any]] | None = None


class Hyperplane(msgspec.Struct, frozen=True, omit_defaults=True):
    """The split of a node: left where normal . x >= offset; with a calendar, normal . x + calendar . y."""

    node: int
    normal: list[float]
    offset: float
    left: int
    right: int
    calendar: list[float] | None = None


class Scaling(msgspec.Struct, frozen=True):
    """The scaling of samples: (x - location) / scale."""

    location: list[float]
    scale: list[float]


class Model(msgspec.Struct, frozen=True):
    """The learned density; scaling is None before the stream is ready."""

    stream: str
    as_of_seq: int
    n_seen: int
    n_learned: int
    roles: list[str]
    nodes: list[Node]
    hyperplanes: list[Hyperplane]
    scaling: Scaling | None


class DensityGrid(msgspec.Struct, frozen=True):
    """Log density over two features; log_density[i][j] is at y_values[i], x_values[j]."""

    stream: str
    as_of_seq: int
    x: str
    y: str
    x_values: list[float]
    y_values: list[float]
    log_density: list[list[float]]


class Band(msgspec.Struct, frozen=True):
    """Quantiles of a feature over time: values[i][j] is at level[i] and time[j]; seq tells at which samples, if any."""

    stream: str
    as_of_seq: int
    feature: str
    level: list[float]
    time: list[float]
    values: list[list[float]]
    seq: list[int] | None = None

    def to_pandas(self) -> "pd.DataFrame":
        """Give a column for each level, by time."""
        import pandas as pd

        time = pd.to_datetime(self.time, unit="s", utc=True).rename("time")
        return pd.DataFrame(dict(zip(self.level, self.values, strict=True)), index=time)
