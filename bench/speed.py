"""CPU per sample of our two profiles and of river's HalfSpaceTrees, interleaved in one run."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from time import process_time
from typing import Final

import numpy as np

from app.replay.rivals.trees import RiverModel, half_space_trees
from bench.detectors import ItanModel
from bench.tables import Cell, Column, Table, versions
from core import DetectorConfig, Feature
from core.arrays import FloatArray

FEATURES: Final = (2, 8, 18)
TRAINING: Final = 1000
SINGLES: Final = 200
BATCH: Final = 1000
ROUNDS: Final = 5
SEED: Final = 0


def measure(*, rounds: int = ROUNDS, training: int = TRAINING, batch: int = BATCH, singles: int = SINGLES) -> Table:
    """Median over rounds; in each round every detector gets the same samples in turn."""
    rows: list[dict[str, Cell]] = []
    for m in FEATURES:
        models = _trained(clusters(SEED, training, m))
        times: dict[tuple[str, str], list[float]] = {}
        for k in range(rounds):
            X = clusters(SEED + 1 + k, batch + singles, m)
            for name, model in models.items():
                for what, seconds in _turn(model, X[:singles], X[singles:]).items():
                    times.setdefault((name, what), []).append(1e6 * seconds)
        rows += [_row(m, name, times) for name in models]
    return Table(f"CPU us per sample, median of {rounds} rounds after {training} samples", COLUMNS, rows, _notes())


COLUMNS: Final = (
    Column("features", "m", "d"),
    Column("model", "model"),
    Column("one_by_one", "one by one", ".1f"),
    Column("batch", "in batches", ".1f"),
    Column("score_one", "score alone, one by one", ".1f"),
    Column("score_batch", "score alone, in batches", ".1f"),
)


def clusters(seed: int, n: int, m: int) -> FloatArray:
    """Samples (n, m) of five round clusters, the same five for every seed."""
    centers = 3 * np.random.default_rng(m).normal(size=(5, m))
    rng = np.random.default_rng(seed)
    return centers[rng.integers(5, size=n)] + rng.normal(size=(n, m))


def _trained(X: FloatArray) -> dict[str, ItanModel | RiverModel]:
    m = X.shape[1]
    models: dict[str, ItanModel | RiverModel] = {
        "ITAN default": ItanModel(DetectorConfig(m)),
        "ITAN default, half context": ItanModel(DetectorConfig(features=_half_context(m))),
        "ITAN default, labels": ItanModel(DetectorConfig(m, learn_from="labelled_normal")),
        "ITAN paper, labels": ItanModel(DetectorConfig(m, profile="paper")),
    }
    if find_spec("river"):
        models["river HalfSpaceTrees"] = half_space_trees()
    for model in models.values():
        _singly(_pass, model, X)
    return models


def _half_context(m: int) -> tuple[Feature, ...]:
    return tuple(Feature(f"f{j}", role="value" if j < m / 2 else "context") for j in range(m))


def _turn(model: ItanModel | RiverModel, singles: FloatArray, batch: FloatArray) -> dict[str, float]:
    """Seconds per sample of each way, scoring alone first, because it changes nothing."""
    ours = isinstance(model, ItanModel)
    taken = {
        "score_one": _seconds(lambda: _singly(_score, model, singles)) / len(singles),
        "one_by_one": _seconds(lambda: _singly(_pass, model, singles)) / len(singles),
    }
    if ours:  # river's takes no batches
        taken["score_batch"] = _seconds(lambda: _score(model, batch)) / len(batch)
        taken["batch"] = _seconds(lambda: _pass(model, batch)) / len(batch)
    else:
        _singly(_pass, model, batch)
    return taken


def _singly(
    do: Callable[[ItanModel | RiverModel, FloatArray], None], model: ItanModel | RiverModel, X: FloatArray
) -> None:
    for k in range(len(X)):
        do(model, X[k : k + 1])


def _score(model: ItanModel | RiverModel, X: FloatArray) -> None:
    if isinstance(model, ItanModel):
        model.detector.score(X)
    else:
        model.score(X)


def _pass(model: ItanModel | RiverModel, X: FloatArray) -> None:
    model.score(X)
    model.learn(X)


def _seconds(do: Callable[[], None]) -> float:
    start = process_time()
    do()
    return process_time() - start


def _row(m: int, name: str, times: dict[tuple[str, str], list[float]]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"features": m, "model": name}
    return row | {what: float(np.median(values)) for (model, what), values in times.items() if model == name}


def _notes() -> Sequence[str]:
    return (
        f"One by one: score, decide and learn; in batches of {BATCH}. 'labels' also sends each sample's label at once.",
        "Every detector has seen the same samples; they take turns within a round.",
        f"{versions('numpy', 'scipy', 'river')}.",
    )
