"""Rows a CPU second of a backfill, by the pool and inside Spark, on the same rows: python -m bench.bulk."""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.bulk.job import Job
from app.bulk.pool import run
from app.bulk.reading.files import Files
from app.replay.reading.columns import Columns
from app.replay.reading.lines import Form
from app.replay.reading.table import Meaning

M = 4
NAMES = [f"v{i}" for i in range(M)]


def make(path: Path, streams: int, rows: int) -> None:
    """Write rows of many streams."""
    rng, n = np.random.default_rng(0), streams * rows
    X = rng.normal(size=(n, M))
    columns = {"stream": [f"s{i % streams}" for i in range(n)], "n": np.arange(n)}
    pq.write_table(pa.table(columns | dict(zip(NAMES, X.T, strict=True))), path)


def jvm_seconds(pid: int) -> float:
    """Give the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def by_pool(given: Path, job: Job, folder: Path) -> float:
    """Give the CPU seconds of the pool."""
    files = Files([given], Columns(stream="stream", drop=("n",)), Meaning(), Form())
    features, _ = files.survey()
    began = time.process_time()
    run(files, job, features, folder / "pool", workers=1)
    return time.process_time() - began


def by_spark(given: Path, job: Job, folder: Path) -> tuple[float, float]:
    """Give the CPU seconds of the JVM, with its start, and of the Python workers."""
    from pyspark.sql import SparkSession

    from app.bulk.spark.batch import Roles, results_of, write

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[1]").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    pid = int(spark._jvm.ProcessHandle.current().pid())
    write(results_of(spark.read.parquet(str(given)), Roles("stream", "n"), job), str(folder / "spark"))
    java = jvm_seconds(pid)
    children = [p for p in Path("/proc").glob("[0-9]*") if is_daemon(p, pid)]
    python = sum(descendants_seconds(int(p.name)) for p in children)
    spark.stop()
    return java, python


def is_daemon(path: Path, parent: int) -> bool:
    """Tell whether a process is the one that Spark's Python workers come from."""
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1]) == parent
    except (OSError, ValueError):
        return False


def descendants_seconds(pid: int) -> float:
    """Give the CPU time of a process, of the children that have ended, and of those that run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(descendants_seconds(int(p.name)) for p in Path("/proc").glob("[0-9]*") if is_daemon(p, pid))


def main(streams: int = 20, rows: int = 1000) -> None:
    """Measure both."""
    job = Job(config={"features": [{"name": name} for name in NAMES]}, at=1_750_000_000.0)
    with tempfile.TemporaryDirectory(prefix="bulk_") as name:
        folder = Path(name)
        make(folder / "in.parquet", streams, rows)
        pool = by_pool(folder / "in.parquet", job, folder)
        java, python = by_spark(folder / "in.parquet", job, folder)
    n = streams * rows
    print(f"pool: {pool:.1f} s of CPU, {n / pool:.0f} rows a CPU second")
    print(
        f"Spark: {java + python:.1f} s of CPU ({python:.1f} s Python, {java:.1f} s JVM), {n / (java + python):.0f} rows"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
