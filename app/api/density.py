"""/density: the learned density at points, as a model, and as a grid."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.api.admission import permitted_samples
from app.api.bodies.reading import media_type, read_body
from app.api.bodies.samples import read_points
from app.api.queries import STREAM, InvalidQuery, flag_in, read_query, stream_in, text_in, whole, whole_in
from app.api.routing import JSON, Answer, Operation, Route, answer, ref
from app.api.service import service_of
from app.security import Scope
from app.streams.batches.features import feature_names
from app.streams.views.score import log_density
from core import DetectorConfig

SPREADS = {"covariance", "factors"}
GRID_SIZES = (2, 256, 64)


async def post_density(request: Request) -> Response:
    """Give the log density at points; nothing is learned."""
    service = service_of(request)
    stream = stream_in(read_query(request, "stream"))
    allowance = permitted_samples(request, Scope.READ, stream)
    media_type(request, JSON)
    body = await read_body(request, service.settings.max_body_bytes)
    points = await read_points(body, service.settings.max_batch_samples)
    async with service.registry.reading(stream) as session:
        values, as_of_seq = await log_density(session, points, allowance)
    return answer({"stream": stream, "as_of_seq": as_of_seq, "log_density": values})


async def get_density(request: Request) -> Response:
    """Give the model: nodes, hyperplanes, weights, means, covariances."""
    service = service_of(request)
    query = read_query(request, "stream", "covariances")
    stream, covariances = stream_in(query), flag_in(query, "covariances", default=True)
    service.keys.permit(request, Scope.READ, stream)
    async with service.registry.reading(stream) as session:
        detector = (await session.readable()).detector
        known = {"stream": stream, "as_of_seq": detector.next_seq - 1, "n_seen": detector.n_seen}
        model = detector.describe()
        if not covariances:
            model["nodes"] = [shape_of(node) for node in model["nodes"]]
        return answer({**known, **model})


def shape_of(node: dict[str, Any]) -> dict[str, Any]:
    """Give a node without what grows with the square of the features."""
    return {name: value for name, value in node.items() if name not in SPREADS}


async def get_grid(request: Request) -> Response:
    """Give the marginal log density of two features on a grid."""
    service = service_of(request)
    query = read_query(request, "stream", "x", "y", "size")
    stream, size = stream_in(query), whole_in(query, "size", *GRID_SIZES)
    service.keys.permit(request, Scope.READ, stream)
    async with service.registry.reading(stream) as session:
        state = await session.readable()
        i, j = (feature_in(query, name, state.detector.config) for name in ("x", "y"))
        if i == j:
            raise InvalidQuery("y", query["y"], "another feature than x")
        grid = await service.grids.grid(stream, state, (i, j), size)
    axes = {"x": query["x"], "y": query["y"], "x_values": grid.x_values, "y_values": grid.y_values}
    return answer({"stream": stream, "as_of_seq": grid.as_of_seq, **axes, "log_density": grid.log_density})


def feature_in(query: dict[str, str], parameter: str, config: DetectorConfig) -> int:
    """Give the index of the feature that a parameter names; features without names go by their number from 0."""
    names = feature_names(config)
    name = text_in(query, parameter)
    if name not in names:
        raise InvalidQuery(
            parameter, name, f"a feature of the stream: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
        )
    return names.index(name)


STREAM_QUERY = {"stream": (STREAM, "the stream")}
MODEL_QUERY = {
    **STREAM_QUERY,
    "covariances": ({"type": "boolean", "default": True}, "false: without the covariances and factors of the nodes"),
}
GRID_QUERY = {
    **STREAM_QUERY,
    "x": ({"type": "string", "examples": ["cpu"]}, "name of a feature, or its number if the features have no names"),
    "y": ({"type": "string", "examples": ["latency_ms"]}, "another feature"),
    "size": (whole(*GRID_SIZES), "points along each axis"),
}

ROUTES = [
    Route(
        "POST",
        "/density",
        post_density,
        Operation(
            id="get_log_density",
            tag="density",
            summary="Get the log density at points",
            scope=Scope.READ,
            query=STREAM_QUERY,
            body={JSON: ref("DensityBody")},
            answers={200: Answer({JSON: ref("DensityAnswer")})},
            problems=(
                "unknown_stream",
                "not_ready",
                "too_many",
                "invalid_samples",
                "invalid_ids",
                "invalid_timestamps",
            ),
        ),
    ),
    Route(
        "GET",
        "/density",
        get_density,
        Operation(
            id="get_model",
            tag="density",
            summary="Get the learned model",
            scope=Scope.READ,
            query=MODEL_QUERY,
            answers={200: Answer({JSON: ref("Model")})},
            problems=("unknown_stream",),
        ),
    ),
    Route(
        "GET",
        "/density/grid",
        get_grid,
        Operation(
            id="get_density_grid",
            tag="density",
            summary="Get the density over two features",
            scope=Scope.READ,
            query=GRID_QUERY,
            answers={200: Answer({JSON: ref("DensityGrid")})},
            problems=("unknown_stream", "not_ready"),
        ),
    ),
]
