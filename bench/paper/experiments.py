"""The paper's three experiments: every model over every data set, prequential, learning normals only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from app.replay.ranking import ranking_auc
from bench.detectors import ItanModel
from bench.paper.opponents import (
    COMPONENTS,
    PRIOR_COUNTS,
    BestGaussian,
    RunningGaussian,
    WindowedKernel,
    WindowedMixture,
)
from bench.paper.roc import Roc, adaptive_roc, area_under
from bench.paper.streams import ROUNDS, SYNTHETIC, TRUE_SCORE, Stream, vehicle
from bench.protocol import Loss, Model, log_loss, prequential
from core import DetectorConfig
from core.arrays import BoolArray, FloatArray

DATA_SETS: Final = 10
PICKING_ROUNDS: Final = 300
PAPER_EG: Final = "ITAN paper, eg"
PAPER_SOFT_BAYES: Final = "ITAN paper, soft_bayes"
DEFAULT: Final = "ITAN default"
MIXTURE: Final = "wGMM"
KERNEL: Final = "wKDE"
ML: Final = "ML"
BEST_GAUSSIAN: Final = "best single Gaussian"
TRUTH: Final = "truth (the floor)"
OFFLINE: Final = (BEST_GAUSSIAN, TRUTH)

Maker = Callable[[Stream], Model]


@dataclass(frozen=True, slots=True)
class Trial:
    """One model on one data set."""

    scores: FloatArray
    anomalous: BoolArray
    seconds: float
    loss: Loss
    ranking_auc: float | None
    roc: Roc

    @property
    def roc_auc(self) -> float:
        """The area under the paper's 100-cost curve."""
        return area_under(self.roc)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment's data sets, and the trials of each model on each of them; remarks say how one was set."""

    name: str
    streams: Sequence[Stream]
    trials: Mapping[str, Sequence[Trial]]
    remarks: Mapping[str, str]


class TrueDensity:
    """Scores by the density that the normals were drawn from."""

    block = 1_000_000

    def __init__(self, score: Callable[[FloatArray], FloatArray]) -> None:
        self.score = score

    def learn(self, X: FloatArray) -> None:
        """Learn nothing: the density is known."""


def itan_config(n_features: int, **fields: Any) -> DetectorConfig:
    """A config for data as given, with the label 'normal' revealed; its own threshold is not used here."""
    given = {"scaling": "none", "learn_from": "labelled_normal", "threshold": "fixed", "threshold_value": 0.0}
    return DetectorConfig.from_dict({"n_features": n_features} | given | fields)


def run_experiments(
    *, quick: bool = False, scaling: str = "zscore", data_sets: int = DATA_SETS
) -> Iterator[Experiment]:
    """Experiments 1, 2, and 3 if its data is installed. Quick: two data sets of 300 rounds."""
    rounds = 300 if quick else ROUNDS
    for name, make in SYNTHETIC.items():
        streams = [make(seed, rounds) for seed in range(2 if quick else data_sets)]
        yield run_experiment(name, streams, TRUE_SCORE[name])
    try:
        X, anomalous = vehicle(scaling)
    except LookupError:
        return
    rows = slice(rounds if quick else None)
    yield run_experiment("exp. 3", [(X[rows], anomalous[rows])])


def run_experiment(
    name: str, streams: Sequence[Stream], true_score: Callable[[FloatArray], FloatArray] | None = None
) -> Experiment:
    """Every model on the data sets of one experiment."""
    mixture, remark = _best_mixture(streams[0])
    makers: dict[str, Maker] = {
        PAPER_EG: lambda stream: ItanModel(itan_config(_width(stream), profile="paper", mixture="eg")),
        PAPER_SOFT_BAYES: lambda stream: ItanModel(itan_config(_width(stream), profile="paper", mixture="soft_bayes")),
        DEFAULT: lambda stream: ItanModel(itan_config(_width(stream))),
        MIXTURE: mixture,
        KERNEL: lambda stream: WindowedKernel(_width(stream)),
        ML: lambda stream: RunningGaussian(_width(stream)),
        BEST_GAUSSIAN: lambda stream: BestGaussian(stream[0][~stream[1]]),
    }
    if true_score is not None:
        makers[TRUTH] = lambda _: TrueDensity(true_score)
    trials = {model: [_trial(make(stream), stream) for stream in streams] for model, make in makers.items()}
    return Experiment(name, streams, trials, {MIXTURE: remark})


def _trial(model: Model, stream: Stream) -> Trial:
    X, anomalous = stream
    run = prequential(model, X, anomalous, normals_only=True)
    loss, auc = log_loss(run.scores, anomalous), ranking_auc(run.scores, anomalous)
    return Trial(run.scores, anomalous, run.seconds, loss, auc, adaptive_roc(run.scores, anomalous))


def _best_mixture(stream: Stream) -> tuple[Maker, str]:
    """wGMM with the component number, and prior, that lose least on the first rounds: picked in its favour."""
    X, anomalous = stream[0][:PICKING_ROUNDS], stream[1][:PICKING_ROUNDS]

    def loss(setting: tuple[int, float]) -> float:
        run = prequential(WindowedMixture(X.shape[1], *setting), X, anomalous, normals_only=True)
        return log_loss(run.scores, anomalous).per_normal_round

    components, prior_count = min(product(COMPONENTS, PRIOR_COUNTS), key=loss)
    grid = f"{' or '.join(map(str, COMPONENTS))} components and {' or '.join(map(str, PRIOR_COUNTS))} pseudo-samples"
    chosen = f"{components} components, {prior_count:g} pseudo-samples of N(0, I)"
    remark = f"wGMM: {chosen}: of {grid} what loses least on the first data set's first {PICKING_ROUNDS} rounds."
    return partial(_mixture, components, prior_count), remark


def _mixture(components: int, prior_count: float, stream: Stream) -> Model:
    return WindowedMixture(_width(stream), components, prior_count)


def _width(stream: Stream) -> int:
    return int(stream[0].shape[1])


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean, and deviation over data sets if there are several (divided by n - 1)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None
