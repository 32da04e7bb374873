"""Runs one replay against a service: prepares the stream, feeds it, reports."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.counts import counted
from app.replay.feed import Feed, Outcome, Plan
from app.replay.reading.cells import BadTable
from app.replay.reading.table import Table
from app.replay.report import Report, make_report
from app.streams.batches.undeclared import NO_MEASUREMENTS
from itan_client import ApiError, Client, ServiceUnreachable, Stream


class Broken(RuntimeError):
    """The service failed during the replay."""

    def __init__(self, n_samples: int, cause: Exception) -> None:
        super().__init__(f"after {counted(n_samples, 'sample')}: {cause}")


@dataclass(frozen=True)
class Start:
    """Where a replay begins.

    Rows before `first_row` are skipped; `resume` continues at the stream's seq; `config` creates the stream, and the
    features named by `context` are context in it.
    """

    first_row: int = 0
    resume: bool = False
    config: Mapping[str, Any] | None = None
    context: tuple[str, ...] = ()


class Result(NamedTuple):
    """What a replay got, its figures, and the stream after it."""

    outcome: Outcome
    report: Report
    stream: Stream


class Replay:
    """A replay that is ready to run: the file was looked through, and the stream created if that was asked for.

    n_before counts the samples that the stream had. Raises BadTable, before anything is created, if the file cannot
    be used.
    """

    def __init__(
        self, client: Client, table: Table, plan: Plan, start: Start, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._client = client
        self._table = table
        self._plan = plan
        self._start = start
        self._stopping = stopping
        state = find_stream(client, plan.stream)
        config = start.config if state is not None else _declared(start.config, table)
        if features := _named_features(state.config if state else config or {}):
            table.choose(features)
        self.survey = table.survey()
        if config is not None:
            client.create(plan.stream, _with_features(config, table, start.context))
            state = find_stream(client, plan.stream)
        self._is_new = state is None
        self.n_before = 0 if state is None else state.n_seen
        self._already = state.next_seq - 1 if state and start.resume else 0

    @property
    def n_samples(self) -> int | None:
        """How many samples there are to send; None if nobody knows."""
        if not self.survey.is_whole:
            return self._plan.limit
        left = max(self.survey.n_rows - self._start.first_row - self._already, 0)
        return left if self._plan.limit is None else min(left, self._plan.limit)

    def run(self, posted: Callable[[int], object] = lambda _: None) -> Result:
        """Feed the table to the stream, until it ends or somebody stops it, and report the results."""
        names = self._table.features if self._is_new else None
        feed = Feed(
            self._client, self._plan, already=self._already, names=names, stopping=self._stopping, posted=posted
        )
        began = time.perf_counter()
        _feed(feed, self._table, self._start.first_row)
        seconds = time.perf_counter() - began
        state = self._client.get(self._plan.stream)
        timestamps = self._table.columns.timestamp
        report = make_report(feed.outcome, self._plan, seconds, state, timestamps, self.survey.notes)
        return Result(feed.outcome, report, state)


def find_stream(client: Client, stream: str) -> Stream | None:
    """Get the state of a stream, or None if there is no such stream yet."""
    try:
        return client.get(stream)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def _declared(config: Mapping[str, Any] | None, table: Table) -> Mapping[str, Any] | None:
    """Give the config of a new stream, one also for chosen columns that would not be taken for measurements."""
    odd = table.are_chosen and any(name.lower() in NO_MEASUREMENTS for name in table.features)
    return {} if odd and config is None else config


def _named_features(config: Mapping[str, Any]) -> list[str]:
    """Give the names of a config's features; none if it has no names, or the service will refuse it."""
    features = config.get("features")
    known = features if isinstance(features, list) else []
    return [str(feature["name"]) for feature in known if isinstance(feature, dict) and "name" in feature]


def _with_features(config: Mapping[str, Any], table: Table, context: Sequence[str]) -> dict[str, Any]:
    if "features" in config or "n_features" in config:
        return dict(config)
    if absent := [name for name in context if name not in table.features]:
        raise BadTable(f"{', '.join(absent)} cannot be context: the features are {', '.join(table.features)}")
    features = [{"name": name, "role": "context" if name in context else "value"} for name in table.features]
    return {"features": features, **config}


def _feed(feed: Feed, table: Table, first_row: int) -> None:
    try:
        feed.run(itertools.islice(table, first_row, None))
    except KeyboardInterrupt:
        feed.outcome.stopped = True
    except BadTable as error:
        # of a pipe: a file was looked through before
        raise BadTable(f"{error} (after {counted(len(feed.outcome.score), 'sample')})") from None
    except (ApiError, ServiceUnreachable) as error:
        raise Broken(len(feed.outcome.score), error) from error
