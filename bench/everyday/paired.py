"""The same streams without their context and with it, beside a z-score for each quarter of an hour of the week."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

import numpy as np
from scipy.stats import norm

from bench.everyday import contexts
from bench.everyday.deciders import OURS, RATE, Contender, Decisions, FilledIn
from bench.everyday.judge import judge
from bench.everyday.run import LABELS, NO_LABELS, Result, decide
from bench.everyday.situation import CONTEXTS, QUARTER
from bench.tables import Column, Table, versions
from core.arrays import FloatArray

LISTED: Final = contexts
"""The module that lists situations, imported for that."""
WEEK: Final = 672
"""Quarters of an hour."""
IN_CONTEXT: Final = "in context"


class OfTheWeek:
    """Distance from the mean of the same quarter of an hour of the week, in deviations from these means by all rows."""

    def __init__(self, m: int) -> None:
        self._n, self._sum = np.zeros(WEEK), np.zeros((WEEK, m))
        self._off = Spread(m)
        self._seen, self._threshold = FilledIn(), float(norm.isf(RATE / (2 * m)))

    def decide(self, X: FloatArray, times: FloatArray) -> Decisions:
        slots = (times // QUARTER).astype(int) % WEEK
        scores = np.array([self._next(x, slot) for x, slot in zip(self._seen.fill(X), slots.tolist(), strict=True)])
        return Decisions(scores, scores > self._threshold)

    def _next(self, x: FloatArray, slot: int) -> float:
        score = 0.0
        if self._n[slot]:
            off = x - self._sum[slot] / self._n[slot]
            score = float(np.abs(off / self._off.deviation).max())
            self._off.add(off)
        self._n[slot] += 1
        self._sum[slot] += x
        return score

    def label(self, rows: Any, said: Any) -> None:
        """Nothing: it has no use for labels."""


class Spread:
    """The deviation, about 0, of m features so far."""

    def __init__(self, m: int) -> None:
        self._n, self._squares = 0, np.zeros(m)

    @property
    def deviation(self) -> FloatArray:
        """(m,), infinite before there are enough."""
        return np.sqrt(self._squares / self._n) if self._n >= 32 else np.full(len(self._squares), np.inf)

    def add(self, off: FloatArray) -> None:
        """Count one distance (m,)."""
        self._n += 1
        self._squares = self._squares + off * off


OF_THE_WEEK: Final = Contender("z-score of the week", lambda m, _: OfTheWeek(m))


def run_paired(names: Iterable[str], seeds: Sequence[int], *, jobs: int = 1) -> Iterator[Result]:
    """Results by situation and seed; each is the same however many processes share the work."""
    tasks = [(name, seed) for name in names for seed in seeds]
    if jobs == 1:
        yield from (result for task in tasks for result in run_pair(task))
        return
    with ProcessPoolExecutor(jobs) as pool:
        for results in pool.map(run_pair, tasks):
            yield from results


def run_pair(task: tuple[str, int]) -> list[Result]:
    """One situation by one seed: ours without the context and with it, each without labels and with them; the peer."""
    name, seed = task
    stream, labelling = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    chosen = CONTEXTS[name](stream)
    labels, plain, told = chosen.labels(labelling, chosen.anomalous), chosen.config, chosen.config | chosen.context
    runs = [
        (OURS, plain, None),
        (OURS, plain, labels),
        (OURS, told, None),
        (OURS, told, labels),
        (OF_THE_WEEK, {}, None),
    ]
    results = []
    for who, config, given in runs:
        decisions = decide(who.make(chosen.X.shape[1], config), chosen, given)
        judgement = judge(decisions.score, decisions.flagged, chosen.anomalous)
        detector = f"{who.name}, {IN_CONTEXT}" if config is told else who.name
        results.append(Result(name, seed, detector, NO_LABELS if given is None else LABELS, judgement))
    return results


def paired_table(results: Sequence[Result]) -> Table:
    """Two rows for each situation and one of the peer, means over the seeds."""
    rows = []
    for name in dict.fromkeys(result.situation for result in results):
        for who in (OURS.name, f"{OURS.name}, {IN_CONTEXT}", OF_THE_WEEK.name):
            rows.append(_row(name, who, [r for r in results if (r.situation, r.detector) == (name, who)]))
    columns = [Column(key, key) for key in ("situation", "detector", "AUC", "recall %", "false %", "cost")]
    notes = [
        "The same streams without their context and with it. Cells of two: without labels / with them.",
        "z-score of the week: distance from the mean of that quarter of an hour of the week.",
        f"Seeds {', '.join(map(str, sorted({result.seed for result in results})))}. {versions('numpy', 'scipy')}.",
    ]
    return Table("Streams with a context", columns, rows, notes)


def _row(name: str, who: str, results: Sequence[Result]) -> dict[str, Any]:
    told = [[r.judgement for r in results if r.labels == labels] for labels in (NO_LABELS, LABELS)]
    row: dict[str, Any] = {"situation": name, "detector": who}
    for key, field, form, factor in (
        ("AUC", "auc", "{:.4f}", 1.0),
        ("recall %", "recall", "{:.0f}", 100.0),
        ("false %", "false_share", "{:.2f}", 100.0),
        ("cost", "cost", "{:.2f}", 1.0),
    ):
        means = [factor * float(np.mean([getattr(j, field) for j in each])) for each in told if each]
        row[key] = " / ".join(form.format(mean) for mean in means)
    return row
