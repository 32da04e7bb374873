"""What a stream will take once it has grown as far as its config lets it."""

import json
from dataclasses import dataclass

from app.streams.horizon import MARKS
from app.streams.weighing import SESSION_BYTES
from core import DetectorConfig

NUMBER = 8
ROW_BYTES = 48
"""A record beside its sample and its receipt: seq, score, threshold, flags, round."""
ENTRY_BYTES = 160
"""An event beside its records: names of fields, build, checksum, time."""
THRESHOLD_NUMBERS = 1000 + 4 * 512
OUTCOME_NUMBERS = 3 * 2049
HEADER_BYTES = 8_000
MARK_BYTES, MARK_OBJECTS_BYTES = 40, 130
NODE_NUMBERS = 16
"""Counts, links and weights of a node."""
SEGMENT_BYTES = 1_200
"""A pending sample that came alone, beside its numbers: a handful of small arrays."""
FLOAT_OBJECT_BYTES = 32
ARRAYS_BYTES = 100 * 200


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper estimates of one stream: in memory, as a snapshot, and what its log grows by with each sample sent alone.

    Client ids come on top, each with its own length.
    """

    memory_bytes: int
    snapshot_bytes: int
    log_bytes_per_sample: int


def estimate(config: DetectorConfig) -> Estimate:
    """Estimate a stream of this config when all its nodes are there and everything that is bounded is full."""
    snapshot = snapshot_bytes(config)
    return Estimate(snapshot + beyond_snapshot(config), snapshot, record_bytes(config) + ENTRY_BYTES)


def snapshot_bytes(config: DetectorConfig) -> int:
    """Give the bytes of the state: four covariances and seven vectors a node, a round, the warm-up, the labels."""
    m = config.n_features
    numbers = config.max_nodes * (4 * covariance_numbers(config) + 7 * m + NODE_NUMBERS)
    numbers += round_samples(config) * m + 2 * m + THRESHOLD_NUMBERS + OUTCOME_NUMBERS
    header = HEADER_BYTES + len(json.dumps(config.to_dict())) + 2 * MARKS * MARK_BYTES
    return NUMBER * numbers + config.warmup * record_bytes(config) + header


def beyond_snapshot(config: DetectorConfig) -> int:
    """Give the bytes in memory that are made again from a snapshot: factors of the covariances, what is pending."""
    m, nodes = config.n_features, config.max_nodes
    factors = NUMBER * nodes * (4 * covariance_numbers(config) + 4 * m + NODE_NUMBERS)
    pending = round_samples(config) * (2 * NUMBER * m + (NUMBER + 2) * nodes + SEGMENT_BYTES)
    objects = ARRAYS_BYTES + 2 * FLOAT_OBJECT_BYTES * THRESHOLD_NUMBERS + 2 * MARKS * MARK_OBJECTS_BYTES
    return factors + pending + objects + SESSION_BYTES


def covariance_numbers(config: DetectorConfig) -> int:
    """Count the numbers of a node's covariance."""
    m = config.n_features
    return m if config.family.endswith("diagonal") else m * m


def round_samples(config: DetectorConfig) -> int:
    """Count the samples that are learned together."""
    return config.max_round if config.round_growth else 1


def record_bytes(config: DetectorConfig) -> int:
    """Give the bytes of one record: the sample, its receipt of two bits a node, and what was filled in or clipped."""
    return ROW_BYTES + 3 * NUMBER * config.n_features + 2 * -(-config.max_nodes // 8)
