"""GET /streams/S/band: between which values a feature is expected."""

from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from app.api.density import feature_in
from app.api.histories import SEQ
from app.api.moments import MOMENT, number, span_in
from app.api.queries import InvalidQuery, read_as, read_query, seq_in, whole, whole_in
from app.api.routing import JSON, Answer, Operation, Parameters, Route, answer, ref
from app.api.schemas.density import ExpectedBand
from app.api.service import permitted_path_stream, service_of
from app.api.streams import PATH
from app.security import Scope
from app.streams.views.band import evenly, recorded
from app.streams.views.history import MAX_SCANNED
from core import LEAST_LEVEL, DetectorConfig

POINTS = (2, 2_000, 289)
MOST_LEVELS = 9
LEVELS = (0.05, 0.5, 0.95)


async def get_band(request: Request) -> Response:
    """Give the quantiles of a feature over time, given the context."""
    service, stream = service_of(request), permitted_path_stream(request, Scope.READ)
    query = read_query(request, "feature", "from", "to", "levels", "points", "until")
    span = span_in(query, is_required=True)
    points, levels, until = whole_in(query, "points", *POINTS), levels_in(query), seq_in(query, "until")
    async with service.registry.reading(stream) as session:
        detector = (await session.readable()).detector
        config = detector.config
        feature = value_in(query, "feature", config)
        if has_context(config):
            log = await service.catalog.log(stream)
            places = await recorded(log, config, span.first, span.last, points, until)
        else:
            places = evenly(span.first, span.last, points)
        band = await service.bands.band(detector, feature, levels, places)
    return answer(
        ExpectedBand(
            stream=stream,
            as_of_seq=band.as_of_seq,
            feature=query["feature"],
            level=levels,
            time=places.time.tolist(),
            values=band.quantiles.T.tolist(),
            seq=UNSET if places.seq is None else places.seq.tolist(),
        )
    )


def has_context(config: DetectorConfig) -> bool:
    """Tell whether features that clients send are context, so that no band can be drawn without samples."""
    return any(feature < config.n_features for feature in config.context)


def value_in(query: dict[str, str], parameter: str, config: DetectorConfig) -> int:
    """Give the index of the feature that a parameter names; it must not be context."""
    feature = feature_in(query, parameter, config)
    if feature in config.context:
        raise InvalidQuery(parameter, query[parameter], "a feature that is no context: only values have a band")
    return feature


def levels_in(query: dict[str, str]) -> list[float]:
    """Give the levels, chances below which the quantiles are asked for."""

    def read(text: str) -> list[float]:
        levels = [number(part) for part in text.split(",")]
        if len(levels) > MOST_LEVELS or not all(LEAST_LEVEL <= level <= 1 - LEAST_LEVEL for level in levels):
            raise ValueError
        return levels

    limit = f"up to {MOST_LEVELS} numbers from {LEAST_LEVEL:g} to 1 - {LEAST_LEVEL:g}, comma-separated"
    return read_as(query, "levels", read, limit, list(LEVELS))


BAND_QUERY: Parameters = {
    "feature": (
        {"type": "string", "examples": ["cpu"]},
        "name of a feature that is no context, or its number if the features have no names",
    ),
    "from": (MOMENT, "begin of the time"),
    "to": (MOMENT, "end of the time; it may lie in the future"),
    "levels": (
        {"type": "string", "default": ",".join(map(str, LEVELS))},
        f"chances that the value lies below, comma-separated: at most {MOST_LEVELS}, from {LEAST_LEVEL:g} to"
        f" 1 - {LEAST_LEVEL:g}",
    ),
    "points": (whole(*POINTS), "moments from the first to the last; with features that are context: most samples"),
    "until": (SEQ, "the newest sample to look at, if features are context; default: the newest of the log"),
}
ROUTES = [
    Route(
        "GET",
        "/streams/{stream}/band",
        get_band,
        Operation(
            id="get_band",
            tag="density",
            summary="Get the expected band of a feature",
            description="Quantiles of the feature by the present model, given the calendar and the features that are "
            "context, whatever the other features are. If features are context, the band is given at the samples that "
            f"have a time from `from` to `to`, among the newest {MAX_SCANNED} up to `until`; else at evenly spaced "
            "moments, also in the future. A stream without any context has the same band everywhere.",
            scope=Scope.READ,
            path=PATH,
            query=BAND_QUERY,
            optional=frozenset({"until"}),
            answers={200: Answer({JSON: ref("ExpectedBand")})},
            problems=("unknown_stream", "not_ready"),
        ),
    ),
]
