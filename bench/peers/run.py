"""Every detector on every stream, with labels and without, and the tables of it."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from app.replay.ranking import average_precision, ranking_auc
from app.replay.rivals.trees import half_space_trees
from bench.detectors import ItanModel
from bench.paper.streams import Stream
from bench.peers import forests, river, windowed
from bench.peers.streams import streams
from bench.protocol import Model, log_loss, prequential
from bench.tables import Cell, Column, Table, versions
from core import DetectorConfig

START: Final = 64
"""First rows, which do not count: as many as the longest default warm-up, in which ours has no scores."""
BUDGET_SECONDS: Final = 30.0
ROWS: Final = 2500
QUICK_ROWS: Final = 150
REVEALED: Final = "labels revealed"
UNLABELLED: Final = "no labels"
PACKAGES: Final = ("numpy", "scipy", "river", "rcf3", "pysad", "scikit-learn")


@dataclass(frozen=True, slots=True)
class Contender:
    """A detector: its name, how to make it for a number of features, whether it gets labels, and what it needs."""

    name: str
    make: Callable[[int, bool], Model]
    module: str = "core"
    has_density: bool = False

    @property
    def present(self) -> bool:
        return find_spec(self.module) is not None


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one detector on one stream; loss in nats per normal row, only of a density."""

    stream: str
    labels: str
    model: str
    rows: int
    stopped: bool
    ranking_auc: float | None
    average_precision: float | None
    log_loss: float | None
    microseconds: float
    state_bytes: int

    def to_dict(self) -> dict[str, Cell]:
        return {name: getattr(self, name) for name in self.__slots__}


def contenders() -> list[Contender]:
    """Ours first, then the peers."""
    return [
        Contender("ITAN default", partial(_itan, "default"), has_density=True),
        Contender("ITAN paper", partial(_itan, "paper"), has_density=True),
        _peer("river HalfSpaceTrees", lambda _: half_space_trees(), "river"),
        _peer("river LocalOutlierFactor", lambda _: river.local_outlier_factor(), "river"),
        _peer("river OneClassSVM", river.one_class_svm, "river"),
        _peer("rcf3 Forest", forests.RandomCutForest, "rcf3"),
        _peer("PySAD LODA", forests.Loda, "pysad"),
        _peer("sklearn GaussianMixture", lambda _: windowed.gaussian_mixture(), "sklearn", has_density=True),
        _peer("sklearn KernelDensity", lambda _: windowed.kernel_density(), "sklearn", has_density=True),
        _peer("sklearn LocalOutlierFactor", lambda _: windowed.local_outlier_factor(), "sklearn"),
        _peer("sklearn IsolationForest", lambda _: windowed.isolation_forest(), "sklearn"),
    ]


def _itan(profile: str, n_features: int, revealed: bool) -> Model:
    return ItanModel(DetectorConfig(n_features, profile=profile, learn_from="labelled_normal" if revealed else "all"))


def _peer(name: str, make: Callable[[int], Model], module: str, *, has_density: bool = False) -> Contender:
    return Contender(name, lambda n_features, _revealed: make(n_features), module, has_density)


def compare(
    folder: Path | None = None, *, rows: int = ROWS, budget_seconds: float = BUDGET_SECONDS
) -> Iterator[Result]:
    """One result for each stream, with labels and without, and each contender that is installed."""
    for name, stream in streams(folder, rows):
        for revealed in (True, False):
            for contender in contenders():
                if contender.present:
                    yield run_one(contender, name, stream, revealed, budget_seconds)


def run_one(contender: Contender, name: str, stream: Stream, revealed: bool, budget_seconds: float) -> Result:
    """One detector on one stream, judged from row START on."""
    X, anomalous = stream
    model = contender.make(X.shape[1], revealed)
    run = prequential(model, X, anomalous, normals_only=revealed, budget_seconds=budget_seconds)
    scores, truth = run.scores[START:], run.anomalous[START:]
    judged = len(scores) > 0
    return Result(
        stream=name,
        labels=REVEALED if revealed else UNLABELLED,
        model=contender.name,
        rows=len(run.scores),
        stopped=run.stopped,
        ranking_auc=ranking_auc(scores, truth) if judged else None,
        average_precision=average_precision(scores, truth) if judged else None,
        log_loss=log_loss(scores, truth).per_normal_round if judged and contender.has_density else None,
        microseconds=1e6 * run.seconds / len(run.scores),
        state_bytes=state_bytes(model),
    )


def state_bytes(model: Model) -> int:
    """The size of the state: our snapshot, a peer's own format, or else its pickle."""
    own = getattr(model, "state_bytes", None)
    return own if isinstance(own, int) else len(pickle.dumps(model))


def tables_of(results: Sequence[Result], budget_seconds: float) -> list[Table]:
    """Ranking with labels, ranking without, and log-loss."""
    return [
        _ranking_table(results, REVEALED, _notes(results, budget_seconds)),
        _ranking_table(results, UNLABELLED, []),
        _loss_table(results),
    ]


def _ranking_table(results: Sequence[Result], labels: str, notes: Sequence[str]) -> Table:
    chosen = [r for r in results if r.labels == labels]
    names = list(dict.fromkeys(r.stream for r in chosen))
    columns = [Column("model", "model"), *(Column(name, name) for name in names)]
    columns += [
        Column("mean_auc", "mean AUC", ".3f"),
        Column("mean_precision", "mean AP", ".3f"),
        Column("microseconds", "CPU us/sample", ".0f"),
        Column("state_kilobytes", "state kB", ".0f"),
    ]
    rows = [_ranking_row(model, runs) for model, runs in _by_model(chosen).items()]
    title = "normals only are learned" if labels == REVEALED else "all rows are learned"
    return Table(f"Ranking AUC / average precision, {labels}: {title}", columns, rows, notes)


def _ranking_row(model: str, runs: Sequence[Result]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"model": model}
    for r in runs:
        if r.ranking_auc is not None and r.average_precision is not None:
            row[r.stream] = f"{r.ranking_auc:.3f} / {r.average_precision:.3f}" + (f" *{r.rows}" if r.stopped else "")
    aucs = [r.ranking_auc for r in runs if r.ranking_auc is not None]
    precisions = [r.average_precision for r in runs if r.average_precision is not None]
    return row | {
        "mean_auc": float(np.mean(aucs)) if aucs else None,
        "mean_precision": float(np.mean(precisions)) if precisions else None,
        "microseconds": float(np.mean([r.microseconds for r in runs])),
        "state_kilobytes": float(np.mean([r.state_bytes for r in runs])) / 1000,
    }


def _loss_table(results: Sequence[Result]) -> Table:
    chosen = [r for r in results if r.log_loss is not None]
    names = list(dict.fromkeys(r.stream for r in chosen))
    columns = [Column("model", "model"), Column("labels", "labels"), *(Column(name, name, ".3f") for name in names)]
    rows: list[dict[str, Cell]] = []
    for labels in (REVEALED, UNLABELLED):
        for model, runs in _by_model([r for r in chosen if r.labels == labels]).items():
            rows.append({"model": model, "labels": labels} | {r.stream: r.log_loss for r in runs})
    return Table("Log-loss, nats per normal row, of those that have a density", columns, rows)


def _by_model(results: Sequence[Result]) -> dict[str, list[Result]]:
    models = dict.fromkeys(r.model for r in results)
    return {model: [r for r in results if r.model == model] for model in models}


def _notes(results: Sequence[Result], budget_seconds: float) -> list[str]:
    absent = [c.name for c in contenders() if not c.present]
    stopped = f"* stopped after so many rows: {budget_seconds:g} s of CPU were spent; judged on these rows."
    return [
        f"Each row is scored before it is learned; judged from row {START} on; high scores are anomalous.",
        "Features z-scored by mean and deviation of the whole file; of a longer file evenly spaced rows, order kept.",
        "scikit-learn's are refitted on the last 256 learned rows every 32 rows, and score 32 at a time.",
        "river's HalfSpaceTrees stands behind its MinMaxScaler; its first window of 250 learned rows all score 0.",
        "river's OneClassSVM stands behind 100 random Fourier features, its score's sign turned so that far is high.",
        "CPU: scoring and learning, mean over streams. State: our snapshot, rcf3's JSON, else a pickle.",
        *([stopped] if any(r.stopped for r in results) else []),
        "dSalmon 0.1, its only release, is not here: it does not build (its sources need the headers of numpy 1).",
        *([f"Not installed, so left out: {', '.join(absent)}."] if absent else []),
        f"Seeds fixed. {versions(*PACKAGES)}.",
    ]
