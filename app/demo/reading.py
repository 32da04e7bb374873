"""What made-up streams consist of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample with its truth."""

    values: dict[str, float]
    is_fault: bool
