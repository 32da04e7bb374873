"""What was learned: the density at points, on a grid, and the model."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.api.schemas.types import AsOfSeq, Moment, SampleRows


class DensityBody(msgspec.Struct, forbid_unknown_fields=True):
    """Points as arrays or as objects of named values; a stream with a calendar needs timestamps, null = not known."""

    points: SampleRows
    timestamps: Annotated[list[Moment | None], Meta(min_length=1)] | UnsetType = UNSET


class DensityAnswer(msgspec.Struct):
    """Log densities at the points, in nats and the units of the samples."""

    stream: str
    as_of_seq: AsOfSeq
    log_density: list[float]


class Node(msgspec.Struct):
    """A part of the space and the density in it; covariance and factors are left out with covariances=false."""

    id: int
    parent: int | None
    level: int
    leaf: bool
    count: Annotated[float, Meta(description="samples counted in it, less what was forgotten")]
    weight: Annotated[float, Meta(description="its share of the mixture")]
    mean: list[float]
    degrees_of_freedom: Annotated[float | None, Meta(description="of its Student t; null if it is a Gaussian")]
    covariance: Annotated[list[list[float]], Meta(description="or scale matrix of the Student t")] | UnsetType = UNSET
    factors: Annotated[list[dict[str, Any]], Meta(description="features of other kinds")] | UnsetType = UNSET


class Hyperplane(msgspec.Struct):
    """The split of a node: left where normal . x >= offset; with a calendar, normal . x + calendar . y."""

    node: int
    normal: list[float]
    offset: float
    left: int
    right: int
    calendar: (
        Annotated[list[float], Meta(description="the normal's part along the columns of the calendar")] | UnsetType
    ) = UNSET


class Scaling(msgspec.Struct):
    """The scaling of samples: (x - location) / scale."""

    location: list[float]
    scale: list[float]


class Model(msgspec.Struct):
    """The learned density."""

    stream: str
    as_of_seq: AsOfSeq
    n_seen: int
    n_learned: int
    roles: Annotated[list[str], Meta(description="of each feature: value or context")]
    nodes: list[Node]
    hyperplanes: list[Hyperplane]
    scaling: Annotated[Scaling | None, Meta(description="null before the stream is ready")]


class DensityGrid(msgspec.Struct):
    """Log density over two features; log_density[i][j] is at y_values[i], x_values[j]."""

    stream: str
    as_of_seq: AsOfSeq
    x: str
    y: str
    x_values: list[float]
    y_values: list[float]
    log_density: list[list[float]]


class ExpectedBand(msgspec.Struct, omit_defaults=True):
    """Quantiles of a feature given the context; values[i][j] is at level[i], time[j], in the unit of the samples."""

    stream: str
    as_of_seq: AsOfSeq
    feature: str
    level: list[float]
    time: Annotated[list[float], Meta(description="epoch seconds")]
    values: list[list[float]]
    seq: (
        Annotated[list[int], Meta(description="the samples whose context it is, if features are context")] | UnsetType
    ) = UNSET
