"""Explanations of flagged samples, as they are logged and answered."""

from collections.abc import Iterable

import msgspec
import numpy as np

from core import Explanation, Observation


class Explained(msgspec.Struct, frozen=True):
    """Why one sample was flagged, by the position of its features; a missing one contributes nothing, None."""

    contributions: list[float | None]
    expected: list[float]
    path: list[int]


def explained_of(explanation: Explanation) -> list[Explained]:
    """Take an explanation apart, one a sample."""
    contributions = explanation.contribution.astype(object)
    contributions[np.isnan(explanation.contribution)] = None
    return list(map(Explained, contributions.tolist(), explanation.expected.tolist(), explanation.path))


def explained_in(observed: Iterable[Observation]) -> dict[int, Explained]:
    """Give the explanations of flagged samples by their seqs; none where they were not asked for."""
    found: dict[int, Explained] = {}
    for out in observed:
        if out.explanation is not None:
            found.update(zip(out.seq[out.is_anomaly].tolist(), explained_of(out.explanation), strict=True))
    return found
