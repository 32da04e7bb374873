"""Severity in words: the same sentence wherever a person reads it; app/ui/src/severity.ts has it for the page."""

from typing import Final

RARE: Final = 2.0
"""Up to here a severity is a chance; beyond, only a rank."""


def meaning(severity: float | None) -> str:
    """Say what a severity means.

    >>> meaning(1.3)
    'Severity 1.3: about one ordinary sample in 20 scores as high.'
    >>> meaning(0.1)
    'Severity 0.1: most ordinary samples score as high.'
    >>> meaning(4.25)
    'Severity 4.2: fewer than one ordinary sample in 100 scores as high; the larger, the graver.'
    >>> meaning(None)
    'No severity yet: the stream was warming up.'
    """
    if severity is None:
        return "No severity yet: the stream was warming up."
    if severity > RARE:
        return f"Severity {severity:.1f}: fewer than one ordinary sample in 100 scores as high; the larger, the graver."
    every = round(10**severity)
    share = "most ordinary samples score" if every < 2 else f"about one ordinary sample in {every} scores"
    return f"Severity {severity:.1f}: {share} as high."
