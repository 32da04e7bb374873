"""The same streams without their context and with it, beside peers that know the time."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

import numpy as np

from bench.everyday import contexts
from bench.everyday.deciders import OURS, Contender
from bench.everyday.judge import judge
from bench.everyday.run import LABELS, NO_LABELS, Result, decide
from bench.everyday.seasonal import SEASONAL
from bench.everyday.situation import CONTEXTS, Labels
from bench.tables import Column, Table, versions

LISTED: Final = contexts
"""The module that lists situations, imported for that."""
IN_CONTEXT: Final = "in context"
PACKAGES: Final = ("numpy", "scipy", "statsmodels", "rcf3")


def run_paired(names: Iterable[str], seeds: Sequence[int], *, peers: bool = True, jobs: int = 1) -> Iterator[Result]:
    """Results by situation and seed; each is the same however many processes share the work."""
    tasks = [(name, seed, peers) for name in names for seed in seeds]
    if jobs == 1:
        yield from (result for task in tasks for result in run_pair(task))
        return
    with ProcessPoolExecutor(jobs) as pool:
        for results in pool.map(run_pair, tasks):
            yield from results


def run_pair(task: tuple[str, int, bool]) -> list[Result]:
    """One situation by one seed: ours without the context and with it, each without labels and with them; the peers."""
    name, seed, peers = task
    stream, labelling = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    chosen = CONTEXTS[name](stream)
    labels, plain, told = chosen.labels(labelling, chosen.anomalous), chosen.config, chosen.config | chosen.context
    runs: list[tuple[Contender, dict[str, Any], Labels | None]]
    runs = [(OURS, config, given) for config in (plain, told) for given in (None, labels)]
    runs += [(peer, {}, None) for peer in SEASONAL if peers and peer.present]
    results = []
    for who, config, given in runs:
        decisions = decide(who.make(chosen.X.shape[1], config), chosen, given)
        judgement = judge(decisions.score, decisions.flagged, chosen.anomalous)
        detector = f"{who.name}, {IN_CONTEXT}" if config is told else who.name
        results.append(Result(name, seed, detector, NO_LABELS if given is None else LABELS, judgement))
    return results


def paired_table(results: Sequence[Result]) -> Table:
    """Two rows for each situation and one of each peer, means over the seeds."""
    rows = []
    for name in dict.fromkeys(result.situation for result in results):
        for who in dict.fromkeys(result.detector for result in results):
            rows.append(_row(name, who, [r for r in results if (r.situation, r.detector) == (name, who)]))
    columns = [Column(key, key) for key in ("situation", "detector", "AUC", "recall %", "false %", "cost")]
    notes = [
        "The same streams without their context and with it. Cells of two: without labels / with them.",
        "z-score of the week: distance from the mean of that quarter of an hour of the week. Holt-Winters: smoothed "
        "anew each day. rcf3 has the columns of the calendar among its features. Peers take no labels.",
        f"Seeds {', '.join(map(str, sorted({result.seed for result in results})))}. {versions(*PACKAGES)}.",
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
