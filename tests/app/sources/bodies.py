"""Bodies as agents send them, in the form that their vendors document."""

import json
import struct

TELEGRAF = json.dumps(
    {
        "metrics": [
            {
                "fields": {"usage_idle": 94.1, "usage_user": 3.2, "usage_system": 2.7},
                "name": "cpu",
                "tags": {"cpu": "cpu0", "host": "raynor"},
                "timestamp": 1799999990,
            },
            {
                "fields": {"usage_idle": 90.0, "usage_user": 6.0, "usage_system": 4.0},
                "name": "cpu",
                "tags": {"cpu": "cpu1", "host": "raynor"},
                "timestamp": 1799999990,
            },
            {
                "fields": {"free": 1024, "used": 4096, "mode_text": "rw", "ok": True},
                "name": "disk",
                "tags": {"host": "raynor", "path": "/var/log", "fstype": "ext4"},
                "timestamp": 1799999990,
            },
        ]
    }
)
TELEGRAF_SINGLE = json.dumps(
    {
        "fields": {"field_1": 30, "field_2": 4, "field_N": 59, "n_images": 660},
        "name": "docker",
        "tags": {"host": "raynor"},
        "timestamp": 1799999990,
    }
)
VECTOR = "\n".join(
    json.dumps(event)
    for event in (
        {
            "cpu": 0.31,
            "host": "web-1",
            "latency_ms": 18,
            "message": "ok",
            "name": "requests",
            "source_type": "http_server",
            "timestamp": "2027-01-15T07:59:50.123456789Z",
        },
        {
            "cpu": 0.29,
            "host": "web-1",
            "latency_ms": None,
            "message": "ok",
            "name": "requests",
            "source_type": "http_server",
            "timestamp": "2027-01-15T07:59:51.000000001Z",
        },
    )
)
VECTOR_METRICS = json.dumps(
    [
        {
            "name": "load1",
            "namespace": "host",
            "tags": {"collector": "load", "host": "web-1"},
            "timestamp": "2027-01-15T07:59:50.123456789Z",
            "kind": "absolute",
            "gauge": {"value": 0.27},
        },
        {
            "name": "cpu_seconds_total",
            "namespace": "host",
            "tags": {"collector": "cpu", "cpu": "0", "host": "web-1", "mode": "idle"},
            "timestamp": "2027-01-15T07:59:50.123456789Z",
            "kind": "absolute",
            "counter": {"value": 1234.5},
        },
    ]
)
FLUENT_BIT = (
    '[{"date":1799999990.123456,"cpu_p":3.5,"user_p":2.25,"system_p":1.25,"cpu0.p_cpu":3.0,"cpu0.p_user":2.0,'
    '"host":"web-1","name":"cpu"},'
    '{"date":1799999991.123456,"cpu_p":4.5,"user_p":3.25,"system_p":1.25,"cpu0.p_cpu":4.0,"cpu0.p_user":3.0,'
    '"host":"web-1","name":"cpu"}]'
)
FLUENT_BIT_LINES = "\n".join(map(json.dumps, json.loads(FLUENT_BIT)))
COLLECTD = (
    '[{"values":[0.07,0.11,0.09],"dstypes":["gauge","gauge","gauge"],"dsnames":["shortterm","midterm","longterm"],'
    '"time":1799999990.265,"interval":10.000,"host":"leeloo.octo.it","plugin":"load","plugin_instance":"",'
    '"type":"load","type_instance":""},'
    '{"values":[1901474177,null],"dstypes":["gauge","gauge"],"dsnames":["read","write"],'
    '"time":1799999990.500,"interval":10.000,"host":"leeloo.octo.it","plugin":"disk","plugin_instance":"sda",'
    '"type":"disk_octets","type_instance":"","meta":{"network:received":true}}]'
)
INFLUX = (
    "cpu,cpu=cpu0,host=raynor usage_idle=94.1,usage_user=3.2 1799999990000000000\n"
    'disk,host=raynor,path=/var/log used=4096i,free=1024i,mode="rw",ok=true 1799999990000000000\n'
    "cpu,cpu=cpu0,host=raynor usage_system=2.7 1799999990000000000\n"
    'win,host=raynor state="up" 1799999990000000000\n'
    "cpu,cpu=cpu0,host=raynor usage_idle=90,usage_user=6,usage_system=4 1799999991000000000\n"
)


def write_request(*series: tuple[dict[str, str], list[tuple[float, int]]]) -> bytes:
    """Write a WriteRequest of remote write by hand: labels, and values with their times."""
    return b"".join(part(1, labelled(labels) + valued(values)) for labels, values in series)


def labelled(labels: dict[str, str]) -> bytes:
    return b"".join(part(1, part(1, name.encode()) + part(2, text.encode())) for name, text in labels.items())


def valued(values: list[tuple[float, int]]) -> bytes:
    return b"".join(part(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(time)) for value, time in values)


def part(number: int, inner: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(inner)) + inner


def varint(n: int) -> bytes:
    n, digits = n % 2**64, bytearray()
    while n > 127:
        digits.append(n & 127 | 128)
        n >>= 7
    return bytes([*digits, n])
