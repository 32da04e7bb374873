"""A table of history in Spark: each stream is computed as in the pool, bit for bit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from app.bulk.backfill import Backfill, Columns
from app.bulk.job import Job
from app.bulk.rows import BadRow, Rows
from app.bulk.spill import rows_of, schema_of
from app.bulk.tables import TABLES, table_of
from app.streams.ids import checked_stream_id

KINDS: Final = {
    pa.string(): StringType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.binary(): BinaryType(),
}
FIELDS: Final = {field.name: field.type for schema in TABLES.values() for field in schema}
RESULT: Final = StructType(
    [StructField("table", StringType()), *(StructField(name, KINDS[kind]) for name, kind in FIELDS.items())]
)


@dataclass(frozen=True)
class Roles:
    """The columns of a table: Spark keeps no order, so `order` numbers the rows of a stream, or is a time."""

    stream: str
    order: str
    time: str | None = None
    id: str | None = None
    label: str | None = None
    known: str | None = None


def results_of(table: DataFrame, roles: Roles, job: Job) -> DataFrame:
    """Compute all streams of a table; the rows of the result are those of all TABLES, by the column `table`.

    The features are those of the job's config. A row that cannot be taken ends it, and is named by stream and order.
    """
    features = [str(one["name"]) for one in job.config["features"]]
    taken = rows_in(table, roles, features)
    # sorted beforehand, so that the rows of a stream come in order and need not all be in memory
    ordered = taken.repartition("stream").sortWithinPartitions("stream", "row")
    return ordered.groupBy("stream").applyInPandas(computing(job, len(features), roles.order), RESULT)


def rows_in(table: DataFrame, roles: Roles, features: list[str]) -> DataFrame:
    """Give the rows as app.bulk.spill has them on disk."""
    kinds = dict(table.dtypes)
    nothing = sql.lit(None)
    return table.select(
        sql.col(roles.stream).cast("string").alias("stream"),
        sql.lit(0).cast("long").alias("file"),
        order_of(roles.order, kinds).alias("row"),
        (seconds_of(roles.time, kinds) if roles.time else nothing.cast("double")).alias("time"),
        (sql.col(roles.id) if roles.id else nothing).cast("string").alias("id"),
        (label_of(roles.label) if roles.label else sql.lit(0)).cast("tinyint").alias("label"),
        (seconds_of(roles.known, kinds) if roles.known else nothing.cast("double")).alias("known"),
        *(number_of(name, kinds).alias(f"x{i}") for i, name in enumerate(features)),
    )


def order_of(name: str, kinds: dict[str, str]) -> Column:
    """Give a whole number that rises with the order of the rows."""
    if kinds[name].startswith("timestamp"):
        return sql.unix_micros(sql.col(name).cast("timestamp"))
    if kinds[name] not in ("tinyint", "smallint", "int", "bigint"):
        raise ValueError(f"the column {name} holds {kinds[name]}: rows are ordered by whole numbers or timestamps")
    return sql.col(name).cast("long")


def seconds_of(name: str, kinds: dict[str, str]) -> Column:
    """Give epoch seconds, of timestamps or of numbers that are."""
    if kinds[name].startswith("timestamp"):
        return sql.unix_micros(sql.col(name).cast("timestamp")) / sql.lit(1e6)
    return number_of(name, kinds)


def number_of(name: str, kinds: dict[str, str]) -> Column:
    """Give a column of numbers."""
    if not kinds[name].startswith(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")):
        raise ValueError(f"the column {name} holds {kinds[name]}, not numbers")
    return sql.col(name).cast("double")


def label_of(name: str) -> Column:
    """Give 1 for anomalous (1, true), -1 for normal (0, false), 0 where there is no label."""
    label = sql.lower(sql.trim(sql.col(name).cast("string")))
    unknown = sql.raise_error(
        sql.concat(sql.lit(f"column {name}: the label is neither 1 nor 0, true nor false: "), label)
    )
    return (
        sql.when(label.isNull() | (label == ""), 0)
        .when(label.isin("1", "1.0", "true"), 1)
        .when(label.isin("0", "0.0", "false"), -1)
        .otherwise(unknown)
    )


def computing(job: Job, n_features: int, order: str) -> Callable[[Any, Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Give what computes one stream; it is sent to executors, which import the rest."""
    schema = schema_of(n_features)

    def compute(key: Any, frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        stream = checked_stream_id("" if key[0] is None else str(key[0]))
        run = Backfill(job, stream)
        try:
            for scores in run.scores(rows_from(frames, schema)):
                yield frame_of("scores", scores)
        except BadRow as error:
            raise ValueError(f"stream {stream}, {order} {error.row}: {error.said}") from None
        yield frame_of("incidents", run.incidents())
        yield frame_of("images", run.image())

    return compute


def rows_from(frames: Iterator[pd.DataFrame], schema: pa.Schema) -> Iterator[Rows]:
    """Give the rows of one stream. Raises BadRow if they do not come in order."""
    last: int | None = None
    for frame in frames:
        batch = pa.RecordBatch.from_pandas(frame[schema.names], schema=schema, preserve_index=False)
        rows = rows_of(batch)
        for place in rows.places:
            if last is not None and place[1] <= last:
                raise BadRow(place, "it comes twice: the order of the samples of a stream must be told")
            last = int(place[1])
        yield rows


def frame_of(name: str, columns: Columns) -> pd.DataFrame:
    """Give rows of a table as those of the result."""
    table = table_of(columns, TABLES[name])
    missing = [(field, pa.nulls(len(table), kind)) for field, kind in FIELDS.items() if field not in table.column_names]
    for field, nulls in [("table", pa.array([name] * len(table))), *missing]:
        table = table.append_column(field, nulls)
    return table.select(RESULT.names).to_pandas(types_mapper=pd.ArrowDtype)


def write(results: DataFrame, out: str) -> None:
    """Write the result as folders of Parquet, one for each table, as the pool does."""
    results.persist()
    for name, schema in TABLES.items():
        results.filter(sql.col("table") == name).select(*schema.names).write.parquet(f"{out}/{name}")
    results.unpersist()
