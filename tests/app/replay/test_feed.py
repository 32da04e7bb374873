"""In which order samples and labels reach the service."""

import doctest
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from app.replay import schedule
from app.replay.feed import Feed, Plan
from app.replay.reading.table import Row
from itan_client import Observed


class Recorder:
    """Stands in for the client: writes down what is posted, and numbers samples from `base` + 1."""

    def __init__(self, base: int = 1000, n_seen: int = 0) -> None:
        self.events: list[tuple[str, list[Any]]] = []
        self.base = base
        self.n_seen = base + n_seen

    def observe(self, stream: str, samples: Sequence[Any], ids: Any = None, timestamps: Any = None) -> Observed:
        self.events.append(("samples", [next(iter(x.values())) if isinstance(x, Mapping) else x[0] for x in samples]))
        seq = list(range(self.n_seen + 1, self.n_seen + len(samples) + 1))
        self.n_seen = seq[-1]
        n = len(samples)
        said = {"score": [0.5] * n, "threshold": [1.0] * n, "severity": [0.3] * n, "is_anomaly": [False] * n}
        incidents = {"incident": [None] * n, "event": [None] * n}
        return Observed(**said, ready=[True] * n, seq=seq, **incidents)

    def feedback(self, stream: str, labels: Sequence[Mapping[str, Any]]) -> SimpleNamespace:
        self.events.append(("labels", [label["seq"] - self.base for label in labels]))
        return SimpleNamespace(outcome=["applied"] * len(labels), accepted=[])


def rows(n: int, labelled: Sequence[int] | None = None) -> list[Row]:
    return [Row([float(t)], t % 3 == 0 if labelled is None or t in labelled else None) for t in range(1, n + 1)]


def fed(plan: Plan, table: list[Row], **options: Any) -> tuple[Recorder, Feed]:
    recorder = Recorder()
    feed = Feed(recorder, plan, **options)  # type: ignore[arg-type]
    feed.run(table)
    return recorder, feed


def flat(recorder: Recorder) -> list[tuple[str, int]]:
    """Forget how events were batched."""
    return [(kind, int(t)) for kind, batch in recorder.events for t in batch]


def test_the_example_in_the_docstring_holds() -> None:
    assert doctest.testmod(schedule).failed == 0


@pytest.mark.parametrize("delay", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_each_label_goes_out_just_when_it_is_due(delay: int, batch_size: int) -> None:
    recorder, _ = fed(Plan("s", batch_size, delay), rows(20))
    expected: list[tuple[str, int]] = []
    for t in range(1, 21):
        expected.append(("samples", t))
        expected += [("labels", t - delay)] if t > delay else []
    expected += [("labels", t) for t in range(max(1, 21 - delay), 21)]
    assert flat(recorder) == expected


def test_batches_are_as_long_as_the_labels_let_them_be() -> None:
    recorder, _ = fed(Plan("s", 4, label_delay=2), rows(12, labelled=[3]))
    assert recorder.events == [
        ("samples", [1, 2, 3, 4]),
        ("samples", [5]),
        ("labels", [3]),
        ("samples", [6, 7, 8, 9]),
        ("samples", [10, 11, 12]),
    ]


def test_labels_that_are_due_wait_for_the_next_time_of_sending() -> None:
    recorder, _ = fed(Plan("s", 100, label_delay=2, label_every=4), rows(10))
    assert recorder.events == [
        ("samples", [1, 2, 3, 4]),
        ("labels", [1, 2]),
        ("samples", [5, 6, 7, 8]),
        ("labels", [3, 4, 5, 6]),
        ("samples", [9, 10]),
        ("labels", [7, 8, 9, 10]),
    ]


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_times_of_sending_do_not_depend_on_batches(batch_size: int) -> None:
    labelled = [2, 3, 11, 30]
    whole = fed(Plan("s", 7, label_delay=4, label_every=5), rows(40, labelled))[0]
    assert flat(fed(Plan("s", batch_size, label_delay=4, label_every=5), rows(40, labelled))[0]) == flat(whole)
    assert [batch for kind, batch in whole.events if kind == "labels"] == [[2, 3], [11], [30]]


def test_labels_that_are_not_due_can_be_kept_for_later() -> None:
    recorder, _ = fed(Plan("s", 100, label_delay=8, final_labels=False), rows(10))
    assert [batch for kind, batch in recorder.events if kind == "labels"] == [[1], [2]]


@pytest.mark.parametrize("cut", [1, 4, 9, 10, 15])
@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_two_parts_are_the_whole(cut: int, every: int, rate: float) -> None:
    plan = {"batch_size": 4, "label_delay": 3, "label_every": every, "label_rate": rate, "seed": 5}
    whole, _ = fed(Plan("s", **plan), rows(20))
    first, _ = fed(Plan("s", **plan, limit=cut, final_labels=False), rows(20))
    second = Recorder(base=0, n_seen=cut)
    Feed(second, Plan("s", **plan), already=cut).run(rows(20))  # type: ignore[arg-type]
    # the labels that fell due at the cut go out twice, which the service calls duplicates
    news = [event for event in flat(second) if event not in flat(first)]
    assert flat(first) + news == flat(whole)
    assert len(flat(second)) - len(news) <= every


def test_labels_lost_in_the_break_are_sent_after_it() -> None:
    recorder = Recorder(base=0, n_seen=8)
    Feed(recorder, Plan("s", label_delay=3), already=8).run(rows(10))  # type: ignore[arg-type]
    # the first part may have ended between sample 8 and the label that fell due with it
    assert flat(recorder)[:3] == [("labels", 5), ("samples", 9), ("labels", 6)]


def test_a_share_of_the_labels_is_drawn_by_the_seed() -> None:
    def revealed(seed: int) -> list[int]:
        return [t for kind, t in flat(fed(Plan("s", label_rate=0.3, seed=seed), rows(400))[0]) if kind == "labels"]

    assert revealed(1) == revealed(1) != revealed(2)
    assert 80 < len(revealed(1)) < 160
    assert not [t for kind, t in flat(fed(Plan("s", label_rate=0.0), rows(400))[0]) if kind == "labels"]


def test_only_the_first_batch_carries_names() -> None:
    seen: list[Any] = []

    class Named(Recorder):
        def observe(self, stream: str, samples: Sequence[Any], ids: Any = None, timestamps: Any = None) -> Observed:
            seen.append(samples[0])
            return super().observe(stream, samples)

    Feed(Named(), Plan("s", 2), names=["cpu"]).run(rows(4))  # type: ignore[arg-type]
    assert seen == [{"cpu": 1.0}, [3.0]]


def test_a_stop_ends_after_the_request_under_way() -> None:
    recorder = Recorder()
    feed = Feed(recorder, Plan("s", 5, 100), stopping=lambda: recorder.n_seen >= 1010)  # type: ignore[arg-type]
    feed.run(rows(100))
    assert len(feed.outcome.score) == 10
    assert feed.outcome.stopped
    assert not [kind for kind, _ in recorder.events if kind == "labels"]


def test_ids_and_timestamps_go_along() -> None:
    sent: list[Any] = []

    class Keeper(Recorder):
        def observe(self, stream: str, samples: Sequence[Any], ids: Any = None, timestamps: Any = None) -> Observed:
            sent.append((ids, timestamps))
            return super().observe(stream, samples)

    Feed(Keeper(), Plan("s")).run([Row([1.0], None, 5.0, "a"), Row([2.0], None, 6.0, "b")])  # type: ignore[arg-type]
    assert sent == [(["a", "b"], [5.0, 6.0])]
