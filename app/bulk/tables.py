"""The tables that a backfill writes: their columns, the same from the pool and from Spark."""

from typing import Final

import pyarrow as pa

from app.bulk.backfill import Columns

SCORES: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("time", pa.float64()),
        ("id", pa.string()),
        ("score", pa.float64()),
        ("threshold", pa.float64()),
        ("severity", pa.float64()),
        ("is_anomaly", pa.bool_()),
        ("ready", pa.bool_()),
        ("incident", pa.int64()),
        ("event", pa.string()),
        ("label", pa.bool_()),
    ]
)
INCIDENTS: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("id", pa.string()),
        ("state", pa.string()),
        ("features", pa.string()),
        ("seq", pa.int64()),
        ("begin", pa.float64()),
        ("peak_seq", pa.int64()),
        ("peak_time", pa.float64()),
        ("peak_score", pa.float64()),
        ("peak_severity", pa.float64()),
        ("last_seq", pa.int64()),
        ("last_time", pa.float64()),
        ("n_flagged", pa.int64()),
        ("ended", pa.string()),
        ("ended_at", pa.float64()),
        ("n_anomalous", pa.int64()),
        ("n_normal", pa.int64()),
    ]
)
IMAGES: Final = pa.schema(
    [
        ("stream", pa.string()),
        ("samples", pa.int64()),
        ("repeated", pa.int64()),
        ("flagged", pa.int64()),
        ("incidents", pa.int64()),
        ("labels", pa.string()),
        ("image", pa.binary()),
    ]
)
TABLES: Final = {"scores": SCORES, "incidents": INCIDENTS, "images": IMAGES}


def table_of(columns: Columns, schema: pa.Schema) -> pa.Table:
    """Make a table; NaN becomes null."""
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
