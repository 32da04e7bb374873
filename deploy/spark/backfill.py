"""Backfill a table of history with spark-submit; docs/backfill.md says how, and what comes out."""

import argparse
import json
import time
from collections.abc import Sequence

from app.bulk.job import Job, delay_of
from app.bulk.spark.batch import Roles, results_of, write

READ_CSV = {"header": "true", "inferSchema": "true", "mode": "FAILFAST", "enforceSchema": "false"}


def arguments() -> argparse.ArgumentParser:
    """Describe the arguments, which are those of itan backfill as far as Spark can serve them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("given", nargs="+", metavar="IN", help="paths that Spark can read")
    parser.add_argument("--out", required=True, help="a new folder for scores, incidents and images")
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--stream-column", required=True, help="column that names the stream of each row")
    parser.add_argument("--order-column", required=True, help="whole number or timestamp: the order within a stream")
    parser.add_argument("--columns", help="feature columns, comma-separated; all without another role if left out")
    parser.add_argument("--timestamp-column", help="timestamps, or epoch seconds")
    parser.add_argument("--id-column")
    parser.add_argument("--label-column", help="1 or true is anomalous, 0 or false normal, null unknown")
    parser.add_argument("--label-time-column", help="when each label became known")
    parser.add_argument("--label-delay", default="100", help="100 (samples), or 90s, 15m, 12h, 30d")
    parser.add_argument("--label-every", type=int, default=100)
    parser.add_argument("--config", type=json.loads, default={}, help="config of the streams (JSON)")
    parser.add_argument("--keep", type=int, default=100_000, help="samples of each stream that can still be labelled")
    parser.add_argument("--at", type=float, help="epoch seconds at which everything counts as having come; now")
    return parser


def job_of(given: argparse.Namespace, features: Sequence[str]) -> Job:
    """Give the job, the same as that of itan backfill."""
    return Job(
        config={"features": [{"name": name, "role": "value"} for name in features], **given.config},
        at=time.time() if given.at is None else given.at,
        label_every=given.label_every,
        keep_samples=given.keep,
        **delay_of(given.label_delay),
    )


def main() -> None:
    """Run it."""
    from pyspark.sql import SparkSession

    given = arguments().parse_args()
    spark = SparkSession.builder.appName("itan backfill").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    reader = spark.read.options(**READ_CSV) if given.format == "csv" else spark.read
    table = reader.format(given.format).load(given.given)
    named = given.timestamp_column, given.id_column, given.label_column, given.label_time_column
    roles = Roles(given.stream_column, given.order_column, *named)
    others = {given.stream_column, given.order_column, *named}
    features = given.columns.split(",") if given.columns else [name for name in table.columns if name not in others]
    write(results_of(table, roles, job_of(given, features)), given.out)
    spark.stop()


if __name__ == "__main__":
    main()
