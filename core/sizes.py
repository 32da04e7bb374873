"""What a detector takes once it has grown as far as its config lets it: in memory, saved, and a record of a sample.

All figures are upper estimates in bytes, by the shapes of what the parts keep.
"""

import json
from dataclasses import dataclass
from typing import Final

from core.config import DetectorConfig
from core.decision.held_out import MOST_RUNS
from core.density.spread import KEPT as RECENT_VALUES
from core.density.unscaled import ENOUGH as SHOWN
from core.families import Layout
from core.feedback.background import CAPACITY as BACKGROUND_SAMPLES
from core.feedback.background import SETTLE_EVERY
from core.feedback.background import WINDOW as BACKGROUND_SCORES
from core.feedback.costs import MAX_BINS
from core.feedback.labelled_samples import CAPACITY as LABELLED_SAMPLES
from core.growth.evidence.reservoir import LEAST, LEAST_A_FEATURE, TOTAL
from core.records.layout import row_type
from core.snapshot import DIGEST_BYTES
from core.threshold.labelled_scores import CAPACITY as LABELLED_SCORES
from core.threshold.ordinary_scores import CAPACITY as ORDINARY_SCORES
from core.threshold.recent_scores import WINDOW

NUMBER_BYTES: Final = 8
HEADER_BYTES: Final = 8_000
"""Names, types and shapes of all arrays in a snapshot."""
COST_NUMBERS: Final = 4 * MAX_BINS + 6
"""Ends and counts of the bins, confusion counts, decisions."""
NODE_NUMBERS: Final = 16
"""Counts, links and weights of a node."""
FLOAT_OBJECT_BYTES: Final = 32
ARRAY_BYTES: Final = 200
ARRAYS_BYTES: Final = 100 * ARRAY_BYTES
"""A hundred arrays, each with what the allocator adds."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Upper estimates for one detector, in bytes: in memory, of to_bytes, and of one record of Records.to_bytes."""

    memory_bytes: int
    snapshot_bytes: int
    record_bytes: int


def sizes_of(config: DetectorConfig) -> Sizes:
    """Estimate a detector of this config when all its nodes are there and everything that is bounded is full.

    >>> sizes_of(DetectorConfig(n_features=3)).record_bytes
    150
    """
    snapshot = _snapshot_bytes(config)
    memory = snapshot + _made_again_bytes(config) + (_resemblance_bytes(config) if config.corrects_scores else 0)
    return Sizes(memory, snapshot, _record_bytes(config))


def _snapshot_bytes(config: DetectorConfig) -> int:
    """The bytes of the state: the model, the warm-up, the scores and labels."""
    numbers = _model_numbers(config) + (4 + SHOWN) * config.n_features + 2
    numbers += _threshold_numbers(config) + COST_NUMBERS
    if config.corrects_scores:
        numbers += 2 * LABELLED_SAMPLES * (config.n_columns + 2)
        numbers += (BACKGROUND_SAMPLES + SETTLE_EVERY) * config.n_columns + BACKGROUND_SCORES + SETTLE_EVERY
    header = HEADER_BYTES + len(json.dumps(config.to_dict()))
    return NUMBER_BYTES * numbers + config.warmup * _record_bytes(config) + header


def _model_numbers(config: DetectorConfig) -> int:
    """What the model keeps: nodes, the two sides of each leaf's candidate, the leaves' recent samples, a round."""
    m, width, nodes = config.n_columns, Layout(config.column_kinds).width, config.max_nodes
    matrix = _covariance_numbers(config)
    packed = matrix if config.family.endswith("diagonal") else m * (m + 1) // 2
    numbers = nodes * (2 * packed + 3 * width + 3 * m + NODE_NUMBERS) + _round_samples(config) * (m + 1)
    numbers += (3 + (RECENT_VALUES if config.follows_spread else 0)) * m
    return numbers + (nodes + 1) * (packed + width + 1) + _recent_samples(config) * (2 * m + 2)


def _made_again_bytes(config: DetectorConfig) -> int:
    """What the model takes in memory that a snapshot leaves out.

    Whole matrices, factors of the covariances, of the context's too, the tree's relations, what is known of the samples
    of a round.
    """
    m, matrix, nodes = config.n_columns, _covariance_numbers(config), config.max_nodes
    factors = NUMBER_BYTES * nodes * (8 * matrix + 8 * m + 2 * Layout(config.column_kinds).width + NODE_NUMBERS)
    if config.context:
        factors *= 2
    relations = nodes * nodes + NUMBER_BYTES * nodes * (nodes + 1) // 2
    pending = _round_samples(config) * NUMBER_BYTES * (3 * m + nodes + 3)
    in_objects = _threshold_numbers(config) - 2 * ORDINARY_SCORES
    scores = 2 * FLOAT_OBJECT_BYTES * in_objects + 2 * NUMBER_BYTES * ORDINARY_SCORES
    return factors + relations + pending + ARRAYS_BYTES + scores


def _resemblance_bytes(config: DetectorConfig) -> int:
    """What the kernels of known samples take in memory, and what has settled of the background."""
    known, m = 2 * LABELLED_SAMPLES + BACKGROUND_SAMPLES, config.n_columns
    kernels = NUMBER_BYTES * known * (m + 4)
    return kernels + 2 * NUMBER_BYTES * (BACKGROUND_SCORES + BACKGROUND_SAMPLES * m)


def _threshold_numbers(config: DetectorConfig) -> int:
    """What a decision rule keeps: ordinary scores with seqs, those of the level, labelled ones, runs held out."""
    return 2 * ORDINARY_SCORES + (WINDOW if config.drift_relative else 0) + 4 * LABELLED_SCORES + 2 * MOST_RUNS + 1


def _recent_samples(config: DetectorConfig) -> int:
    """The samples that the leaves keep at most."""
    if config.profile == "paper":
        return 0
    return max(TOTAL, (config.max_nodes + 1) // 2 * max(LEAST, LEAST_A_FEATURE * (config.n_columns + 1)))


def _covariance_numbers(config: DetectorConfig) -> int:
    m = config.n_columns
    return m if config.family.endswith("diagonal") else m * m


def _round_samples(config: DetectorConfig) -> int:
    """The samples that are learned together."""
    return config.max_round if config.round_growth else 1


def _record_bytes(config: DetectorConfig) -> int:
    """One record: the sample, what was filled or drawn in, and of the paper's tree a bit a node."""
    side_bytes = -(-config.max_nodes // 8) if config.profile == "paper" else 0
    return row_type(config.n_features, side_bytes, config.n_columns).itemsize + DIGEST_BYTES
