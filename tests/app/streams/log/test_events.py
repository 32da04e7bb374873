import msgspec
import numpy as np
import pytest

from app.streams.log.events import (
    UnreadableEvent,
    batch_body,
    config_body,
    label_body,
    read_event,
    read_records,
    read_timestamps,
)
from core import Detector, DetectorConfig

NAMED = [{"name": "a"}, {"name": "b"}]


@pytest.fixture(scope="module")
def records():
    return Detector(DetectorConfig(n_features=2)).observe(np.arange(6.0).reshape(3, 2)).records


def test_a_batch_comes_back(records):
    times = np.array([1.5, 2.5, 3.5])
    event = read_event(batch_body(records, times, 9.0))
    assert event.at == 9.0
    np.testing.assert_array_equal(read_timestamps(event), times)
    np.testing.assert_array_equal(read_records(event.records).x, records.x)
    assert read_timestamps(read_event(batch_body(records, None, 9.0))) is None


def test_labels_come_back(records):
    event = read_event(label_body(records, [True, False, None], 9.0))
    assert event.labels == [True, False, None]


def test_a_change_of_the_config_comes_back():
    change = Detector(DetectorConfig(n_features=2)).reconfigure({"half_life_samples": 50, "features": NAMED})
    event = read_event(config_body(change, 9.0))
    assert (event.before, event.after) == (change.before, change.after)
    assert event.after["half_life_samples"] == 50.0


@pytest.mark.parametrize("body", [b"", b"x", b"\x80", msgspec.msgpack.encode({"kind": "batch", "version": 1})])
def test_other_bytes_are_refused(body):
    with pytest.raises(UnreadableEvent):
        read_event(body)


def test_damage_and_other_versions_are_refused(records):
    body = batch_body(records, None, 9.0)
    with pytest.raises(UnreadableEvent, match="version 2"):
        read_event(msgspec.msgpack.encode(msgspec.structs.replace(read_event(body), version=2)))
    blob = bytearray(records.to_bytes())
    blob[-20] ^= 1
    with pytest.raises(UnreadableEvent, match="checksum"):
        read_records(bytes(blob))
