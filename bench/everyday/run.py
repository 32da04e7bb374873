"""Every situation, with and without labels, by every detector, and the table of it."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from app.replay.rivals.rival import Decisions
from app.replay.rivals.windows import WINDOW
from bench.everyday import labelled, levels, outages, plain, seasons, sparse
from bench.everyday.deciders import OURS, PEERS, RATE, RECENT, Contender, Decider
from bench.everyday.judge import START, Judgement, judge
from bench.everyday.situation import DELAY, NEVER, SHARE, SITUATIONS, Labels, Situation
from bench.tables import Cell, Column, Table, versions
from core.arrays import BoolArray

GROUPS: Final = (plain, levels, outages, sparse, seasons, labelled)
"""The modules that list situations, imported for that."""
BLOCK: Final = 50
"""Rows between two checks of which labels are due."""
LABELS, NO_LABELS = "labels", "none"
PACKAGES: Final = ("numpy", "scipy", "river", "rcf3")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one detector in one situation, with the stream of one seed."""

    situation: str
    seed: int
    detector: str
    labels: str
    judgement: Judgement

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(names: Iterable[str], seeds: Sequence[int], *, peers: bool = True, jobs: int = 1) -> Iterator[Result]:
    """Results by situation and seed; each is the same however many processes share the work."""
    tasks = [(name, seed, peers) for name in names for seed in seeds]
    if jobs == 1:
        yield from (result for task in tasks for result in run_one(task))
        return
    with ProcessPoolExecutor(jobs) as pool:
        for results in pool.map(run_one, tasks):
            yield from results


def run_one(task: tuple[str, int, bool]) -> list[Result]:
    """One situation by one seed: ours without labels and with them, and the peers, which take none."""
    name, seed, peers = task
    stream, labelling = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    chosen = SITUATIONS[name](stream)
    labels = chosen.labels(labelling, chosen.anomalous)
    runs: list[tuple[Contender, Labels | None]] = [(OURS, None), (OURS, labels)]
    runs += [(peer, None) for peer in PEERS if peers and peer.present]
    return [
        Result(name, seed, who.name, NO_LABELS if told is None else LABELS, _judged(who, chosen, told))
        for who, told in runs
    ]


def _judged(who: Contender, chosen: Situation, labels: Labels | None) -> Judgement:
    decisions = decide(who.make(chosen.X.shape[1], chosen.config), chosen, labels)
    return judge(decisions.score, decisions.flagged, chosen.anomalous)


def decide(decider: Decider, chosen: Situation, labels: Labels | None) -> Decisions:
    """Pass a stream through a decider, block by block, with the labels that are due in between."""
    n = len(chosen.X)
    score, flagged, given = np.full(n, np.nan), np.zeros(n, bool), np.zeros(n, bool)
    for start in range(0, n, BLOCK):
        if labels is not None and (rows := due(labels, start, flagged, given)).size:
            decider.label(rows, labels.said[rows])
            given[rows] = True
        block = slice(start, start + BLOCK)
        score[block], flagged[block] = decider.decide(chosen.X[block], chosen.clock[block])
    return Decisions(score, flagged)


def due(labels: Labels, start: int, flagged: BoolArray, given: BoolArray) -> Any:
    """The rows whose labels have come before a row and were not given yet."""
    wanted = (labels.due < start) & ~given & (labels.due != NEVER)
    return np.flatnonzero(wanted & flagged if labels.only_flagged else wanted)


def table_of(results: Sequence[Result]) -> Table:
    """One row for each situation, means over the seeds, and below the means over all situations."""
    names = list(dict.fromkeys(result.situation for result in results))
    rows = [_row(name, [r for r in results if r.situation == name]) for name in names]
    costs = [key for key in dict.fromkeys(key for row in rows for key in row) if key.startswith("cost ")]
    means = {key: float(np.mean([row[key] for row in rows])) for key in costs}
    columns = [Column("situation", "situation")]
    columns += [Column(key, key) for key in ("recall %", "false %", "storm", "delay", "cost", "best")]
    columns += [Column(key, key.removeprefix("cost "), ".2f") for key in costs]
    seeds = sorted({result.seed for result in results})
    notes = [
        "Cells of two: without labels / with them (a fifth of the rows, 200 late, if the situation says nothing else).",
        "recall: share of anomalous rows flagged. false: share of ordinary rows. storm: most false alarms in 100 rows.",
        "delay: rows to the first flag of a stretch. cost: misses and false alarms, 1 is that of flagging nothing (at "
        "one anomaly in 100 rows at least); best: that of the best fixed threshold on the same scores.",
        f"The columns after that are costs. Ours by its defaults, raw units. Judged from row {START} on.",
        f"Peers: z-score, MAD and Mahalanobis over the last {WINDOW} rows, cut where {RATE:.0%} of Gaussian rows would "
        f"be flagged; the others flag what lies above the {1 - RATE:.0%} quantile of their last {RECENT} scores.",
        f"Seeds {', '.join(map(str, seeds))}. Labels: {SHARE:.0%}, {DELAY} late. {versions(*PACKAGES)}.",
    ]
    return Table("Everyday situations", columns, [*rows, {"situation": "mean", **means}], notes)


def _row(name: str, results: Sequence[Result]) -> dict[str, Any]:
    ours = [[r.judgement for r in results if r.detector == OURS.name and r.labels == s] for s in (NO_LABELS, LABELS)]
    row: dict[str, Cell] = {
        "situation": name,
        "recall %": _pair(ours, "recall", "{:.0f}", 100),
        "false %": _pair(ours, "false_share", "{:.1f}", 100),
        "storm": _pair(ours, "storm", "{:.0f}"),
        "delay": _pair(ours, "delay", "{:.1f}"),
        "cost": _pair(ours, "cost", "{:.2f}"),
        "best": _pair(ours, "best_cost", "{:.2f}"),
    }
    for detector, labels in dict.fromkeys((r.detector, r.labels) for r in results):
        chosen = [r.judgement.cost for r in results if (r.detector, r.labels) == (detector, labels)]
        row[f"cost {detector}" + (f", {labels}" if detector == OURS.name else "")] = float(np.mean(chosen))
    return row


def _pair(ours: Sequence[Sequence[Judgement]], field: str, form: str, factor: float = 1.0) -> str:
    """The mean without labels and with labels; a dash if there was nothing to judge. For storms, the worst."""
    cells = []
    for judgements in ours:
        values = [value for j in judgements if (value := getattr(j, field)) is not None]
        figure = np.max if field == "storm" else np.mean
        cells.append(form.format(factor * float(figure(values))) if values else "-")
    return " / ".join(cells)
