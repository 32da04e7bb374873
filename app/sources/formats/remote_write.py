"""The messages of Prometheus remote write 1.0, as its remote.proto and types.proto describe them.

To make them takes 40 ms and 3 MB: import this module at the first request.
"""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
# series stay bytes until their turn: small messages take many times the memory of their bytes
MESSAGES: Final = {
    "WriteRequest": [("timeseries", 1, Field.TYPE_BYTES)],
    "TimeSeries": [("labels", 1, "Label"), ("samples", 2, "Sample")],
    "Label": [("name", 1, Field.TYPE_STRING), ("value", 2, Field.TYPE_STRING)],
    "Sample": [("value", 1, Field.TYPE_DOUBLE), ("timestamp", 2, Field.TYPE_INT64)],
}
REPEATED: Final = {"timeseries", "labels", "samples"}


def message_types() -> Mapping[str, Any]:
    """Make the messages that are read."""
    file = descriptor_pb2.FileDescriptorProto(name="itan/prometheus.proto", package="itan.prometheus", syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            field = described.field.add(name=name, number=number)
            field.label = Field.LABEL_REPEATED if name in REPEATED else Field.LABEL_OPTIONAL
            if isinstance(kind, str):
                field.type, field.type_name = Field.TYPE_MESSAGE, f".itan.prometheus.{kind}"
            else:
                field.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: Mapping[str, Any] = message_factory.GetMessageClassesForFiles([file.name], pool)
    return {name.rpartition(".")[2]: kind for name, kind in found.items()}


TYPES: Final = message_types()
