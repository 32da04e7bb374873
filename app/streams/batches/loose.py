"""Samples of agents, which add and leave out names as they like."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.streams.batches.features import names_in
from app.streams.batches.rows import NamedRow, NamedSamples, Value, flat
from app.streams.batches.samples import Matrix
from app.streams.faults import Fault
from core import DetectorConfig


@dataclass(frozen=True, slots=True)
class Rules:
    """What it means if samples lack features of their stream, and how a new stream is configured."""

    fills_missing: bool
    declares_features: bool
    fields_of: Callable[[list[str]], Mapping[str, Any]]


class LooseSamples(NamedSamples):
    """Named samples of which the stream takes what it knows; `ignored` counts the other values."""

    def __init__(self, rows: Sequence[NamedRow], rules: Rules) -> None:
        super().__init__(rows)
        self._given, self._rules = rows, rules
        self.ignored = 0

    def first(self) -> tuple[Sequence[str], Sequence[Value]]:
        return ((), ()) if self._rules.declares_features else super().first()

    def fields(self, stream: str) -> Mapping[str, Any]:
        """Ask for what the rules say, and for the names of the first sample."""
        return self._rules.fields_of(list(self._names))

    def _arranged(self, config: DetectorConfig) -> Matrix | None:
        names = names_in(config)
        if not names:
            return None
        known = set(names)
        self.ignored = sum(len(row.keys() - known) for row in self._given)
        if not self._rules.fills_missing and any(known - row.keys() for row in self._given):
            return None
        return flat([[row.get(name) for name in names] for row in self._given], len(names))

    def _sent(self) -> Sequence[NamedRow]:
        return self._given

    def _misfit(self, row: NamedRow, config: DetectorConfig) -> Fault | None:
        """Say what a sample lacks; that it has more is no fault."""
        known = set(names_in(config))
        return super()._misfit({name: value for name, value in row.items() if name in known}, config)
