"""Makes samples of series: a stream has a row at each step at which one of its queries gives a number."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.pull.config import PullConfig, is_stream_id
from app.pull.prometheus import Series
from app.sources.templates import MissingKey, Template, plain
from app.streams.ids import LIMIT

Row = list[float | None]


class Sample(NamedTuple):
    """The values of a stream at a step; None is a missing value."""

    time: int
    stream: str
    values: Row


class Rows:
    """The rows of some steps, by stream and time. `faults` says which series were left out, and why."""

    def __init__(self, config: PullConfig) -> None:
        self._config, self._template = config, config.template
        self._values = [query.role == "value" for query in config.queries.values()]
        self._rows: dict[str, dict[int, Row]] = {}
        self.faults: list[str] = []
        self.n_not_finite = 0

    def add(self, name: str, found: Sequence[Series]) -> None:
        """Add what the query of a feature gave."""
        place, width = self._config.names.index(name), len(self._config.names)
        for stream, column in self._columns(name, found).items():
            rows = self._rows.setdefault(stream, {})
            for time, value in column.items():
                rows.setdefault(time, [None] * width)[place] = value

    @property
    def streams(self) -> list[str]:
        """The streams that have a sample."""
        return [stream for stream, rows in self._rows.items() if any(map(self._is_sample, rows.values()))]

    def samples(self) -> list[Sample]:
        """Give the samples in the order of time."""
        each = (Sample(time, stream, row) for stream, rows in self._rows.items() for time, row in rows.items())
        return sorted((one for one in each if self._is_sample(one.values)), key=lambda one: one[:2])

    def _is_sample(self, row: Row) -> bool:
        return any(is_value and value is not None for is_value, value in zip(self._values, row, strict=True))

    def _columns(self, name: str, found: Sequence[Series]) -> Mapping[str, dict[int, float | None]]:
        columns: dict[str, dict[int, float | None]] = {}
        owners: dict[str, Series] = {}
        for series in found:
            stream = self._stream(name, series)
            if stream is None:
                continue
            column, given = columns.setdefault(stream, {}), self._numbers(series)
            if both := column.keys() & given.keys():
                self._refuse_second(name, stream, owners[stream], series)
            column |= given | dict.fromkeys(both)
            owners.setdefault(stream, series)
        return columns

    def _stream(self, name: str, series: Series) -> str | None:
        if series.histograms:
            self.faults.append(
                f"query {name!r} gives native histograms, in {labels(series)}; take numbers of them, as "
                "histogram_quantile(0.99, ...) does"
            )
            return None
        try:
            stream = stream_of(self._template, series.metric)
        except MissingKey as missing:
            self.faults.append(f"query {name!r} gives the series {labels(series)}, which has no label {missing.path!r}")
            return None
        if not is_stream_id(stream):
            self.faults.append(
                f"query {name!r} gives the series {labels(series)}; {stream!r} is no stream id: it must be {LIMIT}"
            )
            return None
        return stream

    def _refuse_second(self, name: str, stream: str, first: Series, second: Series) -> None:
        self.faults.append(
            f"query {name!r} gives two series for stream {stream!r} at one time, {labels(first)} and {labels(second)}; "
            "aggregate them, as sum by (...) does, or name the streams by more labels"
        )

    def _numbers(self, series: Series) -> dict[int, float | None]:
        numbers: dict[int, float | None] = {}
        for time, text in series.values:
            value = float(text)
            if not math.isfinite(value):
                self.n_not_finite += 1
            numbers[round(time)] = value if math.isfinite(value) else None
        return numbers


def stream_of(template: Template, metric: Mapping[str, str]) -> str:
    """Name the stream of a series; characters that no id can have become _ and their code. Raises MissingKey.

    >>> stream_of(Template("{job}:{instance}"), {"job": "node", "instance": "web-1:9100"})
    'node:web-1:9100'
    >>> stream_of(Template("{path}"), {"path": "/var/log"})
    '_2Fvar_2Flog'
    """
    return template.filled(metric, lambda text: ":".join(map(plain, text.split(":"))))


def labels(series: Series) -> str:
    """Write the labels of a series as Prometheus does."""
    inner = ", ".join(f'{key}="{value}"' for key, value in sorted(series.metric.items()) if key != "__name__")
    return f"{series.metric.get('__name__', '')}{{{inner}}}"
