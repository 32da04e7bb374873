"""Runs one replay against a service: prepares the stream, feeds it, reports."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.replay.feed import Feed, Outcome, Plan
from app.replay.report import Report, make_report
from app.replay.rows import BadTable, Table
from app.streams.batches.undeclared import NO_MEASUREMENTS
from itan_client import ApiError, Client, ServiceUnreachable, Stream


class Broken(RuntimeError):
    """The service failed during the replay."""

    def __init__(self, n_samples: int, cause: Exception) -> None:
        super().__init__(f"after {n_samples} samples: {cause}")


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


def run_replay(
    client: Client,
    table: Table,
    plan: Plan,
    start: Start,
    stopping: Callable[[], bool] = lambda: False,
    posted: Callable[[int], object] = lambda _: None,
) -> tuple[Outcome, Report]:
    """Feed a table to a stream, until it ends or `stopping` says so, and report the results."""
    state = find_stream(client, plan.stream)
    config = start.config if state is not None else _declared(start.config, table)
    if config is not None:
        client.create(plan.stream, _with_features(config, table, start.context))
        state = find_stream(client, plan.stream)
    feed = _make_feed(client, table, plan, state, start, stopping, posted)
    began = time.perf_counter()
    _feed(feed, table, start.first_row)
    seconds = time.perf_counter() - began
    return feed.outcome, make_report(feed.outcome, seconds, client.get(plan.stream), table.timestamp_column)


def find_stream(client: Client, stream: str) -> Stream | None:
    """Get the state of a stream, or None if there is no such stream yet."""
    try:
        return client.get(stream)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


def _declared(config: Mapping[str, Any] | None, table: Table) -> Mapping[str, Any] | None:
    """Give the config of a new stream, one also for chosen columns that would not be taken for measurements.

    Raises BadTable if nobody chose them.
    """
    if config is not None and ("features" in config or "n_features" in config):
        return config
    odd = [name for name in table.features if name.lower() in NO_MEASUREMENTS]
    if odd and not table.is_chosen:
        raise BadTable(
            f"the column {odd[0]} is no measurement by its name: name its role (--label-column, --timestamp-column),"
            " leave it out (--drop), or name the features (--columns)"
        )
    return {} if odd and config is None else config


def _with_features(config: Mapping[str, Any], table: Table, context: Sequence[str]) -> dict[str, Any]:
    if "features" in config or "n_features" in config:
        return dict(config)
    if absent := [name for name in context if name not in table.features]:
        raise BadTable(f"{', '.join(absent)} cannot be context: the features are {', '.join(table.features)}")
    features = [{"name": name, "role": "context" if name in context else "value"} for name in table.features]
    return {"features": features, **config}


def _make_feed(
    client: Client,
    table: Table,
    plan: Plan,
    state: Stream | None,
    start: Start,
    stopping: Callable[[], bool],
    posted: Callable[[int], object],
) -> Feed:
    if state is None:
        return Feed(client, plan, names=table.features, stopping=stopping, posted=posted)
    if features := state.config.get("features"):
        table.choose([feature["name"] for feature in features])
    return Feed(client, plan, already=state.next_seq - 1 if start.resume else 0, stopping=stopping, posted=posted)


def _feed(feed: Feed, table: Table, first_row: int) -> None:
    try:
        feed.run(itertools.islice(table, first_row, None))
    except KeyboardInterrupt:
        feed.outcome.stopped = True
    except (ApiError, ServiceUnreachable) as error:
        raise Broken(len(feed.outcome.score), error) from error
