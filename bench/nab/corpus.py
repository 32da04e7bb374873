"""The series of a checkout of the benchmark's repository, and the detectors whose results it holds."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from core.arrays import FloatArray

HALVES = ("tuning", "validation")


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its name (`realTraffic__speed_6005`), its values (n,), and the first and last row of each window."""

    name: str
    values: FloatArray
    windows: tuple[tuple[int, int], ...]


def read_corpus(folder: Path) -> list[Series]:
    """Every series of a checkout, by name. Raises OSError, KeyError or ValueError if it is not such a checkout."""
    windows = json.loads((folder / "labels" / "combined_windows.json").read_text())
    return sorted((_read_series(folder, path, limits) for path, limits in windows.items()), key=lambda s: s.name)


def _read_series(folder: Path, path: str, limits: list[list[str]]) -> Series:
    times, values = read_columns(folder / "data" / path, "timestamp", "value")
    rows = [(_first_row(times, start), _first_row(times, end)) for start, end in limits]
    return Series(path.removesuffix(".csv").replace("/", "__"), np.array(values, float), tuple(rows))


def _first_row(times: list[str], limit: str) -> int:
    """The first row with a time; the limits have microseconds, the rows have none."""
    return times.index(limit.split(".")[0])


def read_columns(path: Path, *names: str) -> list[list[str]]:
    """Columns of a file by their names."""
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    return [[line[header.index(name)] for line in lines] for name in names]


def halves(corpus: list[Series]) -> dict[str, list[Series]]:
    """The half to tune on and the half to validate: every second series, in order of the SHA-256 of its name."""
    shuffled = sorted(corpus, key=lambda series: sha256(series.name.encode()).hexdigest())
    return {half: shuffled[start::2] for start, half in enumerate(HALVES)}


def published(folder: Path) -> dict[str, float]:
    """The published score of each detector, profile `standard`."""
    path = folder / "results" / "final_results.json"
    return {name: profiles["standard"] for name, profiles in json.loads(path.read_text()).items()}


def published_scores(folder: Path, corpus: list[Series]) -> Iterator[tuple[str, dict[str, FloatArray]]]:
    """Each detector with a result file for every series: its name, and its anomaly scores by series."""
    for name in published(folder):
        paths = {series.name: _result_path(folder, name, series.name) for series in corpus}
        if all(path.is_file() for path in paths.values()):
            yield name, {key: np.array(read_columns(path, "anomaly_score")[0], float) for key, path in paths.items()}


def _result_path(folder: Path, detector: str, series: str) -> Path:
    group, name = series.split("__", 1)
    return folder / "results" / detector / group / f"{detector}_{name}.csv"
