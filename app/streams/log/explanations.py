"""Explanations of flagged samples, in the form in which they are logged and answered."""

from collections.abc import Iterable

import msgspec
import numpy as np

from core import Explanation, Observation


class Explained(msgspec.Struct, frozen=True):
    """Why one sample was flagged, by feature in the stream's order; a missing value contributes None.

    Early versions did not log what labels contributed, nor the nearest anomaly, None without one.
    """

    contributions: list[float | None]
    expected: list[float]
    path: list[int]
    labels: float = 0.0
    nearest_anomaly: int | None = None


def explained_of(explanation: Explanation) -> list[Explained]:
    """Give one explanation for each sample."""
    contributions = explanation.contribution.astype(object)
    contributions[np.isnan(explanation.contribution)] = None
    nearest = [seq or None for seq in explanation.nearest_anomaly.tolist()]
    columns = (contributions.tolist(), explanation.expected.tolist(), explanation.path)
    return list(map(Explained, *columns, explanation.labels_contribution.tolist(), nearest))


def explained_in(observed: Iterable[Observation]) -> dict[int, Explained]:
    """Give the explanations of flagged samples by seq; none if the request did not ask for them."""
    found: dict[int, Explained] = {}
    for out in observed:
        if out.explanation is not None:
            found.update(zip(out.seq[out.is_anomaly].tolist(), explained_of(out.explanation), strict=True))
    return found
