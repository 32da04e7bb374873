"""Answer samples and labels as they come, from Kafka or from files, with spark-submit; docs/backfill.md says how."""

import argparse
import json
import time

from app.bulk.job import Job
from app.bulk.spark.query import SOURCE, answers_to

STATES = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def arguments() -> argparse.ArgumentParser:
    """Describe the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--folder", help="a folder to which files of JSON lines come")
    source.add_argument(
        "--kafka", help="bootstrap servers; needs --packages org.apache.spark:spark-sql-kafka-0-10_2.13"
    )
    parser.add_argument("--topic", help="topic of JSON objects, with --kafka")
    parser.add_argument("--out", required=True, help="a folder for the answers, as Parquet")
    parser.add_argument("--checkpoint", required=True, help="a folder that lasts: state and progress")
    parser.add_argument("--config", type=json.loads, required=True, help="config of the streams, with features (JSON)")
    parser.add_argument("--keep", type=int, default=100_000, help="samples of each stream that can still be labelled")
    parser.add_argument("--every", default="10 seconds", help="how often a micro-batch begins")
    return parser


def main() -> None:
    """Run it until it is stopped."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as sql

    given = arguments().parse_args()
    session = SparkSession.builder.appName("itan query").config("spark.sql.session.timeZone", "UTC")
    spark = session.config("spark.sql.streaming.stateStore.providerClass", STATES).getOrCreate()
    if given.folder:
        source = spark.readStream.schema(SOURCE).json(given.folder)
    else:
        options = {"kafka.bootstrap.servers": given.kafka, "subscribe": given.topic, "startingOffsets": "earliest"}
        texts = spark.readStream.format("kafka").options(**options).load()
        row = sql.from_json(sql.col("value").cast("string"), SOURCE).alias("row")
        source = texts.select(row).select("row.*")
    job = Job(config=given.config, at=time.time(), keep_samples=given.keep)
    job.detector_config()  # refused at once if it is none
    answers = answers_to(source, job).writeStream.format("parquet").option("path", given.out)
    query = answers.option("checkpointLocation", given.checkpoint).trigger(processingTime=given.every).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
