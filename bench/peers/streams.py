"""The streams of the comparison: experiments 1 and 2, and a folder of labelled files."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.paper.streams import SYNTHETIC, Stream
from bench.protocol import z_scored

SEED = 0


def streams(folder: Path | None, rows: int) -> Iterator[tuple[str, Stream]]:
    """Name and stream, each feature z-scored by its mean and deviation over the whole file."""
    for name, make in SYNTHETIC.items():
        X, anomalous = make(SEED, rows)
        yield name, (z_scored(X), anomalous)
    for path in labelled_files(folder) if folder else ():
        yield path.name.removesuffix(".gz").removesuffix(".csv"), read_stream(path, rows)


def labelled_files(folder: Path) -> list[Path]:
    """Every .csv and .csv.gz below a folder, in order of their names."""
    return sorted((p for p in folder.rglob("*") if p.name.endswith((".csv", ".csv.gz"))), key=lambda p: p.name)


def read_stream(path: Path, rows: int) -> Stream:
    """A file's features and labels, without the column `row`; of a longer file this many rows, evenly spaced."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        header, *lines = csv.reader(file)
    cells = np.array(lines, dtype=float)
    X = z_scored(cells[:, [k for k, name in enumerate(header) if name not in ("row", "label")]])
    kept = np.unique(np.linspace(0, len(X) - 1, min(rows, len(X))).astype(int))
    return X[kept], cells[kept, header.index("label")] == 1
