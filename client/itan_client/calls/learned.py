"""What was learned: the density, the model, and what is expected."""

from collections.abc import Sequence

import msgspec

from itan_client.answers.density import Band, DensityGrid, LogDensity, Model
from itan_client.inputs import Samples, Timestamps, rows_of, times_of
from itan_client.request import JSON, Request, encode, flag, stream_path, without_none


def density(stream: str, points: Samples, timestamps: Timestamps | None = None) -> Request[LogDensity]:
    """Ask for the log density (nats, in the units of the samples) at points; nothing is learned."""
    body = encode(without_none(points=rows_of(points), timestamps=times_of(points, timestamps)))
    return Request("POST", "/density", _LOG_DENSITY, {"stream": stream}, body, JSON)


def model(stream: str, *, covariances: bool = True) -> Request[Model]:
    """Describe the learned density: nodes, hyperplanes, weights, means, covariances."""
    return Request("GET", "/density", _MODEL, {"stream": stream, "covariances": flag(covariances)})


def grid(stream: str, x: str, y: str, size: int | None = None) -> Request[DensityGrid]:
    """Get the log density of two features on a grid."""
    params = {"stream": stream, "x": x, "y": y} | ({} if size is None else {"size": str(size)})
    return Request("GET", "/density/grid", _GRID, params)


def band(
    stream: str,
    feature: str,
    begin: float,
    end: float,
    levels: Sequence[float] = (0.05, 0.5, 0.95),
    points: int = 289,
    until: int | None = None,
) -> Request[Band]:
    """Get the quantiles of a feature from one time to another, in epoch seconds, given calendar and context.

    until is the newest sample to look at, where features are context.
    """
    times = {"from": repr(begin), "to": repr(end), "points": str(points)}
    params = {"feature": feature, "levels": ",".join(map(repr, levels)), **times}
    newest = {} if until is None else {"until": str(until)}
    return Request("GET", stream_path(stream, "/band"), _BAND, params | newest)


_LOG_DENSITY = msgspec.json.Decoder(LogDensity).decode
_MODEL = msgspec.json.Decoder(Model).decode
_GRID = msgspec.json.Decoder(DensityGrid).decode
_BAND = msgspec.json.Decoder(Band).decode
