"""Sources of common agents, as these send without further configuration of their formats."""

from typing import Any, Final

PRESETS: Final[dict[str, dict[str, Any]]] = {
    # outputs.http with data_format = "json": {"metrics": [...]}, or one metric a request
    "telegraf": {
        "records": "metrics",
        "stream": "{tags.host}:{name}{tags.*}",
        "features": ["fields.*"],
        "timestamp": "timestamp",
        "id": "{timestamp}",
    },
    # outputs.http with data_format = "influx", its default
    "influx": {
        "format": "influx",
        "stream": "{tags.host}:{name}{tags.*}",
        "features": ["fields.*"],
        "timestamp": "timestamp",
        "timestamp_unit": "ns",
        "id": "{timestamp}",
        "join_seconds": 0,
    },
    # the sink http with encoding.codec = "json": an array, or lines; of events
    "vector": {
        "stream": "{host}:{name}",
        "features": ["*"],
        "ignore": ["timestamp", "source_type"],
        "timestamp": "timestamp",
        "id": "{timestamp}",
    },
    # the same, of metrics, which Vector sends one by one; its counters are totals
    "vector-metrics": {
        "stream": "{tags.host}{tags.*}",
        "features": ["gauge.value"],
        "feature": "{name}",
        "timestamp": "timestamp",
        "id": "{timestamp}",
        "join_seconds": 0,
    },
    # OTLP/HTTP; some SDKs take the time of each metric anew
    "otlp": {
        "format": "otlp",
        "stream": "{resource.service.name}{attributes.*}",
        "features": ["metrics.*"],
        "timestamp": "time_unix_nano",
        "timestamp_unit": "ns",
        "id": "{time_unix_nano}",
        "join_seconds": 1,
    },
    # remote_write; names that end like this are totals, which only rise
    "prometheus": {
        "format": "prometheus",
        "stream": "{labels.job}{labels.*}",
        "features": ["metrics.*"],
        "ignore": ["metrics.*_total", "metrics.*_count", "metrics.*_sum", "metrics.*_bucket", "metrics.*_created"],
        "timestamp": "timestamp",
        "timestamp_unit": "ms",
        "id": "{timestamp}",
        "join_seconds": 0,
    },
    # the output http with format json or json_lines
    "fluent-bit": {
        "stream": "{host}:{name}",
        "features": ["*"],
        "ignore": ["date"],
        "timestamp": "date",
        "id": "{date}",
    },
    # the plugin write_http with Format "JSON"
    "collectd": {
        "stream": "{host}:{plugin}:{plugin_instance}:{type}:{type_instance}",
        "arrays": {"names": "dsnames", "values": "values"},
        "timestamp": "time",
        "id": "{time}",
    },
}
