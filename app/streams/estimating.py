"""What a stream will take once it has grown as far as its config lets it."""

import json
from dataclasses import dataclass

from app.streams.log.horizon import MARKS
from app.streams.open.memory import SESSION_BYTES
from core import DetectorConfig
from core.families import Layout
from core.feedback.labelled import CAPACITY as LABELLED
from core.tree.evidence.reservoir import LEAST, LEAST_A_FEATURE, TOTAL

NUMBER = 8
ROW_BYTES = 76
"""A record beside its sample and its receipt: seq, score, threshold, flags, level, gain, ordinals, time."""
ENTRY_BYTES = 160
"""An event beside its records: names of fields, build, checksum, time."""
RANKED = 1000
THRESHOLD_NUMBERS = RANKED + 4 * 512
OUTCOME_NUMBERS = 3 * 2049
HEADER_BYTES = 8_000
MARK_BYTES, MARK_OBJECTS_BYTES = 40, 130
NODE_NUMBERS = 16
"""Counts, links and weights of a node."""
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
    """Give the bytes of the state: both models, the warm-up, the labels."""
    numbers = sum(model_numbers(config, nodes) for nodes in models(config)) + 2 * config.n_features
    numbers += THRESHOLD_NUMBERS + OUTCOME_NUMBERS
    if len(models(config)) > 1:
        numbers += LABELLED * (config.n_features + 3) + 2 * RANKED
    header = HEADER_BYTES + len(json.dumps(config.to_dict())) + 2 * MARKS * MARK_BYTES
    return NUMBER * numbers + config.warmup * record_bytes(config) + header


def models(config: DetectorConfig) -> list[int]:
    """Give the most nodes of each model that there may be: of everything, and of labelled normals."""
    alone = config.profile == "paper" or config.learn_from == "labelled_normal"
    return [config.max_nodes] if alone else [config.max_nodes, max(1, config.max_nodes // 2)]


def model_numbers(config: DetectorConfig, nodes: int) -> int:
    """Count what a model keeps: nodes, the two sides of each leaf's candidate, the leaves' recent samples, a round."""
    m, width = config.n_features, columns(config)
    matrix = covariance_numbers(config)
    packed = matrix if config.family.endswith("diagonal") else m * (m + 1) // 2
    numbers = nodes * (2 * packed + 3 * width + 3 * m + NODE_NUMBERS) + round_samples(config) * (m + 1)
    return numbers + (nodes + 1) * (packed + width + 1) + recent_samples(config, nodes) * (2 * m + 2)


def recent_samples(config: DetectorConfig, nodes: int) -> int:
    """Count the samples that the leaves of a model keep at most."""
    leaves = (nodes + 1) // 2
    return (
        0 if config.profile == "paper" else max(TOTAL, leaves * max(LEAST, LEAST_A_FEATURE * (config.n_features + 1)))
    )


def columns(config: DetectorConfig) -> int:
    """Count the columns of which a node keeps the mean: features, or what stands for those that are not Gaussian."""
    layout = Layout(config.kinds)
    return len(layout.block) + layout.n_apart


def beyond_snapshot(config: DetectorConfig) -> int:
    """Give the bytes in memory that are made again from a snapshot: factors of the covariances, what is pending."""
    return sum(beyond_model(config, nodes) for nodes in models(config)) + SESSION_BYTES


def beyond_model(config: DetectorConfig, nodes: int) -> int:
    """Give what one model takes beside its numbers: whole matrices, factors, the tree's relations, what is pending."""
    m, matrix = config.n_features, covariance_numbers(config)
    factors = NUMBER * nodes * (8 * matrix + 8 * m + 2 * columns(config) + NODE_NUMBERS)
    relations = nodes * (nodes + LABELLED) + NUMBER * nodes * (nodes + 1) // 2
    pending = round_samples(config) * NUMBER * (3 * m + nodes + 2)
    objects = ARRAYS_BYTES + 2 * FLOAT_OBJECT_BYTES * THRESHOLD_NUMBERS + 2 * MARKS * MARK_OBJECTS_BYTES
    return factors + relations + pending + objects


def covariance_numbers(config: DetectorConfig) -> int:
    """Count the numbers of a node's covariance."""
    m = config.n_features
    return m if config.family.endswith("diagonal") else m * m


def round_samples(config: DetectorConfig) -> int:
    """Count the samples that are learned together."""
    return config.max_round if config.round_growth else 1


def record_bytes(config: DetectorConfig) -> int:
    """Give the bytes of one record: the sample, what was filled or drawn in, and of the paper's tree a bit a node."""
    left = -(-config.max_nodes // 8) if config.profile == "paper" else 0
    return ROW_BYTES + 3 * NUMBER * config.n_features + left
