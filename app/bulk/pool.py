"""A backfill on all cores of one machine."""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import msgspec

from app.bulk.backfill import Backfill
from app.bulk.job import Job
from app.bulk.output import Output
from app.bulk.reading.files import Files
from app.bulk.rows import BadRow
from app.bulk.spill import Spill, streams_in
from app.replay.reading.cells import BadTable
from core import DetectorConfig

PART_BYTES: Final = 64_000_000
PARTS_PER_WORKER, MOST_PARTS = 4, 512
THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class Totals:
    """What a backfill has done."""

    streams: int = 0
    samples: int = 0
    repeated: int = 0
    flagged: int = 0
    incidents: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0

    def take(self, image: dict[str, Any]) -> None:
        """Count a stream."""
        self.streams += 1
        for name in ("samples", "repeated", "flagged", "incidents"):
            setattr(self, name, getattr(self, name) + image[name][0])
        self.labels.update(json.loads(image["labels"][0]))

    def add(self, other: "Totals") -> None:
        """Add those of another part."""
        for name in ("streams", "samples", "repeated", "flagged", "incidents", "cpu_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.labels.update(other.labels)


def run(
    files: Files,
    job: Job,
    features: Sequence[str],
    out: Path,
    *,
    workers: int | None = None,
    done: Callable[[int], object] = lambda _: None,
) -> Totals:
    """Compute all streams of the files into a new folder; `done` hears of samples that are computed.

    Raises BadTable for the first row that cannot be taken, and leaves no folder then.
    """
    workers = workers or len(os.sched_getaffinity(0))
    with new_folder(out) as folder:
        parts = _spill(files, features, folder / ".spill", workers)
        totals = Totals(cpu_seconds=time.process_time())
        try:
            for part in _computed(job, parts, folder, workers):
                totals.add(part)
                done(part.samples)
        except BadRow as error:
            raise BadTable(f"{files.place(error.file, error.row)}: {error.said}") from None
        shutil.rmtree(folder / ".spill")
        told = {"job": msgspec.to_builtins(job), "files": [str(path) for path in files.paths]}
        (folder / "job.json").write_text(json.dumps(told | {"totals": vars(totals)}, indent=2) + "\n")
    return totals


def with_features(
    fields: Mapping[str, Any], features: Sequence[str], context: Sequence[str]
) -> tuple[dict[str, Any], Sequence[str]]:
    """Give a config that names the features, and their columns in its order. Raises BadTable."""
    if "features" in fields:
        names = [str(one["name"]) for one in fields["features"] if isinstance(one, dict) and "name" in one]
        if absent := [name for name in names if name not in features]:
            raise BadTable(f"the config's feature {', '.join(absent)} is no column; there are {', '.join(features)}")
        return dict(fields), names
    if "n_features" in fields:
        raise BadTable("--config names n_features, but the features are the columns: leave it out")
    if absent := [name for name in context if name not in features]:
        raise BadTable(f"{', '.join(absent)} cannot be context: the features are {', '.join(features)}")
    named = [{"name": name, "role": "context" if name in context else "value"} for name in features]
    return {"features": named, **fields}, features


def refuse_untimed(config: DetectorConfig, timestamp_column: str | None) -> None:
    """Raise BadTable for a config that needs times where there are none."""
    if timestamp_column is None and (config.calendar is not None or config.half_life_seconds is not None):
        raise BadTable("the config has a calendar or half_life_seconds: --timestamp-column must name the times")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give a folder that gets its name when all is done. Raises BadTable if there is one."""
    if out.exists():
        raise BadTable(f"{out} exists: a backfill never replaces anything")
    folder = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
        folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _spill(files: Files, features: Sequence[str], folder: Path, workers: int) -> list[Path]:
    """Sort the rows into parts."""
    size = sum(path.stat().st_size for path in files.paths)
    n_parts = min(max(workers * PARTS_PER_WORKER, -(-size // PART_BYTES)), MOST_PARTS)
    spill = Spill(folder, n_parts, len(features))
    try:
        for number, block in files.blocks(features):
            spill.take(block, number)
    finally:
        parts = spill.close()
    return parts


def _computed(job: Job, parts: Sequence[Path], out: Path, workers: int) -> Iterator[Totals]:
    """Give the totals of each part when it is computed; the longest parts come first."""
    longest = sorted(parts, key=lambda part: -part.stat().st_size)
    if workers == 1:
        yield from (compute(job, part, number, out) for number, part in enumerate(longest))
        return
    with one_thread_each(), ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        work: list[Future[Totals]] = [
            pool.submit(compute, job, part, number, out) for number, part in enumerate(longest)
        ]
        try:
            for finished in as_completed(work):
                yield finished.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let the processes that are started use one thread each: there is one for each core."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def compute(job: Job, part: Path, number: int, out: Path) -> Totals:
    """Compute the streams of one part. Raises BadRow."""
    totals, began = Totals(), time.process_time()
    with Output(out, number) as output:
        for stream, rows in streams_in(part):
            run = Backfill(job, stream)
            for scores in run.scores(rows):
                output.write("scores", scores)
            output.write("incidents", run.incidents())
            image = run.image()
            output.write("images", image)
            totals.take(image)
    part.unlink(missing_ok=True)
    totals.cpu_seconds = time.process_time() - began
    return totals
