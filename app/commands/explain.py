"""`itan explain`: say why a sample has its score."""

from collections.abc import Iterator
from typing import Annotated, Final, NamedTuple

import typer

from app.commands.connection import DEFAULT_URL, Key, Stream, Url, connected, one_line_errors
from app.commands.moments import moment
from app.commands.objects import print_json
from app.severity import meaning
from itan_client import InspectedSample

TOP: Final = 5
BAR: Final = 20
LEAST_SHARE: Final = 0.005


class Reason(NamedTuple):
    """A feature of a sample, and its share in what makes the sample unusual; context is known and not scored."""

    name: str
    value: float | None
    expected: float
    share: float
    is_context: bool


def explain(
    stream: Stream,
    seq: Annotated[int, typer.Option(help="Sequence number of the sample.")],
    every: Annotated[bool, typer.Option("--all", help=f"Name all features, not the {TOP} that matter most.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the service's answer as JSON.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
) -> None:
    """Say in words why a sample has its score: what came, what was expected, and which features make it unusual."""
    with one_line_errors(), connected(url, key) as client:
        sample = client.sample(stream, seq)
    if as_json:
        print_json(sample)
        return
    for line in lines_of(sample, None if every else TOP):
        print(line)


def lines_of(sample: InspectedSample, most: int | None) -> Iterator[str]:
    """Explain a sample in lines, with at most so many features."""
    yield f"Sample {sample.seq} of {sample.stream}, {moment(sample.time)} UTC"
    if sample.score is None:
        yield meaning(None)
        return
    part = "" if sample.incident is None else f" Part of the incident that began with sample {sample.incident}."
    yield f"{'Flagged.' if sample.is_anomaly else 'Not flagged.'} {meaning(sample.severity)}{part}"
    reasons = reasons_of(sample)
    shown = [(f"  {reason.name} {sentence(reason)}", bar_of(reason.share)) for reason in reasons[:most]]
    width = max(len(text) for text, _ in shown)
    yield from (f"{text:{width}}  {bar}".rstrip() for text, bar in shown)
    if rest := len(reasons) - len(shown):
        yield f"  and {rest} more: --all"
    yield f"Score {sample.score:.4g} nats, threshold {sample.threshold:.4g}."
    yield "Expected: by the present model, given the other features and the time."


def reasons_of(sample: InspectedSample) -> list[Reason]:
    """Give the features, those that make the sample unusual first."""
    contributions, expected = sample.contributions or {}, sample.expected or {}
    weights = {name: max(contributions.get(name) or 0.0, 0.0) for name in sample.values}
    total = sum(weights.values()) or 1.0
    reasons = [
        Reason(
            name,
            value,
            expected[name],
            weights[name] / total,
            value is not None and contributions.get(name) is None,
        )
        for name, value in sample.values.items()
    ]
    return sorted(reasons, key=lambda reason: -reason.share)


def sentence(reason: Reason) -> str:
    """Say what came, and what was expected.

    >>> sentence(Reason("cpu", 97.0, 25.1, 0.9, False))
    'was 97, expected about 25.1'
    """
    if reason.is_context:
        return f"was {reason.value:.4g} (context, not scored)"
    if reason.value is None:
        return f"was missing, expected about {reason.expected:.4g}"
    if reason.share < LEAST_SHARE:
        return f"was {reason.value:.4g}, as expected (about {reason.expected:.4g})"
    return f"was {reason.value:.4g}, expected about {reason.expected:.4g}"


def bar_of(share: float) -> str:
    """Draw a share.

    >>> bar_of(0.42)
    '████████             42%'
    """
    return "" if share < LEAST_SHARE else f"{'█' * round(BAR * share):{BAR}} {share:.0%}"
