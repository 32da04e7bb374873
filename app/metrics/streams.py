"""Series made at each scrape, of the streams then in memory."""

from collections.abc import Iterable
from heapq import nlargest
from operator import attrgetter

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from app.figures import StreamFigures
from app.metrics.by_stream import by_stream
from app.metrics.source import NoStreams, Source
from app.metrics.together import together
from app.metrics.view import EVERYTHING


class StreamsCollector(Collector):
    """Sums up all streams; names those in `watched` and the `top` others flagged most often."""

    def __init__(self, watched: Iterable[str], top: int) -> None:
        self.watched = frozenset(watched)
        self._top = top
        self.source: Source = NoStreams()
        self.view = EVERYTHING

    def collect(self) -> Iterable[Metric]:
        written = self.source.written()
        shown = self._shown(written)
        yield from together(written)
        yield from by_stream(shown)
        text = "streams of this worker that are not shown by name"
        yield GaugeMetricFamily("itan_hidden_streams", text, len(written) - len(shown))
        text = "streams of ITAN_METRICS_STREAMS that this reader's key may not see, so no alert watches them"
        hidden = sum(not self.view.shows(stream) for stream in self.watched)
        yield GaugeMetricFamily("itan_hidden_watched_streams", text, hidden)
        yield self._silence()
        text = "commands repeated to the store after a failure"
        yield CounterMetricFamily("itan_store_retries", text, self.source.store_retries())

    def _shown(self, written: list[StreamFigures]) -> list[StreamFigures]:
        shown = written if self.view is EVERYTHING else [one for one in written if self.view.shows(one.stream)]
        watched = [figures for figures in shown if figures.stream in self.watched]
        others = [figures for figures in shown if figures.stream not in self.watched]
        return watched + nlargest(self._top, others, key=attrgetter("flag_rate"))

    def _silence(self) -> Metric:
        text = (
            "time since this worker got a sample of a stream of ITAN_METRICS_STREAMS, or since its start if it got none"
        )
        metric = GaugeMetricFamily("itan_watched_stream_silent_seconds", text, labels=["stream"])
        for stream in sorted(filter(self.view.shows, self.watched)):
            metric.add_metric([stream], self.source.silent_seconds(stream))
        return metric
